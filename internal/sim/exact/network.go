package exact

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/record"

	"muster/internal/partition"
	"muster/internal/sim/seeds"
	"muster/internal/store"
)

// message is a request on its way: one of Kafka's, as bytes, or one of those
// below.
type message struct {
	from    string
	to      int32
	body    any
	timeout time.Duration
	// ordered says that it is on a connection that its sender closes when it gives
	// up: it does not arrive later than that, nor twice.
	ordered bool
	opens   int // how often logs had been opened when it was sent
}

// produce asks a leader to append a batch.
type produce struct {
	tp    store.TopicPartition
	batch record.Batch
	how   partition.Produce
}

// fetch asks a leader for records.
type fetch struct {
	tp store.TopicPartition
	partition.Fetch
}

// fetched answers it.
type fetched struct {
	partition.Fetched
	bytes []byte
}

// send sends a message and calls done once, with the answer, or with nil if none
// came in time. Messages are lost, late, and arrive twice.
func (w *world) send(m message, done func(any)) {
	m.opens = w.store.opens
	over := false
	end := func(answer any) {
		if !over {
			over = true
			done(answer)
		}
	}
	w.After(m.timeout, func() {
		if !over {
			w.Count("request timed out")
		}
		end(nil)
	})
	pack := packed(m.body)
	if !w.Chance(w.faults().drop) {
		w.After(w.networkDelay(), func() {
			if m.ordered && over {
				return
			}
			w.deliver(m, pack(), end)
		})
	} else {
		w.Count("request lost")
	}
	if !m.ordered && w.Chance(w.faults().duplicate) {
		w.After(w.networkDelay()+w.About(time.Second), func() {
			w.Count("request twice")
			w.deliver(m, pack(), func(any) {})
		})
	}
}

// deliver has a broker handle a request, and sends its answer back.
func (w *world) deliver(m message, body any, end func(any)) {
	if m.to < 0 {
		return // No one leads what does not exist.
	}
	b := w.brokers[m.to]
	if !b.up {
		return
	}
	life, answered := b.life, false
	b.do(life, func() {
		b.receive(m, body, func(answer any) {
			if answered {
				w.Violated("broker %d answers %T of %s twice", b.id, body, m.from)
			}
			answered = true
			if w.Chance(w.faults().drop) {
				w.Count("answer lost")
				return
			}
			back := packedAnswer(body, answer)
			w.After(w.networkDelay(), func() { end(back) })
		})
	})
}

func (w *world) networkDelay() time.Duration {
	if w.Chance(w.faults().slow) {
		w.Count("slow message")
		return w.Between(200*time.Millisecond, 6*time.Second)
	}
	return w.About(w.plan.delay) + 10*time.Microsecond
}

// packed returns what makes copies of a request, as the wire does.
func packed(body any) func() any {
	switch m := body.(type) {
	case kmsg.Request:
		wire, key, version := m.AppendTo(nil), m.Key(), m.GetVersion()
		return func() any {
			out := kmsg.RequestForKey(key)
			out.SetVersion(version)
			if err := out.ReadFrom(wire); err != nil {
				panic(seeds.Violation{Text: "a request cannot be read: " + err.Error()})
			}
			return out
		}
	case produce:
		return func() any {
			m := m
			m.batch = append(record.Batch(nil), m.batch...)
			return m
		}
	}
	return func() any { return body }
}

// packedAnswer returns an answer as it arrives.
func packedAnswer(body, answer any) any {
	req, ok := body.(kmsg.Request)
	if !ok {
		return answer
	}
	out := req.ResponseKind()
	out.SetVersion(req.GetVersion())
	if err := out.ReadFrom(answer.(kmsg.Response).AppendTo(nil)); err != nil {
		panic(seeds.Violation{Text: "an answer cannot be read: " + err.Error()})
	}
	return out
}
