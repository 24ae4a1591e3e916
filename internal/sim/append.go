package sim

import (
	"time"

	"muster/internal/coordinator/pump"
)

// pendingAppend is an append on its way to the log.
type pendingAppend struct {
	pump.Append
	over bool // it has arrived, or never will
}

// send has a batch appended, which takes a while. There is one at a time.
func (c *coordinator) send(a pump.Append) {
	w := c.w
	if c.underWay != nil {
		w.Violated("a second append begins before the first has ended")
	}
	if a.Life != c.life {
		w.Violated("an append of life %d in life %d", a.Life, c.life)
	}
	f := &pendingAppend{Append: a}
	c.underWay = f
	w.moment(momentAppend)
	if len(a.Records) < c.emitted-c.durable {
		w.Count("append of a part of what waits")
	}
	d := w.About(w.plan.append) + 100*time.Microsecond
	if w.Chance(w.faults().appendSlow) {
		d = w.Between(100*time.Millisecond, 3*time.Second)
		w.Count("slow append")
	}
	c.appendAt = w.Now + d
	w.At(c.appendAt, func() { c.arrive(f) })
}

// arrive is when the log gets an append: it is refused if the log was opened by
// another since, and may fail, also after it was stored, and be stored even after
// it was said to have failed.
func (c *coordinator) arrive(f *pendingAppend) {
	w := c.w
	if f.over {
		return
	}
	f.over = true
	switch {
	case c.epoch != w.log.epoch:
		w.Tracef("broker %d: append refused, epoch %d is over", c.broker.id, c.epoch)
		w.Count("append fenced")
		c.outcome(f, 0, true)
	case w.Chance(w.faults().appendFails) || w.failNext && !w.Calm:
		w.failNext = false
		w.Count("append failed")
		w.Tracef("broker %d: append failed", c.broker.id)
		switch w.Rand.IntN(3) {
		case 0:
			w.log.append(c, f)
			w.Count("append failed but durable")
		case 1:
			w.After(w.Between(0, 50*time.Millisecond), func() {
				if c.epoch == w.log.epoch {
					w.log.append(c, f)
					w.Count("append arrived after it had failed")
				}
			})
		}
		c.outcome(f, 0, true)
	default:
		base := w.log.append(c, f)
		if !w.Chance(w.faults().appendSlow) {
			c.outcome(f, base, false)
			return
		}
		w.Count("append answered late")
		w.After(w.Between(0, 500*time.Millisecond), func() { c.outcome(f, base, false) })
	}
}

// outcome tells the pump what became of an append, whichever life it is in.
func (c *coordinator) outcome(f *pendingAppend, base int64, failed bool) {
	if c.host.gone {
		return
	}
	if c.underWay == f {
		c.underWay = nil
	}
	in := c.host.Input()
	in.MaxBatch /= 8 // As if the setting had been lowered, so that what waits is appended in parts.
	c.host.Appended(f.Life, in, base, failed)
}
