package group

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"muster/internal/group/consumer"
	"muster/internal/group/modern"
)

// reconciling returns a shard with a consumer group of which a has to let go of what b,
// which is static, waits for, and c has a regular expression.
func reconciling(t testing.TB) *Shard {
	s := newScenario(t)
	s.cfg.Consumer.Interval = 0
	s.step(Configured{Config: s.cfg})
	run := func(cmd func(*datadriven.TestData), args ...datadriven.CmdArg) {
		cmd(&datadriven.TestData{CmdArgs: args})
	}
	one := func(key, value string) datadriven.CmdArg { return datadriven.CmdArg{Key: key, Vals: []string{value}} }
	run(s.setTopics, one("t", "1:4"))
	run(s.beat, datadriven.CmdArg{Key: "c"}, one("topics", ""), one("regex", "x"))
	run(s.runTasks)
	run(s.beat, datadriven.CmdArg{Key: "a"})
	run(s.beat, datadriven.CmdArg{Key: "b"}, one("instance", "i"))
	run(s.beat, datadriven.CmdArg{Key: "a"})
	run(s.beat, datadriven.CmdArg{Key: "c"})
	must(t, s.shard.CheckInvariants())
	return s.shard
}

// Invariants that find nothing would make every test pass.
func TestCheckInvariantsFindsWhatIsWrongWithConsumers(t *testing.T) {
	p := func(n int32) consumer.Held {
		return consumer.Held{Part: consumer.Partition{Topic: [16]byte{15: 1}, Number: n}, Since: 1}
	}
	for what, spoil := range map[string]func(c *consumer.Group, a, b, x *consumer.Member){
		"a target that is to come":          func(c *consumer.Group, _, _, _ *consumer.Member) { c.TargetEpoch = c.Epoch + 1 },
		"a member that is to come":          func(c *consumer.Group, a, _, _ *consumer.Member) { a.Current.Epoch = c.TargetEpoch + 1 },
		"members out of order":              func(c *consumer.Group, a, b, _ *consumer.Member) { c.Members[0], c.Members[1] = b, a },
		"a partition of two":                func(_ *consumer.Group, _, b, _ *consumer.Member) { b.Current.Assigned = []consumer.Held{p(0)} },
		"a partition to let go of, of two":  func(_ *consumer.Group, _, b, _ *consumer.Member) { b.Current.Assigned = []consumer.Held{p(3)} },
		"a partition of nobody":             func(c *consumer.Group, _, _, _ *consumer.Member) { delete(c.Owners, p(0).Part) },
		"an owner of nothing":               func(c *consumer.Group, a, _, _ *consumer.Member) { c.Owners[p(7).Part] = a },
		"a partition given in time to come": func(_ *consumer.Group, a, _, _ *consumer.Member) { a.Current.Assigned[0].Since = 9 },
		"two targets with one partition": func(_ *consumer.Group, _, b, _ *consumer.Member) {
			b.Target = append([]consumer.Partition{p(0).Part}, b.Target...)
		},
		"stable with too little": func(_ *consumer.Group, _, b, _ *consumer.Member) { b.Current.State = modern.Stable },
		"stable with too much": func(_ *consumer.Group, _, _, x *consumer.Member) {
			x.Target = []consumer.Partition{}
			x.Current.Assigned = []consumer.Held{p(9)}
		},
		"nobody waits for who has to let go": func(_ *consumer.Group, a, _, _ *consumer.Member) { a.RevokeSeq = 0 },
		"somebody waits for who has not":     func(_ *consumer.Group, _, b, _ *consumer.Member) { b.RevokeSeq = 7 },
		"unrevoked with nothing":             func(_ *consumer.Group, a, _, _ *consumer.Member) { a.Current.Pending = nil },
		"something to let go of, stable":     func(_ *consumer.Group, a, _, _ *consumer.Member) { a.Current.State, a.RevokeSeq = modern.Stable, 0 },
		"no session":                         func(_ *consumer.Group, a, _, _ *consumer.Member) { a.TimerSeq = 0 },
		"a session that ends too late":       func(_ *consumer.Group, a, _, _ *consumer.Member) { a.TimerAt = a.Deadline.Add(1) },
		"an instance of two":                 func(_ *consumer.Group, a, b, _ *consumer.Member) { a.Metadata.Instance = b.Metadata.Instance },
		"an instance of nobody":              func(c *consumer.Group, _, b, _ *consumer.Member) { c.Instances["j"] = b },
		"a dynamic member that is away":      func(_ *consumer.Group, _, _, x *consumer.Member) { x.Current.Epoch = modern.EpochLeaveStatic },
		"a member that has not joined":       func(_ *consumer.Group, a, _, _ *consumer.Member) { a.Metadata = nil },
		"members that are miscounted":        func(c *consumer.Group, _, _, _ *consumer.Member) { c.Present++ },
		"topics that are miscounted":         func(c *consumer.Group, _, _, _ *consumer.Member) { c.Names["t"]++ },
		"patterns that are miscounted":       func(c *consumer.Group, _, _, _ *consumer.Member) { c.Patterns["x"]++ },
		"a pattern of nobody":                func(c *consumer.Group, _, _, _ *consumer.Member) { c.Regexes["y"] = &consumer.Regex{} },
		"who has no protocols to join with":  func(_ *consumer.Group, a, _, _ *consumer.Member) { a.JoinSeq = 7 },
		"who does not sync":                  func(_ *consumer.Group, a, _, _ *consumer.Member) { a.SyncSeq = 7 },
		"classic members miscounted":         func(c *consumer.Group, _, _, _ *consumer.Member) { c.Classic++ },
		"protocols of nobody":                func(c *consumer.Group, _, _, _ *consumer.Member) { c.Supported.Add("x", 1) },
		"a heartbeat of nobody that waits": func(c *consumer.Group, _, _, _ *consumer.Member) {
			c.Run = &modern.Run[consumer.Partition, *consumer.Member]{Parked: &modern.Pending[consumer.Partition]{Member: "y"}}
		},
	} {
		s := reconciling(t)
		c := s.consumer("g")
		spoil(c, c.Members[0], c.Members[1], c.Members[2])
		if s.CheckInvariants() == nil {
			t.Errorf("%s goes unnoticed", what)
		}
	}
}
