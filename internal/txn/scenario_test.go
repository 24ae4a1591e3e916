package txn

import (
	"slices"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/harness"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

func TestScenarios(t *testing.T) {
	harness.Walk(t, func(t *testing.T) func(*testing.T, *datadriven.TestData) string { return newScenario(t).run })
}

// scenario plays log and other brokers around a shard.
type scenario struct {
	harness.Scenario
	shard    *Shard
	cfg      Config
	epoch    int32                   // of the last load
	pairs    map[string]pair         // what clients were told last
	log      []machine.Record        // what is durable
	sends    map[uint64]machine.Send // of this life
	open     []uint64                // of them, those without outcome
	nextID   int64                   // the next block of producer ids begins with it
	blockLen int32                   // 0 if ids are to be answered by hand
	image    *metadata.Image
	maxBatch int
	failing  bool        // whether the next append fails
	server   machine.Run // of the store
}

func newScenario(t testing.TB) *scenario {
	s := &scenario{Scenario: harness.Scenario{T: t}}
	s.restart()
	return s
}

// restart begins with an empty log, at time zero.
func (s *scenario) restart() {
	*s = scenario{
		Scenario: harness.Begin(s.T, s.step), cfg: DefaultConfig(), nextID: 1, blockLen: 10, pairs: map[string]pair{},
		image: imageOf("t=1,2", "u=1", metadata.OffsetsTopic+"=1,1,1,1", "s=1", "v=1"),
	}
	s.load()
	s.Out.Reset()
}

// run carries out one command and returns what happened.
func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	s.T = t
	s.Out.Reset()
	s.command(d)
	s.check(d.Pos)
	return s.Outcome()
}

func (s *scenario) command(d *datadriven.TestData) {
	cmd, ok := commands[d.Cmd]
	if !ok {
		d.Fatalf(s.T.(*testing.T), "unknown command %q", d.Cmd)
	}
	cmd(s, s.args(d))
}

func (s *scenario) check(where string) {
	assert.NoError(s.T, s.shard.CheckInvariants(), "%s", where)
	for what, log := range map[string][]machine.Record{"log": s.log, "compacted log": compacted(s.log, false)} {
		assert.Equal(s.T, replayed(log, s.cfg).Digest(), s.shard.Digest(), "%s: the %s does not say what the shard knows", where, what)
	}
}

var commands map[string]func(*scenario, args)

func init() {
	commands = map[string]func(*scenario, args){
		"new": (*scenario).begin, "state": (*scenario).state, "timers": (*scenario).showTimers, "stale-timers": (*scenario).staleTimers,
		"config": (*scenario).config, "wait": (*scenario).wait, "crash": (*scenario).crash, "server-restarts": (*scenario).serverRestarts, "compact": (*scenario).compact,
		"append-fails": (*scenario).appendFails, "replay": (*scenario).replay, "topics": (*scenario).setTopics, "max-batch": (*scenario).setMaxBatch,
		"init": (*scenario).init, "add": (*scenario).add, "ask": (*scenario).askBatch, "offsets": (*scenario).offsets,
		"commit": (*scenario).commit, "abort": (*scenario).abort, "describe": (*scenario).describe, "list": (*scenario).list,
		"answer": (*scenario).answer, "ids": (*scenario).ids, "each-state": (*scenario).eachState, "holder": (*scenario).holder,
	}
}

// step gives the shard an event and writes down the effects.
func (s *scenario) step(e machine.Event) {
	fx := s.shard.Step(machine.Input{Now: s.Now, Image: s.image, MaxBatch: s.maxBatch, Event: e})
	if s.failing && len(fx.Batches) > 0 {
		s.failed(fx)
		return
	}
	for _, r := range records(fx) {
		if s.maxBatch > 0 && machine.RecordOverhead+r.Size() > s.maxBatch {
			s.T.Errorf("%s does not fit", s.showRecord(r))
		}
		s.Printf("stored: %s\n", s.showRecord(r))
	}
	s.log = append(s.log, records(fx)...)
	for _, e := range machine.NotesOf[*journal.Txn](fx.Notes) {
		s.Printf("journal: %s\n", s.showEntry(e))
	}
	for _, r := range fx.Replies {
		s.replied(r)
	}
	s.Stale = append(s.Stale, harness.Arm(s.Timers, fx.Timers)...)
	for _, send := range fx.Sends {
		s.sends[send.ID] = send
		s.open = append(s.open, send.ID)
	}
	for _, send := range slices.Clone(fx.Sends) {
		s.sent(send)
	}
}

func (s *scenario) replied(r machine.Reply) {
	if who, resp, ok := s.Answered(r); ok {
		s.Printf("%s ← %s\n", who, s.showReply(who, resp))
	}
}

// sent shows a send; ids are given at once, unless they are given by hand.
func (s *scenario) sent(send machine.Send) {
	if send.To != machine.Self {
		s.Printf("send %d → node %d: %s\n", send.ID, send.To, s.showMarkers(send.Msg))
		return
	}
	if s.blockLen == 0 {
		s.Printf("send %d → self: producer ids\n", send.ID)
		return
	}
	s.giveIDs(send.ID, s.blockLen)
}

func (s *scenario) request(who string, msg kmsg.Request) {
	s.Request(who, who+"-client", "10.0.0.1", msg)
}

// wait 10s: time passes, and timers fire in order.
func (s *scenario) wait(a args) { s.Pass(harness.ParseDuration(s.T, a.Who())) }

func (s *scenario) config(a args) {
	for _, c := range a.D.CmdArgs {
		switch c.Key {
		case "max-timeout":
			s.cfg.MaxTimeout = harness.ParseDuration(s.T, c.Vals[0])
		case "sweep":
			s.cfg.SweepInterval = harness.ParseDuration(s.T, c.Vals[0])
		case "expiration":
			s.cfg.IDExpiration = harness.ParseDuration(s.T, c.Vals[0])
		default:
			s.T.Fatalf("unknown setting %q", c.Key)
		}
	}
	s.step(Configured{Config: s.cfg})
}
