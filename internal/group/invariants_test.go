package group

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"muster/internal/group/classic"
	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/group/subscription"
	"muster/internal/machine"
)

// stableGroup returns a shard with a Stable group of two, one of them static.
func stableGroup(t testing.TB) *Shard {
	s := newScenario(t)
	s.group(&datadriven.TestData{CmdArgs: []datadriven.CmdArg{{Key: "a"}, {Key: "b/i"}}})
	must(t, s.shard.CheckInvariants())
	return s.shard
}

// Invariants that find nothing would make every test pass.
func TestCheckInvariantsFindsWhatIsWrong(t *testing.T) {
	for what, spoil := range map[string]func(g *classic.Group, a, b *classic.Member){
		"a member under another id":        func(_ *classic.Group, a, _ *classic.Member) { a.ID = "x" },
		"a member that is not listed":      func(g *classic.Group, _, _ *classic.Member) { g.Members.Count++ },
		"another's instance id":            func(_ *classic.Group, a, b *classic.Member) { a.Instance = b.Instance },
		"a member that is pending":         func(g *classic.Group, a, _ *classic.Member) { g.Pending = map[string]*classic.Pending{a.ID: {}} },
		"a join parked in a Stable group":  func(g *classic.Group, a, _ *classic.Member) { a.Join = 1; g.Joined = 1 },
		"a sync parked in a Stable group":  func(_ *classic.Group, a, _ *classic.Member) { a.Sync = 1 },
		"joins that are miscounted":        func(g *classic.Group, _, _ *classic.Member) { g.Joined = 1 },
		"syncs that are miscounted":        func(g *classic.Group, _, _ *classic.Member) { g.Unsynced, g.SyncSeq = 1, 1 },
		"protocols that nobody supports":   func(g *classic.Group, _, _ *classic.Member) { g.Supported.Add("x", 1) },
		"protocols that are miscounted":    func(g *classic.Group, _, _ *classic.Member) { g.Supported.Add("range", 1) },
		"a protocol that is not all's":     func(g *classic.Group, _, _ *classic.Member) { g.Protocol = "sticky" },
		"silent by a record, and is not":   func(g *classic.Group, a, _ *classic.Member) { g.Silences = map[string]time.Duration{a.ID: time.Second} },
		"no session timer":                 func(_ *classic.Group, a, _ *classic.Member) { a.TimerSeq = 0 },
		"a session timer that is too late": func(_ *classic.Group, a, _ *classic.Member) { a.TimerAt = a.Deadline.Add(time.Second) },
		"a new member of an old group":     func(_ *classic.Group, a, _ *classic.Member) { a.IsNew = true },
		"a leader that is no member":       func(g *classic.Group, _, _ *classic.Member) { g.Leader = "x" },
		"a generation that is not stored":  func(g *classic.Group, _, _ *classic.Member) { g.Generation++ },
		"an assignment that is not stored": func(_ *classic.Group, a, _ *classic.Member) { a.Assigned = []byte("x") },
		"no record":                        func(g *classic.Group, _, _ *classic.Member) { g.Hard = nil },
		"an Empty group with members":      func(g *classic.Group, _, _ *classic.Member) { g.State = classic.Empty },
		"a Dead group":                     func(g *classic.Group, _, _ *classic.Member) { g.State = classic.Dead },
		"a join phase without a timer": func(g *classic.Group, _, _ *classic.Member) {
			g.State, g.Rebalance = classic.PreparingRebalance, &classic.Rebalance{}
		},
		"a join phase that is over": func(g *classic.Group, a, b *classic.Member) {
			g.State, g.Previous, g.Rebalance, g.JoinSeq = classic.PreparingRebalance, classic.Stable, &classic.Rebalance{}, 1
			a.Join, b.Join, g.Joined = 1, 2, 2
		},
		"a join phase of which nothing will be told": func(g *classic.Group, _, _ *classic.Member) { g.State, g.JoinSeq = classic.PreparingRebalance, 1 },
		"a sync phase without a timer": func(g *classic.Group, _, _ *classic.Member) {
			g.State, g.Rebalance = classic.CompletingRebalance, &classic.Rebalance{}
		},
		"nobody waits for who has not synced": func(g *classic.Group, a, _ *classic.Member) { a.Unsynced, g.Unsynced = true, 1 },
	} {
		s := stableGroup(t)
		g := s.classic("g")
		spoil(g, g.Members.First, g.Members.Last)
		if s.CheckInvariants() == nil {
			t.Errorf("%s goes unnoticed", what)
		}
	}
}

