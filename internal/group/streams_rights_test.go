package group

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/group/kind"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// Internal topics are created with the rights of whoever's heartbeat finds that they are
// missing. Who has none is told, and others may have them.
func TestInternalTopicsAreCreatedWithTheRightsOfWhoAsks(t *testing.T) {
	edit := guardedImage(t).Edit()
	edit.AddRule(auth.Rule{Type: auth.Topic, Pattern: auth.Literal, Name: "log", Principal: auth.User("ann"), Host: auth.AnyHost, Operation: auth.Create, Permission: auth.Allow})
	edit.AddRule(auth.Rule{Type: auth.Cluster, Pattern: auth.Literal, Name: auth.ClusterName, Principal: auth.User("root"), Host: auth.AnyHost, Operation: auth.Create, Permission: auth.Allow})
	image := edit.Image()
	for _, c := range []struct{ user, creates, says string }{
		{"bob", "", "Unauthorized to CREATE on topics log, log2."},
		{"ann", "log", "Unauthorized to CREATE on topics log2."},
		{"root", "log log2", ""},
	} {
		s := NewShard(kind.DefaultConfig())
		s.Step(machine.Input{Now: time.Unix(100, 0), Image: image, Event: machine.Loaded{Epoch: 1}})
		req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
		req.Group, req.MemberID, req.RebalanceTimeoutMillis, req.ProcessID = "g", "m", 1000, new("p")
		req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = []kmsg.TaskIDs{}, []kmsg.TaskIDs{}, []kmsg.TaskIDs{}
		topology := kmsg.NewStreamsGroupHeartbeatRequestTopology()
		topology.Subtopologies = append(topology.Subtopologies, parseSubtopology("0: mine / log log2"))
		req.Topology = &topology
		fx := s.Step(machine.Input{Now: time.Unix(100, 0), Image: image, Event: machine.Request{ID: 1, Asker: metadata.Asker{Principal: auth.User(c.user)}, Msg: req}})
		var created []string
		for _, m := range fx.Sends {
			for _, topic := range m.Msg.(*kmsg.CreateTopicsRequest).Topics {
				created = append(created, topic.Topic)
			}
		}
		assert.Equal(t, strings.Join(created, " "), c.creates, c.user)
		detail := fx.Replies[0].Msg.(*kmsg.StreamsGroupHeartbeatResponse).Status[0].StatusDetail
		assert.Equal(t, detail, strings.TrimSpace("Internal topics are missing: [log, log2] "+c.says), c.user)
	}
}
