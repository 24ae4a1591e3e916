package group

import (
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// beats returns a shard with a Stable group of two, and a function that has a
// healthy member beat.
func beats(t testing.TB) (*Shard, func() machine.Effects) {
	s := stableGroup(t)
	g := s.classic("g")
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 4, "g", g.Members.First.ID, g.Generation
	in := machine.Input{Now: g.Members.First.Deadline.Add(-g.Members.First.Session), Event: machine.Request{ID: 7, ClientID: "a", Host: "10.0.0.1", Msg: req}}
	return s, func() machine.Effects { return s.Step(in) }
}

// A heartbeat is what a broker does most. It may allocate its answer, and
// nothing else: no record, no timer, nothing for the journal.
func TestHeartbeatCostsItsAnswer(t *testing.T) {
	_, beat := beats(t)
	fx := beat()
	if len(fx.Replies) != 1 || fx.Replies[0].Msg.(*kmsg.HeartbeatResponse).ErrorCode != 0 {
		t.Fatalf("the answer is %+v", fx.Replies)
	}
	if len(fx.Batches)+len(fx.Timers)+len(fx.Notes) > 0 {
		t.Errorf("a heartbeat has effects: %+v", fx)
	}
	// The answer, the list that it is in, and the step.
	if n := testing.AllocsPerRun(1000, func() { beat() }); n > 3 {
		t.Errorf("a heartbeat allocates %v times", n)
	}
}

// consumerBeats is the same for a consumer group, whose members have nothing new to say.
func consumerBeats(t testing.TB) (*Shard, func() machine.Effects) {
	s := newScenario(t)
	s.host = "10.0.0.1"
	for _, line := range []string{"topics t=1:8", "config interval=0s", "beat a", "beat b", "beat a", "beat a owned=(t:0+1+2+3)", "beat b"} {
		cmd, args, err := datadriven.ParseLine(line)
		must(t, err)
		commands[cmd](s, &datadriven.TestData{Cmd: cmd, CmdArgs: args})
	}
	mem := s.shard.consumer("g").Member("a")
	if now := mem.Now(); !mem.HasSettled(s.shard.consumer("g").TargetEpoch) || len(now.Assigned) != 4 {
		t.Fatalf("the member is not settled: %+v", now)
	}
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.MemberEpoch, req.RebalanceTimeoutMillis = 1, "g", "a", mem.Now().Epoch, -1
	in := machine.Input{Now: s.Now, Image: s.image, MaxBatch: 1 << 20, Event: machine.Request{ID: 7, ClientID: "a", Host: "10.0.0.1", Msg: req}}
	return s.shard, func() machine.Effects { return s.shard.Step(in) }
}

// An idle heartbeat of a consumer group is as frequent, and is to cost no more: nothing
// is copied of what its member said when it joined.
func TestIdleConsumerHeartbeatCostsItsAnswer(t *testing.T) {
	_, beat := consumerBeats(t)
	fx := beat()
	if len(fx.Replies) != 1 || fx.Replies[0].Msg.(*kmsg.ConsumerGroupHeartbeatResponse).ErrorCode != 0 {
		t.Fatalf("the answer is %+v", fx.Replies)
	}
	if len(fx.Batches)+len(fx.Timers)+len(fx.Notes)+len(fx.Tasks) > 0 {
		t.Errorf("a heartbeat has effects: %+v", fx)
	}
	_, classic := beats(t)
	most := testing.AllocsPerRun(1000, func() { classic() })
	if n := testing.AllocsPerRun(1000, func() { beat() }); n > most {
		t.Errorf("a heartbeat allocates %v times, a classic one %v times", n, most)
	}
}

func BenchmarkHeartbeatClassic(b *testing.B) {
	_, beat := beats(b)
	b.ReportAllocs()
	for b.Loop() {
		beat()
	}
}

func BenchmarkHeartbeatConsumer(b *testing.B) {
	_, beat := consumerBeats(b)
	b.ReportAllocs()
	for b.Loop() {
		beat()
	}
}
