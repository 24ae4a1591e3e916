package txn

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/machine"
)

// A shard may rest for hours after someone asked for everything, and keeps nothing
// of that step but the room that its lists have.
func TestAShardForgetsWhatItsLastStepWasAbout(t *testing.T) {
	s := NewShard(DefaultConfig())
	s.Replay(machine.Stored{Records: []machine.StoredRecord{{Record: &Record{TransactionalID: "x", Value: &Value{
		Producer: pair{1, 5}, Timeout: 1000, State: Ongoing, Topics: []topic{{"t", []int32{0}}}, Previous: none, Next: noPair, Last: none,
	}}}}})
	end := kmsg.NewPtrEndTxnRequest()
	end.Version, end.TransactionalID, end.ProducerID, end.ProducerEpoch = endTV2, "x", 1, 5
	var core machine.Core = s
	fx := core.Step(machine.Input{Now: time.Unix(100, 0), Image: imageOf("t=1"), Event: machine.Request{ID: 7, Msg: end}})
	assert.MustTrue(t, len(fx.Batches) != 0 && len(fx.Sends) != 0 && len(fx.Replies) != 0 && len(fx.Timers) != 0, "the step has too few effects: %+v", fx)
	records := fx.Batches[0].Records
	core.(machine.EffectsReleaser).ReleaseEffects()
	if s.step.image != nil || records[0] != nil || fx.Batches[0].Records != nil || fx.Replies[0].Msg != nil {
		t.Error("an image, a record or an answer is kept")
	}
	assert.True(t, fx.Sends[0].Msg == nil && fx.Timers[0].Key.ID == "", "a send or a timer is kept")
	end.Version = endTV2 - 1
	fx = core.Step(machine.Input{Now: time.Unix(100, 0), Event: machine.Request{ID: 8, ClientID: "c", Msg: end}})
	assert.MustEqual(t, len(fx.Notes), 1, "the end of somebody who was fenced is told of by %+v", fx.Notes)
	core.(machine.EffectsReleaser).ReleaseEffects()
	assert.True(t, fx.Notes[0] == nil, "an entry of the journal is kept")
}
