package group

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/harness"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestScenarios(t *testing.T) {
	harness.Walk(t, func(t *testing.T) func(*testing.T, *datadriven.TestData) string { return newScenario(t).run })
}

// scenario plays log and other brokers around a shard.
type scenario struct {
	harness.Scenario
	shard *Shard
	cfg   kind.Config
	fresh int
	host  string // where the client is

	names    map[string]string // variable to member id: $a is the id that a was given last
	alias    map[string]string // member id as shown: a#1
	log      []machine.Batch   // what is durable
	sends    []machine.Send    // questions that are not answered
	tasks    []machine.Task    // that are not done
	told     map[string]told   // what clients of the consumer protocol know
	works    map[string]worker // what clients of the streams protocol know
	topology *kmsg.StreamsGroupHeartbeatRequestTopology
	journal  bool            // whether to show it
	image    *metadata.Image // nil for no particular one
	maxBatch int             // 0 for any size
	epoch    int32           // of the leader
	failing  bool            // whether the next append fails
	torn     int             // after how many records
}

func newScenario(t testing.TB) *scenario {
	s := &scenario{Scenario: harness.Scenario{T: t}}
	s.restart()
	return s
}

// restart begins with an empty log, at the hour zero.
func (s *scenario) restart() {
	*s = scenario{
		Scenario: harness.Begin(s.T, s.step), cfg: kind.DefaultConfig(),
		names: map[string]string{}, alias: map[string]string{}, told: map[string]told{}, works: map[string]worker{},
	}
	s.shard = NewShard(s.cfg)
	s.step(machine.Loaded{})
	s.Out.Reset()
}

// run carries out one command and returns what happened.
func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	s.T = t
	s.Out.Reset()
	s.host = "10.0.0.1"
	for _, a := range d.CmdArgs {
		if a.Key == "host" {
			s.host = a.Vals[0]
		}
	}
	if cmd, ok := commands[d.Cmd]; ok {
		cmd(s, d)
	} else {
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	if err := s.shard.CheckInvariants(); err != nil {
		t.Errorf("%s: %v", d.Pos, err)
	}
	for upTo := range len(s.log) + 1 {
		if replayed(compacted(s.log, upTo, upTo%2 == 0), s.cfg).Digest() != s.shard.Digest() {
			t.Errorf("%s: the log, compacted up to %d, does not say what the shard knows", d.Pos, upTo)
		}
	}
	return s.Outcome()
}

var commands = map[string]func(*scenario, *datadriven.TestData){
	"new": (*scenario).begin, "group": (*scenario).group, "state": (*scenario).state, "timers": (*scenario).showTimers, "stale-timers": (*scenario).staleTimers,
	"config": (*scenario).config, "settings": (*scenario).settings, "wait": (*scenario).wait, "crash": (*scenario).crash, "compact": (*scenario).compact, "append-fails": (*scenario).appendFails,
	"join": (*scenario).join, "sync": (*scenario).sync, "heartbeat": (*scenario).heartbeat, "leave": (*scenario).leave,
	"txn-commit": (*scenario).txnCommit, "answer": (*scenario).answer, "marker": (*scenario).marker, "marker-while-loading": (*scenario).markerWhileLoading,
	"commit": (*scenario).commit, "fetch": (*scenario).fetch, "offset-delete": (*scenario).offsetDelete,
	"describe": (*scenario).describe, "list": (*scenario).list, "delete-groups": (*scenario).deleteGroups,
	"share-beat": (*scenario).shareBeat, "describe-shares": (*scenario).shareDescribe, "share-offsets": (*scenario).shareOffsets,
	"alter-share-offsets": (*scenario).alterShareOffsets, "delete-share-offsets": (*scenario).deleteShareOffsets,
	"beat": (*scenario).beat, "describe-consumers": (*scenario).consumerDescribe, "tasks": (*scenario).runTasks,
	"work": (*scenario).work, "topology": (*scenario).setTopology, "describe-streams": (*scenario).streamsDescribe, "created": (*scenario).created,
	"topics-deleted": (*scenario).topicsDeleted, "topics": (*scenario).setTopics, "max-batch": (*scenario).setMaxBatch, "journal": (*scenario).showJournal, "replay": (*scenario).replay,
}

