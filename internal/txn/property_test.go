package txn

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/assert"
	"muster/internal/harness"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// TestAnySequenceKeepsTheInvariants gives a shard random events: requests of clients
// that are right, late or fenced, answers of brokers that are late, repeated or
// lost, crashes and failed appends. After each one the invariants hold, the log says
// what the shard knows, and what was promised stands. In the end, left alone with
// brokers that answer, every transaction ends and everybody is answered.
func TestAnySequenceKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		t.Repeat(map[string]func(*rapid.T){
			"init": w.init, "init again": w.initAgain, "add": w.add, "add more": w.add, "verify": w.verify, "add offsets": w.addOffsets,
			"end": w.end, "end right": w.endRight, "end right again": w.endRight, "describe": w.describe,
			"answer": w.answer, "answer well": w.answerAll, "answer twice": w.answerTwice, "give ids": w.giveIDs,
			"wait": w.wait, "stale timer": w.staleTimer, "topics": w.topics, "crash": w.crash, "append fails": w.appendFails,
		})
		w.calm(t)
	})
}

// world is what is around a shard.
type world struct {
	cfg      Config
	shard    *Shard
	twin     *Shard // gets the same inputs, and must do the same
	now      time.Time
	epoch    int32
	next     machine.RequestID
	asked    map[machine.RequestID]kmsg.Request
	log      []machine.Record
	timers   map[machine.TimerKey]machine.Timer
	stale    []machine.Timer
	open     []machine.Send // without outcome
	answered []machine.Sent // of this life
	nextID   int64
	image    *metadata.Image
	failing  bool

	model
}

const maxTimeout = 30 * time.Second

func newWorld(t *rapid.T) *world {
	w := &world{cfg: DefaultConfig(), now: time.Unix(1_700_000_000, 0), nextID: 100, model: newModel()}
	w.cfg.IDExpiration, w.cfg.ExpireInterval = 5*time.Minute, time.Minute
	w.image = imageOf("t=1,2", "u=1", metadata.OffsetsTopic+"=1,2")
	for i, id := range []string{"x", "y"} {
		if epoch := pick(t, "epoch of "+id, int16(-1), 32763, 32765, 32766); epoch >= 0 {
			v := &Value{Producer: pair{int64(i + 1), epoch}, Timeout: 1000, Updated: w.now.UnixMilli(), Start: none, Previous: none, Next: noPair, Last: none}
			w.log = append(w.log, &Record{id, v})
			w.given[v.Producer], w.owner[v.Producer.id], w.newest[id] = noPair, id, v.Producer
			w.pairs[id] = append(w.pairs[id], v.Producer)
		}
	}
	w.load(t)
	return w
}

// load makes the shard anew from its log.
func (w *world) load(t *rapid.T) {
	w.shard, w.twin = replayed(w.log, w.cfg), replayed(w.log, w.cfg)
	w.asked, w.timers, w.stale = map[machine.RequestID]kmsg.Request{}, map[machine.TimerKey]machine.Timer{}, nil
	w.open, w.answered = nil, nil
	w.forget()
	w.epoch++
	w.step(t, machine.Loaded{Epoch: w.epoch})
	w.checkResent(t)
}

func (w *world) step(t *rapid.T, e machine.Event) {
	in := machine.Input{Now: w.now, Image: w.image, Event: e}
	before := w.values()
	fx, same := w.shard.Step(in), w.twin.Step(in)
	if !reflect.DeepEqual(fx, same) {
		t.Fatalf("the same input has two effects: %+v and %+v", fx, same)
	}
	if w.failing && len(fx.Batches) > 0 {
		w.failing = false
		w.load(t)
		return
	}
	w.sawGone(w.image, before)
	for _, r := range records(fx) {
		w.wrote(t, before, r.(*Record))
	}
	w.log = append(w.log, records(fx)...)
	w.stale = append(w.stale, harness.Arm(w.timers, fx.Timers)...)
	for _, s := range fx.Sends {
		w.sent(t, s)
	}
	for _, r := range fx.Replies {
		w.replied(t, e, before, records(fx), r)
	}
	w.check(t)
}

// values are the hard state of every id.
func (w *world) values() map[string]*Value {
	out := map[string]*Value{}
	for id, t := range w.shard.txns {
		out[id] = t.hard
	}
	return out
}

func (w *world) sent(t *rapid.T, s machine.Send) {
	w.open = append(w.open, s)
	req, ok := s.Msg.(*kmsg.WriteTxnMarkersRequest)
	if !ok {
		return
	}
	assert.MustTrue(t, len(req.Markers) == 1 && req.Markers[0].CoordinatorEpoch == w.epoch, "markers %+v under epoch %d", req.Markers, w.epoch)
	m := &req.Markers[0]
	id := w.owner[m.ProducerID]
	v := w.shard.txns[id].hard
	if v.Producer != (pair{m.ProducerID, m.ProducerEpoch}) || !v.State.isPrepare() || m.Committed != (v.State == PrepareCommit) {
		t.Fatalf("marker %+v for %+v", m, v)
	}
	if machine.TxnStartOf(&m.UnknownTags) != machine.TxnStart(v.Start) {
		t.Fatalf("marker of the transaction that began at %d, which is %d", machine.TxnStartOf(&m.UnknownTags), v.Start)
	}
	for _, topic := range m.Topics {
		for _, p := range topic.Partitions {
			if !contains(v.Topics, topic.Topic, p) || w.image.Topic(topic.Topic).Partitions[p].Leader != s.To {
				t.Fatalf("marker for %s:%d sent to node %d", topic.Topic, p, s.To)
			}
			w.carriers[s.ID] = append(w.carriers[s.ID], carried{id, partitionKey{topic.Topic, p}})
		}
	}
}