// unstableShard returns a shard with a transaction that is open, and a question.
func unstableShard(t testing.TB) *Shard {
	s := newScenario(t)
	for _, c := range []struct {
		run  func(*datadriven.TestData)
		args []datadriven.CmdArg
	}{
		{s.setTopics, []datadriven.CmdArg{{Key: "t", Vals: []string{"1"}}, {Key: "transactions"}}},
		{s.txnCommit, []datadriven.CmdArg{{Key: "a"}, {Key: "offsets", Vals: []string{"t:0=5"}}}},
		{s.answer, nil},
		{s.txnCommit, []datadriven.CmdArg{{Key: "a"}, {Key: "pid", Vals: []string{"2"}}, {Key: "offsets", Vals: []string{"t:0=5"}}}},
	} {
		c.run(&datadriven.TestData{CmdArgs: c.args})
	}
	must(t, s.shard.CheckInvariants())
	return s.shard
}

func TestCheckInvariantsFindsWhatIsWrongWithTransactions(t *testing.T) {
	for what, spoil := range map[string]func(s *Shard){
		"a producer under another id":            func(s *Shard) { s.txns.producers[1].id = 2 },
		"an offset that its group does not have": func(s *Shard) { s.txns.producers[1].open.offsets[offsetKey{group: "h"}] = struct{}{} },
		"an offset that its producer does not":   func(s *Shard) { clear(s.txns.producers[1].open.offsets) },
		"a partition that waits for nothing": func(s *Shard) {
			s.Groups["g"].Common().Unstable[subscription.TopicPartition{Topic: "u", Partition: 0}] = nil
		},
		"questions that are miscounted":         func(s *Shard) { s.txns.parked.bytes++ },
		"a question that no producer has":       func(s *Shard) { clear(s.txns.parked.byProducer) },
		"a question that is not there any more": func(s *Shard) { s.txns.parked.byProducer[3] = []*question{{}} },
		"a question without a timer":            func(s *Shard) { s.txns.parked.seq = 0 },
	} {
		s := unstableShard(t)
		spoil(s)
		if s.CheckInvariants() == nil {
			t.Errorf("%s goes unnoticed", what)
		}
	}
}

