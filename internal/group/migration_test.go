package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/machine"
)

// refusing is a classic group of n members whose last one has an assignment that cannot go
// over, and a function that has a member of the consumer protocol be refused.
func refusing(t testing.TB, n int) (*classic.Group, func() string) {
	s := NewShard(kind.DefaultConfig())
	g := classic.New(kind.Base{ID: "g"})
	g.State, g.Protocol, g.Generation = classic.Stable, "range", 1
	for i := range n {
		m := &classic.Member{ID: fmt.Sprintf("m%05d", i), Session: time.Hour, Rebalance: time.Hour, Protocols: []classic.Protocol{{Name: "range", Metadata: subscriptionOf("t")}}, Assigned: assignmentOf(fmt.Sprintf("t:%d", i))}
		g.Add(m, subscription.ConsumerType)
	}
	g.Members.Last.Assigned = assignmentOf(fmt.Sprintf("t:%d~x", n))
	s.Groups["g"] = g
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.RebalanceTimeoutMillis = 1, "g", "c", 1000
	req.SubscribedTopicNames, req.Topics = []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	in := machine.Input{Now: time.Unix(1_700_000_000, 0), Event: machine.Request{ID: 7, ClientID: "c", Host: "h", Msg: req}}
	return g, func() string {
		fx := s.Step(in)
		m := fx.Replies[0].Msg.(*kmsg.ConsumerGroupHeartbeatResponse)
		if m.ErrorMessage == nil {
			return ""
		}
		return *m.ErrorMessage
	}
}

// Whoever is refused comes again and again. That does not have everything read each time
// that all members say.
func TestARefusedUpgradeIsRemembered(t *testing.T) {
	g, beat := refusing(t, 500)
	first := beat()
	if first == "" {
		t.Fatal("the group is upgraded")
	}
	if n := testing.AllocsPerRun(100, func() { beat() }); n > 20 {
		t.Errorf("a refusal allocates %v times", n)
	}
	if again := beat(); again != first {
		t.Errorf("first it says %q, then %q", first, again)
	}
	// Another obstacle does not hide that this one is gone.
	g.Members.First.Assigned = assignmentOf("t:1")
	g.Members.Last.Assigned = assignmentOf("t:600")
	if next := beat(); next == first || next == "" {
		t.Errorf("with another obstacle it says %q", next)
	}
	g.Members.First.Protocols = []classic.Protocol{{Name: "range", Metadata: subscriptionOf("u")}} // The same member, and it is about its assignment still.
	if next := beat(); next == "" {
		t.Error("with an obstacle the group is upgraded")
	}
	g.Members.First.Assigned = assignmentOf("t:0")
	if last := beat(); last != "" {
		t.Errorf("without an obstacle it says %q", last)
	}
}

// A group that is too large is refused until there is more room, or less of it.
func TestAGroupThatIsTooLargeIsRefusedUntilItIsNot(t *testing.T) {
	g, _ := refusing(t, 3)
	x := &kind.Step{Shard: &NewShard(kind.DefaultConfig()).Shard, MaxBatch: 10}
	now := g.LargeNow(x)
	g.Refusal = &classic.NoUpgrade{Reason: "r", Large: &now}
	if g.RefusedBefore(x) != "r" {
		t.Error("it is forgotten at once")
	}
	x.MaxBatch = 20
	if g.RefusedBefore(x) != "" || g.Refusal != nil {
		t.Error("with more room it is remembered")
	}
	x.MaxBatch, g.Refusal = 10, &classic.NoUpgrade{Reason: "r", Large: &now}
	g.Members.Count--
	if g.RefusedBefore(x) != "" {
		t.Error("with less members it is remembered")
	}
}

// Members of the classic protocol that support nothing in common stay in a consumer group,
// and their joins do not each make a classic group to find that out.
func TestADowngradeThatCannotBeIsRemembered(t *testing.T) {
	s := newScenario(t)
	s.host = "10.0.0.1"
	lines := []string{"topics t=1:4", "config interval=0s migration=upgrade", "beat c", "join a member=a v=3 protocols=(range:t)", "join b member=b v=3 protocols=(range:t)", "beat c epoch=-1 member=c"}
	for _, line := range lines {
		cmd, args, err := datadriven.ParseLine(line)
		must(t, err)
		commands[cmd](s, &datadriven.TestData{Cmd: cmd, CmdArgs: args})
	}
	g := s.shard.consumer("g")
	if g == nil || g.Classic != 2 || g.Present != 2 {
		t.Fatalf("the group is %+v", g)
	}
	x := &kind.Step{Shard: &s.shard.Shard, Now: s.Now, Image: s.image, MaxBatch: 10}
	x.Cfg.Consumer.Migration = kind.MigrateBoth
	if g.DowngradedWithout(x, nil, "") != nil || g.DowngradeRefusal == nil {
		t.Fatal("what does not fit becomes a classic group, or that is not remembered")
	}
	if n := testing.AllocsPerRun(100, func() { g.DowngradedWithout(x, nil, "") }); n > 0 {
		t.Errorf("it allocates %v times to find out what is known", n)
	}
	known := g.DowngradeRefusal
	if g.DowngradedWithout(x, g.Members[0], "") != nil || g.DowngradeRefusal == known {
		t.Error("without a member it is another question")
	}
	g.DowngradedWithout(x, nil, "")
	known = g.DowngradeRefusal
	x.ApplyRecord(&schema.ConsumerTargetRecord{Group: g.ID, Member: "a"})
	if g.DowngradedWithout(x, nil, ""); g.DowngradeRefusal == known {
		t.Error("what is remembered is not forgotten when the group changes")
	}
	x.MaxBatch = 0
	if g.DowngradedWithout(x, nil, "") == nil || g.DowngradeRefusal != nil {
		t.Error("with room for it there is no classic group")
	}
}
