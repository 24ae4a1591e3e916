package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/sim/shell"
)

// broker is a process that may hold the shard.
type broker struct {
	id          int
	up          bool
	life        int // how often it has crashed; connections belong to one life
	coordinator *coordinator
}

// planFaults has brokers crash and take over from one another.
func (w *world) planFaults() {
	f := &w.plan.faults
	w.Every(f.crash, func() {
		w.soon(func() { w.crash(w.lead.broker) }, func() { w.crash(w.brokers[w.Rand.IntN(len(w.brokers))]) })
	})
	w.Every(f.takeover, func() { w.soon(w.takeOver, w.takeOver) })
	if f.appendFails > 0 {
		w.Every(f.crash, func() { w.soon(func() { w.failNext = true }, func() {}) })
	}
	w.Every(f.outage, w.outage)
	w.Every(f.tailLost, w.loseTail)
	w.Every(f.topics, w.changeTopics)
	w.Every(f.settings, w.changeSettings)
}

// The moments at which a fault is likely to do most harm.
const (
	momentAppend   = "append"   // records are on their way to the log
	momentFormed   = "formed"   // a generation was formed and not yet synced
	momentAssigned = "assigned" // the leader's assignment is on its way to the log
	momentReplaced = "replaced" // so is the new id of a static member
	momentParked   = "parked"   // someone waits
	momentMarker   = "marker"   // a marker is on its way to the log
)

var moments = []string{momentMarker, momentAppend, momentFormed, momentAssigned, momentReplaced, momentParked}

// soon has a fault happen now, or aims it at one of the moments.
func (w *world) soon(aimed, now func()) {
	if w.Rand.IntN(4) == 0 {
		now()
		return
	}
	list := moments
	if len(w.plan.consumers) > 0 {
		list = consumerMoments
	}
	if len(w.slots) > 0 {
		list = mixedMoments
	}
	w.aim, w.aimed = list[w.Rand.IntN(len(list))], aimed
}

// moment says that one of the moments has come.
func (w *world) moment(what string) {
	if w.aim != what || w.Calm {
		return
	}
	w.aim = ""
	w.Count("fault aimed at " + what)
	aimed := w.aimed
	w.After(w.About(w.plan.append)/2, func() {
		if !w.Calm {
			aimed()
		}
	})
}

// outage takes all clients of a group away at once, makes them pause, or takes
// one away while the others are too busy to notice.
func (w *world) outage() {
	if len(w.plan.groups) == 0 {
		return
	}
	g := &w.plan.groups[w.Rand.IntN(len(w.plan.groups))]
	kind := w.Rand.IntN(3)
	w.Tracef("%s: an outage of all its clients", g.id)
	w.Count("outage")
	first := true
	for _, c := range w.clients {
		switch {
		case c.group != g || !c.up:
		case kind == 0 && !first:
			c.work()
		case kind == 1:
			c.pausedUntil = w.Now + w.Between(0, c.session+c.rebalance/2)
		default:
			c.stop()
			c.startLater(w.Between(time.Second, c.session+c.rebalance))
			first = false
		}
	}
}

// crash ends a broker. What it had appended and not heard of yet may be durable
// in part. No one is answered: connections break.
func (w *world) crash(b *broker) {
	if !b.up {
		return
	}
	w.Tracef("broker %d: crashes", b.id)
	b.up = false
	b.life++
	w.hangUpAll(b)
	if c := b.coordinator; c != nil && !c.gone {
		if f := c.underWay; f != nil && !f.over && c.epoch == w.log.epoch && w.Rand.IntN(2) == 0 {
			w.log.append(c, f)
			w.Count("durable but unanswered at a crash")
		}
		if c.underWay != nil {
			c.underWay.over = true
		}
		if len(c.entries) > 0 {
			w.Count("records lost in a crash")
		}
		if len(c.open) > 0 {
			w.Count("parked requests lost in a crash")
		}
		c.leave()
		w.Count("coordinator crash")
	}
	w.After(w.Between(100*time.Millisecond, 5*time.Second), func() { b.up = true })
	if w.lead.broker == b {
		w.After(w.Between(50*time.Millisecond, 3*time.Second), w.elect)
	}
}

// elect finds a broker to lead if there is none.
func (w *world) elect() {
	if !w.lead.gone {
		return
	}
	for _, i := range w.Rand.Perm(len(w.brokers)) {
		if w.brokers[i].up {
			w.startCoordinator(w.brokers[i])
			return
		}
	}
	w.After(w.Between(100*time.Millisecond, time.Second), w.elect)
}

// takeOver lets another broker lead while the old one still believes that it
// does.
func (w *world) takeOver() {
	for _, i := range w.Rand.Perm(len(w.brokers)) {
		b := w.brokers[i]
		if !b.up || b.coordinator != nil && !b.coordinator.gone {
			continue
		}
		w.Tracef("broker %d: takes over", b.id)
		if old := w.lead; !old.gone {
			old.zombie = true
			w.deposedAt = w.Now
			w.Count("takeover")
			w.After(w.About(2*time.Second), func() {
				if !old.gone {
					w.Tracef("broker %d: learns that it leads no more", old.broker.id)
					old.resign()
				}
			})
		}
		w.startCoordinator(b)
		return
	}
}

// startCoordinator has a broker load the shard under a new epoch, which fences
// all older ones.
func (w *world) startCoordinator(b *broker) *coordinator {
	w.log.epoch++
	h := &host{w: w}
	h.Shell = shell.New(w.World, h, shell.Pace{
		Moment: w.plan.append / 2, Late: func() float64 { return w.faults().lateTimer }, MaxLate: maxLate / 2, Plant: w.plant,
	})
	c := newCoordinator(w, b, h)
	c.epoch = w.log.epoch
	w.begin(c, (*coordinator).load)
	return c
}

// begin makes a coordinator the one that leads, and has it loaded after a while.
func (w *world) begin(c *coordinator, load func(*coordinator)) {
	c.broker.coordinator, c.host.current = c, c
	w.lead = c
	w.alive = append(slices.DeleteFunc(w.alive, func(c *coordinator) bool { return c.gone }), c)
	least, most := time.Millisecond, 50*time.Millisecond
	if !w.Calm && w.Rand.IntN(4) == 0 {
		most = 3 * time.Second
	}
	w.After(w.Between(least, most), func() {
		if !c.gone {
			load(c)
		}
	})
}

// lookUp is FindCoordinator: the broker that leads, for a while after a takeover
// perhaps the one that did; nil if none does.
func (w *world) lookUp() *broker {
	if w.Now-w.deposedAt < 3*time.Second && w.Chance(w.faults().staleCoordinator) {
		for _, c := range w.alive {
			if c.zombie && !c.gone {
				return c.broker
			}
		}
	}
	if w.lead.gone || !w.lead.broker.up {
		return nil
	}
	return w.lead.broker
}

// receive handles a request that reached a broker.
func (b *broker) receive(w *world, q *request) {
	c := b.coordinator
	switch {
	case c == nil || c.gone:
		w.respond(q, errorReply(q.msg, kerr.NotCoordinator), false, 0)
	case c.loading:
		w.Count("request while loading")
		resp := kind.WhileLoading(q.msg)
		if resp == nil {
			resp = kind.Fail(q.msg, kerr.CoordinatorLoadInProgress)
		}
		w.respond(q, resp.AppendTo(nil), c.zombie, 0)
	default:
		c.submit(q)
	}
}
