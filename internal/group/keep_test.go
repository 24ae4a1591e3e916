package group

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// A shard may rest for hours after a step, and keeps nothing of it but the room that
// its lists have.
func TestAShardForgetsWhatItsLastStepWasAbout(t *testing.T) {
	s := stableGroup(t)
	g := s.classic("g")
	req := kmsg.NewPtrLeaveGroupRequest()
	req.Version, req.Group = 5, "g"
	for m := g.Members.First; m != nil; m = m.Next {
		req.Members = append(req.Members, kmsg.LeaveGroupRequestMember{MemberID: m.ID, InstanceID: m.Instance})
	}
	fx := s.Step(machine.Input{Now: g.Members.First.Deadline, Image: imageOf(nil), Event: machine.Request{ID: 7, Msg: req}})
	if len(fx.Batches) == 0 || len(fx.Replies) == 0 || len(fx.Timers) == 0 || len(fx.Notes) == 0 {
		t.Fatalf("the step has too few effects: %+v", fx)
	}
	records := fx.Batches[0].Records
	if s.step.Changed[:1][0] != nil {
		t.Error("a group is kept that had changed")
	}
	s.ReleaseEffects()
	if s.step.Image != nil || records[0] != nil || fx.Batches[0].Records != nil || fx.Replies[0].Msg != nil {
		t.Error("an image, a record or an answer is kept")
	}
	if fx.Timers[0].Key.ID != "" || fx.Notes[0] != nil {
		t.Error("a timer or an entry of the journal is kept")
	}
}
