package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// peer is a process outside of the brokers, with at most one connection. It may
// die, and come again in another life; what was meant for an earlier one is
// lost.
type peer struct {
	w           *world
	name        string
	up          bool
	life        int
	pausedUntil time.Duration
	conn        *conn
}

// conn is a connection. Messages arrive in the order in which they were sent.
type conn struct {
	peer     *peer
	broker   *broker
	life     int  // of the broker
	closed   bool // by the peer
	leftover bool // what was sent before it was closed still arrives
	broken   bool // messages vanish, and the peer has not noticed yet
	toBroker time.Duration
	toPeer   time.Duration
	calls    []*call
}

// call is a request that waits for its answer.
type call struct {
	conn *conn
	msg  kmsg.Request
	life int // of the peer
	sent time.Duration
	done func(answer)
	over bool
}

// answer is the end of a call. Its message is nil if there was none.
type answer struct {
	msg   kmsg.Response
	stale bool // from a broker that had been deposed
	life  int  // of the group that it is about
}

// after does something later, unless the peer dies before.
func (p *peer) after(d time.Duration, run func()) {
	life := p.life
	p.w.After(d, func() { p.run(life, run) })
}

// run does something now, or when a pause is over.
func (p *peer) run(life int, run func()) {
	if !p.up || p.life != life {
		return
	}
	if p.w.Now < p.pausedUntil {
		p.w.At(p.pausedUntil, func() { p.run(life, run) })
		return
	}
	run()
}

// call sends a request. Without a connection it makes one and fails: to try
// again is up to the caller.
func (p *peer) call(msg kmsg.Request, timeout time.Duration, done func(answer)) {
	w := p.w
	if p.conn == nil {
		p.after(w.networkDelay(), func() {
			if b := w.lookUp(); p.conn == nil && b != nil {
				p.conn = &conn{peer: p, broker: b, life: b.life}
			}
			done(answer{})
		})
		return
	}
	cl := &call{conn: p.conn, msg: msg, life: p.life, sent: w.Now, done: done}
	cl.conn.send(cl)
	w.After(timeout, func() {
		if !cl.over {
			w.Count("request timed out")
			cl.conn.close()
		}
	})
}

func (w *world) networkDelay() time.Duration {
	if w.Chance(w.faults().slow) {
		w.Count("slow message")
		return w.Between(500*time.Millisecond, 8*time.Second)
	}
	return w.About(w.plan.delay) + 10*time.Microsecond
}

func (k *conn) send(cl *call) {
	w := k.peer.w
	k.calls = append(slices.DeleteFunc(k.calls, func(c *call) bool { return c.over }), cl)
	key, version, wire, epoch := cl.msg.Key(), cl.msg.GetVersion(), cl.msg.AppendTo(nil), w.log.epoch
	if w.Chance(w.faults().cut) {
		k.cut()
	}
	k.toBroker = max(k.toBroker, w.Now+w.networkDelay())
	w.underWay(k.toBroker)
	from, b, life := k.peer.name, k.broker, k.life
	w.At(k.toBroker, func() {
		// After a load, generations may be formed once more. A request of an
		// earlier one that a closed connection let through would be taken for
		// one of the new, with Kafka as with us.
		if k.broken || b.life != life || k.closed && (!k.leftover || w.log.epoch != epoch) {
			return
		}
		if k.closed {
			w.Count("request after its connection closed")
		}
		b.receive(w, w.newRequest(from, key, version, wire, cl))
		if k.closed {
			w.sentTwice(k.peer)
		}
	})
	if w.Chance(w.faults().duplicate) {
		w.Count("duplicate request")
		arrival := w.Now + w.networkDelay() + w.About(time.Second)
		w.underWay(arrival)
		w.At(arrival, func() {
			if w.log.epoch == epoch && b.life == life {
				b.receive(w, w.newRequest(from, key, version, wire, nil))
				w.sentTwice(k.peer)
			}
		})
	}
}

// underWay notes when a message of the chaotic phase will have arrived.
func (w *world) underWay(arrival time.Duration) {
	if !w.Calm {
		w.lastArrival = max(w.lastArrival, arrival)
	}
}

// respond sends an answer back.
func (w *world) respond(q *request, wire []byte, stale bool, life int) {
	if q.call == nil {
		return
	}
	k := q.call.conn
	if w.Chance(w.faults().cut) {
		k.cut()
	}
	k.toPeer = max(k.toPeer, w.Now+w.networkDelay())
	w.underWay(k.toPeer)
	w.At(k.toPeer, func() {
		if k.closed || k.broken || k.broker.life != k.life || q.call.over {
			return
		}
		msg := q.call.msg.ResponseKind()
		if err := msg.ReadFrom(wire); err != nil {
			w.Violated("the answer to %s cannot be read: %v", q, err)
		}
		q.call.end(answer{msg: msg, stale: stale, life: life})
	})
}

func (cl *call) end(a answer) {
	cl.over = true
	cl.conn.peer.run(cl.life, func() { cl.done(a) })
}

// cut breaks a connection. The peer notices after a while, or when an answer
// does not come.
func (k *conn) cut() {
	w := k.peer.w
	if k.broken {
		return
	}
	w.Count("connection cut")
	k.broken = true
	if w.Rand.IntN(3) > 0 {
		w.After(w.About(time.Second), k.close)
	}
}

// close is the peer's end of a connection. Calls that wait fail.
func (k *conn) close() {
	if k.closed {
		return
	}
	w := k.peer.w
	k.closed, k.leftover = true, w.Rand.IntN(2) == 0
	if k.peer.conn == k {
		k.peer.conn = nil
	}
	for _, cl := range k.calls {
		if !cl.over {
			cl.over = true
			w.After(time.Millisecond, func() { k.peer.run(cl.life, func() { cl.done(answer{}) }) })
		}
	}
	k.calls = nil
}

// hangUp closes the connection if there is one.
func (p *peer) hangUp() {
	if p.conn != nil {
		p.conn.close()
	}
}

// hangUpAll lets the peers of a broker that crashed notice it, some soon.
func (w *world) hangUpAll(b *broker) {
	for _, p := range w.peers() {
		if k := p.conn; k != nil && k.broker == b {
			w.After(w.About(500*time.Millisecond), k.close)
		}
	}
}

func (w *world) peers() []*peer {
	var out []*peer
	for _, c := range w.clients {
		out = append(out, &c.peer)
	}
	for _, c := range w.consumers {
		out = append(out, &c.peer)
	}
	for _, c := range w.copiers {
		out = append(out, &c.peer, &c.txn.peer)
	}
	return append(out, w.others...)
}
