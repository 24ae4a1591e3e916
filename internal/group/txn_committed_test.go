package group

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/machine"
)

// committedOffsets is what groups have committed.
func (s *Shard) committedOffsets() map[CommittedOffset]bool {
	out := map[CommittedOffset]bool{}
	for id, g := range s.Groups {
		for name, t := range g.Common().Offsets {
			for p, k := range t.Parts {
				out[CommittedOffset{Group: id, Topic: name, Partition: p, Offset: k.At}] = true
			}
		}
	}
	return out
}

// committedIn is the offsets that notes tell of.
func committedIn(notes []machine.Note) []CommittedOffset {
	return slices.Concat(machine.NotesOf[Committed](notes)...)
}

// checkCommitted holds what a step tells of committed offsets against what is different
// since: of markers it tells all that they commit, of everything else nothing.
func checkCommitted(t interface{ Fatalf(string, ...any) }, before map[CommittedOffset]bool, s *Shard, e machine.Event, told []CommittedOffset) {
	r, _ := e.(machine.Request)
	if _, ok := r.Msg.(*kmsg.WriteTxnMarkersRequest); !ok {
		if len(told) > 0 {
			t.Fatalf("%T is told to have committed %v", e, told)
		}
		return
	}
	now := s.committedOffsets()
	for o := range now {
		if !before[o] && !slices.Contains(told, o) {
			t.Fatalf("nobody is told of %v", o)
		}
	}
	for i, o := range told {
		if !now[o] && !slices.ContainsFunc(told[i+1:], func(later CommittedOffset) bool {
			return later.Group == o.Group && later.Topic == o.Topic && later.Partition == o.Partition
		}) {
			t.Fatalf("%v is not committed", o)
		}
	}
}

// What the end of a transaction commits is told of, but not what another commit has
// overtaken, nor what is aborted; and it is not kept.
func TestTheEndOfATransactionTellsWhatItCommits(t *testing.T) {
	s := newScenario(t)
	pending := func(producer int64, tp subscription.TopicPartition, at int64) {
		p := s.shard.applyOpen(&machine.Producer{ID: producer, Epoch: 1, Transactional: true})
		s.shard.applyPending(p, &schema.OffsetRecord{Group: "g", Topic: tp.Topic, Partition: tp.Partition, Value: &schema.Offset{Offset: at, ExpireTimestamp: -1}})
	}
	var notes []machine.Note
	end := func(producer int64, commit bool) []CommittedOffset {
		m := kmsg.NewWriteTxnMarkersRequestMarker()
		m.ProducerID, m.ProducerEpoch, m.Committed = producer, 2, commit
		req := kmsg.NewPtrWriteTxnMarkersRequest()
		req.Version, req.Markers = 2, append(req.Markers, m)
		notes = s.shard.Step(machine.Input{Now: s.Now, Event: machine.Request{ID: 1, Msg: req}}).Notes
		return committedIn(notes)
	}
	a, b := subscription.TopicPartition{Topic: "t", Partition: 0}, subscription.TopicPartition{Topic: "t", Partition: 1}
	pending(1, a, 5)
	pending(1, b, 6)
	pending(2, b, 9)
	got := end(2, true)
	if want := []CommittedOffset{{Group: "g", Topic: "t", Partition: 1, Offset: 9}}; !slices.Equal(got, want) {
		t.Errorf("the later one commits %v, want %v", got, want)
	}
	s.shard.ReleaseEffects()
	if notes[0] != nil {
		t.Error("a note is kept")
	}
	if got, want := end(1, true), []CommittedOffset{{Group: "g", Topic: "t", Partition: 0, Offset: 5}}; !slices.Equal(got, want) {
		t.Errorf("the earlier one commits %v, want %v", got, want)
	}
	pending(3, a, 7)
	if got := end(3, false); len(got) != 0 {
		t.Errorf("an abort commits %v", got)
	}
	if got := end(4, true); len(got) != 0 {
		t.Errorf("a transaction without offsets commits %v", got)
	}
}