// step gives the shard an event and writes down the effects.
func (s *scenario) step(e machine.Event) {
	s.fresh++
	before, committed := s.states(), s.shard.committedOffsets()
	in := machine.Input{Now: s.Now, Image: s.image, MaxBatch: s.maxBatch, Event: e}
	if r, ok := e.(machine.Request); ok && needsRandom(r.Msg) {
		in.Random = freshBytes(s.fresh)
	}
	fx := s.shard.Step(in)
	checkCommitted(s.T, committed, s.shard, e, committedIn(fx.Notes))
	if s.failing && len(fx.Batches) > 0 {
		s.failed(fx)
		return
	}
	s.log = append(s.log, cloneBatches(fx.Batches)...)
	s.sends = append(s.sends, fx.Sends...)
	s.tasks = append(s.tasks, fx.Tasks...)
	var answers []string
	for _, r := range fx.Replies {
		if who, resp, ok := s.Answered(r); ok {
			answers = append(answers, fmt.Sprintf("%s ← %s\n", who, s.showReply(who, resp)))
		}
	}
	for _, text := range s.showBatches(fx.Batches) { // After the answers, which give names to ids.
		s.Printf("stored: %s\n", text)
	}
	if len(fx.Tasks) > 0 {
		s.Out.WriteString("a task begins\n")
	}
	for _, m := range fx.Sends {
		if text := s.showShareSend(m); text != "" {
			s.Printf("asks %s\n", text)
			continue
		}
		s.Printf("asks %s\n", showSend(m))
	}
	s.Out.WriteString(strings.Join(answers, ""))
	s.Stale = append(s.Stale, harness.Arm(s.Timers, fx.Timers)...)
	if _, ok := e.(machine.Loaded); !ok {
		s.showChanges(before)
	}
	if s.journal {
		for _, e := range machine.NotesOf[*journal.Entry](fx.Notes) {
			s.Printf("journal: %s\n", s.showEntry(e))
		}
	}
}

func freshBytes(n int) (b [16]byte) {
	b[15], b[14] = byte(n), byte(n>>8)
	return b
}

func (s *scenario) request(who string, msg kmsg.Request) {
	defer s.foresee(who, harness.OnTheWire(s.T, msg))()
	s.Request(who, clientID(who), s.host, msg)
}

// wait lets time pass and fires the timers that come due, in order.
func (s *scenario) wait(d *datadriven.TestData) { s.Pass(harness.ParseDuration(s.T, d.CmdArgs[0].Key)) }

func (s *scenario) config(d *datadriven.TestData) {
	for _, a := range d.CmdArgs {
		v := a.Vals[0]
		switch a.Key {
		case "initial-delay":
			s.cfg.InitialDelay = harness.ParseDuration(s.T, v)
		case "min-session":
			s.cfg.MinSession = harness.ParseDuration(s.T, v)
		case "max-session":
			s.cfg.MaxSession = harness.ParseDuration(s.T, v)
		case "max-size":
			s.cfg.MaxSize = harness.ParseInt(s.T, v)
		case "consumer-session":
			s.cfg.Consumer.Session = harness.ParseDuration(s.T, v)
		case "consumer-max-size":
			s.cfg.Consumer.MaxSize = harness.ParseInt(s.T, v)
		case "share-session":
			s.cfg.Share.Session = harness.ParseDuration(s.T, v)
		case "share-max-size":
			s.cfg.Share.MaxSize = harness.ParseInt(s.T, v)
		case "share-interval":
			s.cfg.Share.Interval = harness.ParseDuration(s.T, v)
		case "migration":
			s.cfg.Consumer.Migration = kind.MigrationPolicy(v)
		case "assignors":
			s.cfg.Consumer.Assignors = a.Vals
		case "interval":
			s.cfg.Consumer.Interval = harness.ParseDuration(s.T, v)
		case "streams-session":
			s.cfg.Streams.Session = harness.ParseDuration(s.T, v)
		case "streams-interval":
			s.cfg.Streams.Interval = harness.ParseDuration(s.T, v)
		case "streams-delay":
			s.cfg.Streams.InitialDelay = harness.ParseDuration(s.T, v)
		case "streams-max-size":
			s.cfg.Streams.MaxSize = harness.ParseInt(s.T, v)
		case "standbys":
			s.cfg.Streams.Standbys = harness.ParseInt(s.T, v)
		case "at-once":
			s.cfg.Streams.AtOnce = harness.ParseInt(s.T, v)
		case "retention":
			s.cfg.OffsetsRetention = harness.ParseDuration(s.T, v)
		case "sweep":
			s.cfg.SweepInterval = harness.ParseDuration(s.T, v)
		case "max-bytes":
			s.cfg.MaxBytes = int64(harness.ParseInt(s.T, v))
		case "max-metadata":
			s.cfg.MaxMetadata = harness.ParseInt(s.T, v)
		default:
			d.Fatalf(s.T, "unknown setting %q", a.Key)
		}
	}
	s.step(Configured{Config: s.cfg})
}
