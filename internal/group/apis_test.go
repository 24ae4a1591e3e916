package group

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// What the runtime must know of a request stands beside who handles it.
func TestEachRequestAboutGroupsSaysHowItFailsAndWhatItNeeds(t *testing.T) {
	random := map[kmsg.Key]bool{kmsg.JoinGroup: true, kmsg.ConsumerGroupHeartbeat: true}
	for key, a := range apis {
		req := key.Request()
		req.SetVersion(req.MaxVersion())
		if failed(req, kerr.NotCoordinator) == nil || (a.serve == nil) == (a.Serve == nil) {
			t.Errorf("%s is not handled, or does not fail", key.Name())
		}
		if needsRandom(req) != random[key] {
			t.Errorf("%s needs random bytes: %t", key.Name(), !random[key])
		}
		if resp := whileLoading(req); (resp != nil) != (key == kmsg.Heartbeat) {
			t.Errorf("%s is answered with %+v while groups are loaded", key.Name(), resp)
		}
	}
	if len(apis) != 21 {
		t.Errorf("there are %d requests", len(apis))
	}
	beat := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	if beat.MemberID = "m"; needsRandom(beat) {
		t.Error("a heartbeat of a member needs random bytes")
	}
	if resp := failed(beat, kerr.NotCoordinator).(*kmsg.ConsumerGroupHeartbeatResponse); resp.ErrorCode != kerr.NotCoordinator.Code {
		t.Errorf("it fails with %+v", resp)
	}
}

func TestARequestThatNoGroupHandlesIsABrokenInvariant(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Metadata is handled by a group")
		}
	}()
	NewShard(DefaultConfig()).Step(machine.Input{Event: machine.Request{Msg: kmsg.NewPtrMetadataRequest()}})
}