// A digest that is always the same would too.
func TestDigestDependsOnAllHardState(t *testing.T) {
	at := func(o schema.Offset) machine.Record {
		return &schema.OffsetRecord{Group: "g", Topic: "t", Partition: 1, Value: &o}
	}
	seen := map[uint64]int{}
	for i, log := range [][]machine.Record{
		nil,
		{at(schema.Offset{Offset: 5, LeaderEpoch: -1, ExpireTimestamp: -1})},
		{at(schema.Offset{Offset: 6, LeaderEpoch: -1, ExpireTimestamp: -1})},
		{at(schema.Offset{Offset: 5, LeaderEpoch: 2, ExpireTimestamp: -1})},
		{at(schema.Offset{Offset: 5, LeaderEpoch: -1, ExpireTimestamp: -1, CommitTimestamp: 1})},
		{at(schema.Offset{Offset: 5, LeaderEpoch: -1, ExpireTimestamp: 1})},
		{at(schema.Offset{Offset: 5, LeaderEpoch: -1, ExpireTimestamp: -1, Metadata: "x"})},
		{&schema.OffsetRecord{Group: "h", Topic: "t", Partition: 1, Value: &schema.Offset{Offset: 5, LeaderEpoch: -1, ExpireTimestamp: -1}}},
		{&schema.OffsetRecord{Group: "g", Topic: "u", Partition: 1, Value: &schema.Offset{Offset: 5, LeaderEpoch: -1, ExpireTimestamp: -1}}},
		{&schema.OffsetRecord{Group: "g", Topic: "t", Partition: 2, Value: &schema.Offset{Offset: 5, LeaderEpoch: -1, ExpireTimestamp: -1}}},
		{classic.EmptyGroup("g")},
		{classic.EmptyGroup("g"), at(schema.Offset{Offset: 5, LeaderEpoch: -1, ExpireTimestamp: -1})},
		{classic.EmptyGroup("g"), classic.EmptyGroup("h")},
		{at(schema.Offset{Offset: 5, LeaderEpoch: -1, ExpireTimestamp: -1, TopicID: [16]byte{1}})},
		{classic.EmptyGroup("g"), &schema.RebalanceRecord{Group: "g", Value: &schema.Rebalance{Generation: 1}}},
		{classic.EmptyGroup("g"), &schema.RebalanceRecord{Group: "g", Value: &schema.Rebalance{Generation: 2}}},
		{classic.EmptyGroup("g"), &schema.RebalanceRecord{Group: "g", Value: &schema.Rebalance{Generation: 1, Loads: 1}}},
		{classic.EmptyGroup("g"), &schema.RebalanceRecord{Group: "g", Value: &schema.Rebalance{Generation: 1, Lives: 1}}},
		{classic.EmptyGroup("g"), &schema.DepartureRecord{Group: "g", Member: "m", Value: &schema.Departure{Generation: 1}}},
		{classic.EmptyGroup("g"), &schema.DepartureRecord{Group: "g", Member: "n", Value: &schema.Departure{Generation: 1}}},
		{classic.EmptyGroup("g"), &schema.DepartureRecord{Group: "g", Member: "m", Value: &schema.Departure{Generation: 2}}},
		{classic.EmptyGroup("g"), &schema.SilenceRecord{Group: "g", Member: "m", Value: &schema.Silence{Lasted: time.Second}}},
		{classic.EmptyGroup("g"), &schema.SilenceRecord{Group: "g", Member: "n", Value: &schema.Silence{Lasted: time.Second}}},
		{classic.EmptyGroup("g"), &schema.SilenceRecord{Group: "g", Member: "m", Value: &schema.Silence{Lasted: 2 * time.Second}}},
	} {
		d := replayed(plain(log...), kind.DefaultConfig()).Digest()
		if before, ok := seen[d]; ok {
			t.Errorf("logs %d and %d have the same digest", before, i)
		}
		seen[d] = i
	}
}

func TestDigestDependsOnOpenTransactions(t *testing.T) {
	in := func(id int64, epoch int16, at int64, start machine.TxnStart) machine.Batch {
		r := &schema.OffsetRecord{Group: "g", Topic: "t", Value: &schema.Offset{Offset: at, LeaderEpoch: -1, ExpireTimestamp: -1, Start: start}}
		return machine.Batch{Producer: &machine.Producer{ID: id, Epoch: epoch, Transactional: true}, Records: []machine.Record{r}}
	}
	end := machine.Batch{Producer: &machine.Producer{ID: 1, Transactional: true}, Control: &machine.Control{Commit: true}}
	later := plain(&schema.OffsetRecord{Group: "g", Topic: "t", Value: &schema.Offset{Offset: 5, LeaderEpoch: -1, ExpireTimestamp: -1}})[0]
	gone := plain(&schema.OffsetRecord{Group: "g", Topic: "t"})[0]
	seen := map[uint64]int{}
	for i, log := range [][]machine.Batch{
		nil,
		{in(1, 0, 5, 0)},
		{in(1, 1, 5, 0)},
		{in(2, 0, 5, 0)},
		{in(1, 0, 6, 0)},
		{in(1, 0, 5, 1)},
		{in(1, 0, 5, 0), in(2, 0, 5, 0)},
		{in(2, 0, 5, 0), in(1, 0, 5, 0)},
		{in(1, 0, 5, 0), end},
		{in(1, 0, 5, 0), later},
		{later, in(1, 0, 5, 0)},
		{in(1, 0, 5, 0), gone},
	} {
		d := replayed(log, kind.DefaultConfig()).Digest()
		if before, ok := seen[d]; ok {
			t.Errorf("logs %d and %d have the same digest", before, i)
		}
		seen[d] = i
	}
}
