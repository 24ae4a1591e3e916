package group

import (
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// refusing is a classic group of n members whose last one has an assignment that cannot go
// over, and a function that has a member of the consumer protocol be refused.
func refusing(t testing.TB, n int) (*classicGroup, func() string) {
	s := NewShard(DefaultConfig())
	g := newClassicGroup(base{id: "g"})
	g.state, g.protocol, g.generation = Stable, "range", 1
	for i := range n {
		m := &member{id: fmt.Sprintf("m%05d", i), session: time.Hour, rebalance: time.Hour, protocols: []protocol{{"range", subscription("t")}}, assigned: assignment(fmt.Sprintf("t:%d", i))}
		g.add(m, consumerType)
	}
	g.members.last.assigned = assignment(fmt.Sprintf("t:%d~x", n))
	s.groups["g"] = g
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
	g.members.first.assigned = assignment("t:1")
	g.members.last.assigned = assignment("t:600")
	if next := beat(); next == first || next == "" {
		t.Errorf("with another obstacle it says %q", next)
	}
	g.members.first.protocols = []protocol{{"range", subscription("u")}} // The same member, and it is about its assignment still.
	if next := beat(); next == "" {
		t.Error("with an obstacle the group is upgraded")
	}
	g.members.first.assigned = assignment("t:0")
	if last := beat(); last != "" {
		t.Errorf("without an obstacle it says %q", last)
	}
}

// A group that is too large is refused until there is more room, or less of it.
func TestAGroupThatIsTooLargeIsRefusedUntilItIsNot(t *testing.T) {
	g, _ := refusing(t, 3)
	x := &step{shardState: &NewShard(DefaultConfig()).shardState, maxBatch: 10}
	now := g.largeNow(x)
	g.refusal = &noUpgrade{reason: "r", large: &now}
	if g.refusedBefore(x) != "r" {
		t.Error("it is forgotten at once")
	}
	x.maxBatch = 20
	if g.refusedBefore(x) != "" || g.refusal != nil {
		t.Error("with more room it is remembered")
	}
	x.maxBatch, g.refusal = 10, &noUpgrade{reason: "r", large: &now}
	g.members.count--
	if g.refusedBefore(x) != "" {
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
		if err != nil {
			t.Fatal(err)
		}
		commands[cmd](s, &datadriven.TestData{Cmd: cmd, CmdArgs: args})
	}
	g := s.shard.consumer("g")
	if g == nil || g.classic != 2 || g.present != 2 {
		t.Fatalf("the group is %+v", g)
	}
	x := &step{shardState: &s.shard.shardState, now: s.now, image: s.image, maxBatch: 10}
	x.cfg.Consumer.Migration = MigrateBoth
	if g.classicOf(x, nil, "") != nil || g.stays == nil {
		t.Fatal("what does not fit becomes a classic group, or that is not remembered")
	}
	if n := testing.AllocsPerRun(100, func() { g.classicOf(x, nil, "") }); n > 0 {
		t.Errorf("it allocates %v times to find out what is known", n)
	}
	known := g.stays
	if g.classicOf(x, g.members[0], "") != nil || g.stays == known {
		t.Error("without a member it is another question")
	}
	g.classicOf(x, nil, "")
	known = g.stays
	x.applyRecord(&schema.ConsumerTargetRecord{Group: g.id, Member: "a"})
	if g.classicOf(x, nil, ""); g.stays == known {
		t.Error("what is remembered is not forgotten when the group changes")
	}
	x.maxBatch = 0
	if g.classicOf(x, nil, "") == nil || g.stays != nil {
		t.Error("with room for it there is no classic group")
	}
}
