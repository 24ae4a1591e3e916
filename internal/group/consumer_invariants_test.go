package group

import (
	"testing"

	"github.com/cockroachdb/datadriven"
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
	if err := s.shard.CheckInvariants(); err != nil {
		t.Fatal(err)
	}
	return s.shard
}

// Invariants that find nothing would make every test pass.
func TestCheckInvariantsFindsWhatIsWrongWithConsumers(t *testing.T) {
	p := func(n int32) heldPart { return heldPart{part{[16]byte{15: 1}, n}, 1} }
	for what, spoil := range map[string]func(c *consumerGroup, a, b, x *consumerMember){
		"a target that is to come":          func(c *consumerGroup, _, _, _ *consumerMember) { c.targetEpoch = c.epoch + 1 },
		"a member that is to come":          func(c *consumerGroup, a, _, _ *consumerMember) { a.current.epoch = c.targetEpoch + 1 },
		"members out of order":              func(c *consumerGroup, a, b, _ *consumerMember) { c.members[0], c.members[1] = b, a },
		"a partition of two":                func(_ *consumerGroup, _, b, _ *consumerMember) { b.current.assigned = []heldPart{p(0)} },
		"a partition to let go of, of two":  func(_ *consumerGroup, _, b, _ *consumerMember) { b.current.assigned = []heldPart{p(3)} },
		"a partition of nobody":             func(c *consumerGroup, _, _, _ *consumerMember) { delete(c.owners, p(0).part) },
		"an owner of nothing":               func(c *consumerGroup, a, _, _ *consumerMember) { c.owners[p(7).part] = a },
		"a partition given in time to come": func(_ *consumerGroup, a, _, _ *consumerMember) { a.current.assigned[0].since = 9 },
		"two targets with one partition":    func(_ *consumerGroup, _, b, _ *consumerMember) { b.target = append([]part{p(0).part}, b.target...) },
		"stable with too little":            func(_ *consumerGroup, _, b, _ *consumerMember) { b.current.state = memberStable },
		"stable with too much": func(_ *consumerGroup, _, _, x *consumerMember) {
			x.target = []part{}
			x.current.assigned = []heldPart{p(9)}
		},
		"nobody waits for who has to let go": func(_ *consumerGroup, a, _, _ *consumerMember) { a.revokeSeq = 0 },
		"somebody waits for who has not":     func(_ *consumerGroup, _, b, _ *consumerMember) { b.revokeSeq = 7 },
		"unrevoked with nothing":             func(_ *consumerGroup, a, _, _ *consumerMember) { a.current.pending = nil },
		"something to let go of, stable":     func(_ *consumerGroup, a, _, _ *consumerMember) { a.current.state, a.revokeSeq = memberStable, 0 },
		"no session":                         func(_ *consumerGroup, a, _, _ *consumerMember) { a.timerSeq = 0 },
		"a session that ends too late":       func(_ *consumerGroup, a, _, _ *consumerMember) { a.timerAt = a.deadline.Add(1) },
		"an instance of two":                 func(_ *consumerGroup, a, b, _ *consumerMember) { a.says.Instance = b.says.Instance },
		"an instance of nobody":              func(c *consumerGroup, _, b, _ *consumerMember) { c.instances["j"] = b },
		"a dynamic member that is away":      func(_ *consumerGroup, _, _, x *consumerMember) { x.current.epoch = epochLeaveStatic },
		"a member that has not joined":       func(_ *consumerGroup, a, _, _ *consumerMember) { a.says = nil },
		"members that are miscounted":        func(c *consumerGroup, _, _, _ *consumerMember) { c.present++ },
		"topics that are miscounted":         func(c *consumerGroup, _, _, _ *consumerMember) { c.names["t"]++ },
		"patterns that are miscounted":       func(c *consumerGroup, _, _, _ *consumerMember) { c.patterns["x"]++ },
		"a pattern of nobody":                func(c *consumerGroup, _, _, _ *consumerMember) { c.regexes["y"] = &regex{} },
		"who has no protocols to join with":  func(_ *consumerGroup, a, _, _ *consumerMember) { a.joinSeq = 7 },
		"who does not sync":                  func(_ *consumerGroup, a, _, _ *consumerMember) { a.syncSeq = 7 },
		"classic members miscounted":         func(c *consumerGroup, _, _, _ *consumerMember) { c.classic++ },
		"protocols of nobody":                func(c *consumerGroup, _, _, _ *consumerMember) { c.supported.add("x", 1) },
		"a heartbeat of nobody that waits":   func(c *consumerGroup, _, _, _ *consumerMember) { c.run = &run{parked: &beat{member: "y"}} },
	} {
		s := reconciling(t)
		c := s.consumer("g")
		spoil(c, c.members[0], c.members[1], c.members[2])
		if s.CheckInvariants() == nil {
			t.Errorf("%s goes unnoticed", what)
		}
	}
}
