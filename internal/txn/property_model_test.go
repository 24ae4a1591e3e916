package txn

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"

	"muster/internal/assert"
	"muster/internal/harness"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// model is what was promised to clients, and what brokers have done.
type model struct {
	given    map[pair]pair     // producers that clients were told, with what they had before
	owner    map[int64]string  // producer ids, with the transactional id
	newest   map[string]pair   // the last producer that was told for an id
	pairs    map[string][]pair // all that were told, in order
	carriers map[uint64][]carried
	written  map[carried]bool // markers of the transaction that ends, in this life
	gone     map[carried]bool // partitions that did not exist at some time since
}

type carried struct {
	id string
	partitionKey
}

func newModel() model {
	m := model{given: map[pair]pair{}, owner: map[int64]string{}, newest: map[string]pair{}, pairs: map[string][]pair{}}
	m.forget()
	return m
}

// forget begins a life.
func (m *model) forget() {
	m.carriers, m.written, m.gone = map[uint64][]carried{}, map[carried]bool{}, map[carried]bool{}
}

// sawGone notes partitions that need no marker.
func (m *model) sawGone(image *metadata.Image, values map[string]*Value) {
	for id, v := range values {
		if v.State == Ongoing || v.State.isPrepare() {
			m.eachMissing(image, id, v, func(c carried) { m.gone[c] = true })
		}
	}
}

func (m *model) eachMissing(image *metadata.Image, id string, v *Value, do func(carried)) {
	for _, t := range v.Topics {
		found := image.Topic(t.name)
		for _, p := range t.partitions {
			if found == nil || int(p) >= len(found.Partitions) {
				do(carried{id, partitionKey{t.name, p}})
			}
		}
	}
}

// acknowledge notes markers that a broker says are written, if the shard still
// expects to be told.
func (m *model) acknowledge(expected bool, e machine.Sent) {
	resp, ok := e.Msg.(*kmsg.WriteTxnMarkersResponse)
	if !ok || e.Err != nil || !expected {
		return
	}
	for _, c := range m.carriers[e.ID] {
		for _, marker := range resp.Markers {
			for _, t := range marker.Topics {
				for _, p := range t.Partitions {
					if t.Topic == c.topic && p.Partition == c.partition && slices.Contains([]int16{0, 43, 47}, p.ErrorCode) {
						m.written[c] = true
					}
				}
			}
		}
	}
}

// mayFollow lists the states that a record may follow.
var mayFollow = map[State][]State{
	Empty:          {Empty, CompleteCommit, CompleteAbort},
	Ongoing:        {Empty, Ongoing, CompleteCommit, CompleteAbort},
	PrepareCommit:  {Ongoing, PrepareCommit},
	PrepareAbort:   {Ongoing, PrepareAbort, Empty, CompleteCommit, CompleteAbort},
	CompleteCommit: {PrepareCommit},
	CompleteAbort:  {PrepareAbort},
}

// wrote checks a record against the one before it, and takes its place.
func (m *model) wrote(t *rapid.T, values map[string]*Value, r *Record) {
	id, v, before := r.TransactionalID, r.Value, values[r.TransactionalID]
	values[id] = v
	switch {
	case v == nil:
		assert.MustTrue(t, before != nil && before.State != Ongoing && !before.State.isPrepare(), "%s is removed as %+v", id, before)
		delete(values, id)
		return
	case before == nil:
		assert.MustTrue(t, v.State == Empty && m.owner[v.Producer.id] == "", "%s begins as %+v", id, v)
		m.owner[v.Producer.id] = id
		return
	case !slices.Contains(mayFollow[v.State], before.State):
		t.Fatalf("%s became %s after %s", id, v.State, before.State)
	}
	m.checkEpoch(t, id, before, v)
	switch {
	case v.State == Ongoing && (!containsAll(v.Topics, before.Topics) || len(v.Topics) == 0 || v.Start < 0):
		t.Fatalf("%s: %+v lost partitions of %+v", id, v, before)
	case v.State == Ongoing && before.State == Ongoing && v.Start != before.Start:
		t.Fatalf("%s began again at %d", id, v.Start)
	case v.State == Ongoing && before.State.isComplete() && v.Start <= before.Start:
		t.Fatalf("%s began at %d, as the one before at %d", id, v.Start, before.Start)
	case v.State.isComplete():
		m.checkAllWritten(t, id, before)
	}
}