func (w *world) request(t *rapid.T, msg kmsg.Request) {
	w.next++
	again := harness.OnTheWire(t, msg)
	w.asked[w.next] = again
	w.step(t, machine.Request{ID: w.next, ClientID: "c", Host: "h", Msg: again})
}

func (w *world) check(t *rapid.T) {
	assert.Must(t, w.shard.CheckInvariants())
	live := w.shard.Digest()
	for what, log := range map[string][]machine.Record{"log": w.log, "compacted": compacted(w.log, false), "with tombstones": compacted(w.log, true)} {
		assert.MustEqual(t, replayed(log, w.cfg).Digest(), live, "the %s says something else than the shard knows", what)
	}
	waiting := len(w.shard.ids.waiting)
	expected := []machine.TimerKey{{Kind: TimerExpire}, {Kind: TimerSweep}}
	if waiting > 0 {
		expected = append(expected, machine.TimerKey{Kind: TimerIDs})
	}
	for _, id := range w.shard.sortedIDs() {
		if x := w.shard.txns[id]; x.ending != nil {
			waiting += len(x.ending.waiting)
			expected = append(expected, markersKey(x))
			if len(x.ending.waiting) > 0 {
				expected = append(expected, waitKey(x))
			}
		}
	}
	assert.MustTrue(t, waiting == len(w.asked), "%d requests are not answered, %d wait", len(w.asked), waiting)
	assert.MustEqual(t, len(expected), len(w.timers), "timers %v, expected %v", w.timers, expected)
	for _, key := range expected {
		if tm, ok := w.timers[key]; !ok || tm.At.Before(w.now) {
			t.Fatalf("timer %v is not armed, or for the past: %v", key, tm)
		}
	}
}

// pass lets time pass. calmly has the brokers answer at once.
func (w *world) pass(t *rapid.T, d time.Duration, calmly bool) {
	until := w.now.Add(d)
	for n := 0; ; n++ {
		for calmly && len(w.open) > 0 {
			w.deliver(t, 0, machine.Sent{Msg: w.answerFor(w.open[0], func(string) int16 { return 0 })})
		}
		tm, ok := harness.Due(w.timers, until)
		if !ok {
			break
		}
		assert.MustTrue(t, n <= 100_000, "timers fire again and again: %v", w.timers)
		delete(w.timers, tm.Key)
		w.now = tm.At
		w.stale = append(w.stale, tm)
		w.step(t, machine.TimerFired{Key: tm.Key, Seq: tm.Seq})
	}
	w.now = until
}

// calm leaves the shard alone, with brokers that answer. Each transaction ends when
// its time is over and the next sweep has been.
func (w *world) calm(t *rapid.T) {
	w.failing = false
	w.image = imageOf("t=1,2", "u=1", metadata.OffsetsTopic+"=1,2")
	w.pass(t, maxTimeout+2*w.cfg.SweepInterval+markerPatience, true)
	for _, id := range w.shard.sortedIDs() {
		if s := w.shard.txns[id].hard.State; s == Ongoing || s.isPrepare() {
			t.Fatalf("left alone, %s stays %s", id, s)
		}
	}
	assert.MustTrue(t, len(w.asked) == 0, "%d requests were never answered", len(w.asked))
	w.pass(t, w.cfg.IDExpiration+2*w.cfg.ExpireInterval, true)
	if ids := w.shard.sortedIDs(); len(ids) > 0 || len(w.timers) != 2 {
		t.Fatalf("left alone, %q stay with timers %v", ids, w.timers)
	}
}

// deliver gives the outcome of an open send to the shard.
func (w *world) deliver(t *rapid.T, i int, e machine.Sent) {
	s := w.open[i]
	w.open = slices.Delete(w.open, i, i+1)
	e.ID = s.ID
	w.acknowledge(w.shard.sends[s.ID] != nil, e)
	w.answered = append(w.answered, e)
	w.step(t, e)
}

// answerFor is a broker's answer to a send.
func (w *world) answerFor(s machine.Send, code func(tp string) int16) kmsg.Response {
	if req, ok := s.Msg.(*kmsg.WriteTxnMarkersRequest); ok {
		return markersAnswer(req, code)
	}
	resp := kmsg.NewPtrAllocateProducerIDsResponse()
	resp.ProducerIDStart, resp.ProducerIDLen = w.nextID, 2
	w.nextID += 2
	return resp
}

func showPair(p pair) string { return fmt.Sprintf("%d/%d", p.id, p.epoch) }
