package exact

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/partition"
	"muster/internal/store"
)

// digester is what both cores can say about their state.
type digester interface {
	machine.Core
	Digest() uint64
	CheckInvariants() error
}

// checkDigests: what the live cores hold is what a replay of their logs gives, of
// all that was ever appended and of what compaction has left; and what a partition
// knows of its producers is what one knows that loads it anew.
func (w *world) checkDigests() {
	for _, tp := range w.partitions() {
		b := w.brokers[leaderOf(w.image(), tp)]
		if s := b.shards[tp]; s != nil {
			s.checkDigest()
			continue
		}
		l := w.store.log(tp)
		live := b.manager.Get(tp.Topic, tp.Partition).Producers()
		want := store.NewProducerMap(nil)
		for _, e := range l.raw {
			if _, err := want.Note(e.batch, e.batch.MaxTimestamp()); err != nil {
				w.Violated("%v: %v", tp, err)
			}
		}
		w.checkProducers(tp, live, want.List())
	}
}

// checkProducers compares what a partition knows of its producers with what its log
// says. Where they expire, some may be gone, and others have come back since.
func (w *world) checkProducers(tp store.TopicPartition, live, want []store.Producer) {
	if d := w.plan.expiry.producers; d > 0 {
		oldest := w.Clock().Add(-d + 2*maxSkew).UnixMilli()
		want = slices.DeleteFunc(want, func(x store.Producer) bool {
			known := slices.ContainsFunc(live, func(y store.Producer) bool { return x.ID == y.ID })
			return !known && x.LastTimestamp < oldest && x.TxnFirst == store.NoTxn
		})
	}
	for _, list := range [][]store.Producer{live, want} {
		for i := range list {
			list[i].LastTimestamp = 0
			if w.plan.expiry.producers > 0 {
				list[i].Batches, list[i].CoordinatorEpoch = nil, 0
			}
		}
	}
	if len(live)+len(want) > 0 && !reflect.DeepEqual(live, want) {
		w.Violated("%v: producers are %+v, should be %+v", tp, live, want)
	}
}

func (s *shard) checkDigest() {
	w := s.b.w
	live := s.core.(digester)
	if err := live.CheckInvariants(); err != nil {
		w.Violated("%v: %v", s.tp, err)
	}
	loaded, err := s.replay()
	if err != nil {
		w.Violated("%v cannot be loaded: %v", s.tp, err)
	}
	all := s.kind.New().(digester)
	for _, e := range w.store.log(s.tp).raw {
		all.Replay(w.decoded(s.kind, e.batch))
	}
	if live.Digest() != loaded.(digester).Digest() {
		w.Violated("%v: what is loaded is not what is live", s.tp)
	}
	if live.Digest() != all.Digest() {
		w.Violated("%v: what was appended is not what is live", s.tp)
	}
}

// checkCompacted: once the output is compacted, someone who reads it for the first
// time still gets every committed record, and no other.
func (w *world) checkCompacted() {
	for _, r := range w.readers {
		if !r.committed || r.tp.Topic != outputTopic {
			continue
		}
		tp := r.tp
		for range w.Rand.IntN(3) {
			w.compact(tp, w.Between(0, time.Minute))
		}
		b, late := w.brokers[leaderOf(w.image(), tp)], &reader{w: w, tp: tp, committed: true, offset: w.store.log(tp).start}
		for end := w.store.log(tp).end(); late.offset < end; {
			before := late.offset
			f := fetch{tp, partition.Fetch{Offset: late.offset, LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: 500, MinOne: true, Committed: true}}
			b.fetch(f, func(a any) { late.take(a.(fetched)) })
			if late.offset == before {
				break // What follows was compacted.
			}
		}
		early := slices.DeleteFunc(slices.Clone(r.got), func(s seen) bool { return s.offset < w.store.log(tp).start })
		if want, got := copied(early), copied(late.got); !maps.Equal(want, got) {
			w.Violated("%v: a late reader gets %d records, an early one got %d", tp, len(got), len(want))
		}
	}
}

// copied counts records that are copies of input.
func copied(list []seen) map[string]int {
	out := map[string]int{}
	for _, s := range list {
		if s.key != "noise" {
			out[s.key+" of "+s.value]++
		}
	}
	return out
}

// checkAdmin: what administrators are told agrees with the logs.
func (w *world) checkAdmin() {
	listed := 0
	for i := range w.plan.states {
		tp := store.TopicPartition{Topic: stateTopic, Partition: i}
		req := kmsg.NewPtrListTransactionsRequest()
		req.Version, req.DurationFilterMillis = 1, -1
		w.brokers[leaderOf(w.image(), tp)].ask(tp, "admin", req, func(r kmsg.Response) {
			resp := r.(*kmsg.ListTransactionsResponse)
			for _, t := range resp.TransactionStates {
				listed++
				v := w.model.id(t.TransactionalID).value
				if v == nil || t.TransactionState != stateNames[v.State] || t.ProducerID != v.ProducerID {
					w.Violated("%s is listed as %s of %d, should be %v", t.TransactionalID, t.TransactionState, t.ProducerID, v)
				}
			}
		})
	}
	for _, id := range w.txnIDs {
		if w.model.id(id).value != nil {
			listed--
			w.describe(id, true)
		}
	}
	if listed != 0 {
		w.Violated("%d more transactional ids are listed than there are", listed)
	}
}

// administer has an administrator ask for a transaction.
func (w *world) administer() { w.describe(w.txnIDs[w.Rand.IntN(len(w.txnIDs))], false) }

// describe asks what the coordinator knows of a transactional id. At rest that is
// what the log says.
func (w *world) describe(id string, atRest bool) {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{id}
	tp := store.TopicPartition{Topic: stateTopic, Partition: journal.PartitionFor(id, w.plan.states)}
	b := w.brokers[leaderOf(w.image(), tp)]
	if !b.up || b.shards[tp] == nil {
		return
	}
	b.ask(tp, "admin", req, func(r kmsg.Response) {
		t := r.(*kmsg.DescribeTransactionsResponse).TransactionStates[0]
		w.Count(fmt.Sprintf("DescribeTransactions %d", t.ErrorCode))
		if v := w.model.id(id).value; atRest && (v == nil || t.State != stateNames[v.State] || t.ProducerID != v.ProducerID || t.ProducerEpoch != v.ProducerEpoch) {
			w.Violated("%s is described as %+v, should be %+v", id, t, v)
		}
	})
}