// checkEpoch: the epoch is raised once, or not at all; a producer id that is new is
// no one's.
func (m *model) checkEpoch(t *rapid.T, id string, before, v *Value) {
	if next := v.Next; next != noPair && before.Next != next {
		assert.MustTrue(t, m.owner[next.id] == "" && before.Producer.epoch >= lastEpoch, "%s gets producer id %d after %+v", id, next.id, before)
		m.owner[next.id] = id
	}
	if v.Producer.id != before.Producer.id {
		if owner := m.owner[v.Producer.id]; owner != "" && owner != id || v.Producer.epoch != 0 {
			t.Fatalf("%s changes from %+v to %+v", id, before, v)
		}
		m.owner[v.Producer.id] = id
		return
	}
	raised := v.Producer.epoch - before.Producer.epoch
	switch {
	case raised < 0 || raised > 1:
		t.Fatalf("%s goes from %s to %s", id, showPair(before.Producer), showPair(v.Producer))
	case raised == 1 && (v.State == Ongoing || v.State.isComplete()):
		t.Fatalf("%s becomes %s with another epoch", id, v.State)
	}
}

// checkAllWritten: a transaction is complete when all its markers are.
func (m *model) checkAllWritten(t *rapid.T, id string, v *Value) {
	for _, topic := range v.Topics {
		for _, p := range topic.partitions {
			c := carried{id, partitionKey{topic.name, p}}
			assert.MustFalse(t, !m.written[c] && !m.gone[c], "%s is complete, but %s:%d has no marker", id, topic.name, p)
			delete(m.written, c)
			delete(m.gone, c)
		}
	}
}

// checkResent: a load sends the markers of all partitions that there are.
func (w *world) checkResent(t *rapid.T) {
	underWay := map[carried]bool{}
	for _, list := range w.carriers {
		for _, c := range list {
			underWay[c] = true
		}
	}
	for id, v := range w.values() {
		if !v.State.isPrepare() {
			continue
		}
		for _, topic := range v.Topics {
			found := w.image.Topic(topic.name)
			for _, p := range topic.partitions {
				if found != nil && int(p) < len(found.Partitions) && found.Partitions[p].Leader >= 0 && !underWay[carried{id, partitionKey{topic.name, p}}] {
					t.Fatalf("the load of %s did not send the marker of %s:%d", id, topic.name, p)
				}
			}
		}
	}
}

// replied checks what clients are told against what they were told before.
func (w *world) replied(t *rapid.T, e machine.Event, before map[string]*Value, wrote []machine.Record, r machine.Reply) {
	req, resp := harness.Answered(t, w.asked, r)
	switch resp := resp.(type) {
	case *kmsg.InitProducerIDResponse:
		m := req.(*kmsg.InitProducerIDRequest)
		if resp.ErrorCode == 0 {
			w.give(t, *m.TransactionalID, pair{m.ProducerID, m.ProducerEpoch}, pair{resp.ProducerID, resp.ProducerEpoch})
		}
	case *kmsg.EndTxnResponse:
		if resp.ErrorCode == 0 {
			w.ended(t, req.(*kmsg.EndTxnRequest), resp, wrote)
		}
	}
}

// give notes the producer that a client is told. One that was told before is told
// again only to who had the same before: to no one else, and never after a newer.
func (w *world) give(t *rapid.T, id string, had, p pair) {
	if p.epoch > lastEpoch || p.epoch < 0 || w.owner[p.id] != id {
		t.Fatalf("%s is told of %s, which is of %q", id, showPair(p), w.owner[p.id])
	}
	if origin, again := w.given[p]; again {
		if had == noPair || origin != had || w.newest[id] != p {
			t.Fatalf("%s is told %s again after %s: was told after %s, the newest is %s", id, showPair(p), showPair(had), showPair(origin), showPair(w.newest[id]))
		}
		return
	}
	if newest, ok := w.newest[id]; ok && newest.id == p.id && newest.epoch >= p.epoch {
		t.Fatalf("%s is told %s after %s", id, showPair(p), showPair(newest))
	}
	w.given[p], w.newest[id] = had, p
	w.pairs[id] = append(w.pairs[id], p)
}

// ended checks that what EndTxn was told is what the records say.
func (w *world) ended(t *rapid.T, m *kmsg.EndTxnRequest, resp *kmsg.EndTxnResponse, wrote []machine.Record) {
	id, asks, told := m.TransactionalID, pair{m.ProducerID, m.ProducerEpoch}, pair{resp.ProducerID, resp.ProducerEpoch}
	if m.Version >= endTV2 {
		w.give(t, id, asks, told)
	} else {
		told = asks
	}
	all := append(slices.Clone(w.log[:len(w.log)-len(wrote)]), wrote...)
	found := false
	for i := len(all) - 1; i >= 0 && !found; i-- {
		r := all[i].(*Record)
		if r.TransactionalID != id || r.Value == nil {
			continue
		}
		found = (r.Value.State == prepare(m.Commit) || r.Value.State == complete(m.Commit)) && r.Value.told() == told
		if i < len(all)-len(wrote)-1 && !found {
			break
		}
	}
	if !found {
		t.Fatalf("EndTxn(commit=%v) of %s for %s is told %s, which no record says", m.Commit, showPair(asks), id, showPair(told))
	}
	if m.Version < endTV2 && asks != w.newest[id] {
		t.Fatalf("EndTxn of %s succeeds, but %s was told since", showPair(asks), showPair(w.newest[id]))
	}
}
