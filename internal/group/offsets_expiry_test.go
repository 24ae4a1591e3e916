package group

import (
	"testing"
	"time"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// A group that was nothing but its offsets goes with the last of them, once.
func TestASimpleGroupWhoseOffsetsExpireIsDeletedOnce(t *testing.T) {
	s, now := NewShard(kind.DefaultConfig()), time.Unix(1_700_000_000, 0)
	s.apply(&schema.OffsetRecord{Group: "g", Topic: "t", Value: &schema.Offset{Offset: 3, ExpireTimestamp: now.UnixMilli()}})
	fx := s.Step(machine.Input{Now: now, Event: machine.TimerFired{Key: machine.TimerKey{Kind: kind.TimerSweep}}})
	var told []journal.EntryKind
	for _, e := range machine.NotesOf[*journal.Entry](fx.Notes) {
		told = append(told, e.Kind)
	}
	if len(told) != 2 || told[0] != journal.KindOffsetsExpired || told[1] != journal.KindDeleted || s.Len() > 0 {
		t.Errorf("the journal says %v, and %d groups are left", told, s.Len())
	}
	if n := len(fx.Batches[0].Records); n != 1 {
		t.Errorf("%d records are written", n)
	}
}
