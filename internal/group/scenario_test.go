package group

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// TestScenarios runs the files in testdata. A scenario is a list of requests and
// of time passing, each with what the coordinator does. See testdata/README.md
// for the language; -rewrite writes the outcomes anew.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		s := newScenario(t)
		datadriven.RunTest(t, path, s.run)
	})
}

// scenario plays clients, clock, log and timers around a shard.
type scenario struct {
	t     testing.TB
	shard *Shard
	cfg   kind.Config
	start time.Time
	now   time.Time
	fresh int
	next  machine.RequestID
	host  string // where the client is

	names    map[string]string                  // variable to member id: $a is the id that a was given last
	alias    map[string]string                  // member id as shown: a#1
	asked    map[machine.RequestID]asked        // who waits for which answer
	log      []machine.Batch                    // what is durable
	sends    []machine.Send                     // questions that are not answered
	tasks    []machine.Task                     // that are not done
	told     map[string]told                    // what clients of the consumer protocol know
	timers   map[machine.TimerKey]machine.Timer // armed
	stale    []machine.Timer                    // replaced or cancelled since
	journal  bool                               // whether to show it
	image    *metadata.Image                    // nil for no particular one
	maxBatch int                                // 0 for any size
	epoch    int32                              // of the leader
	failing  bool                               // whether the next append fails
	torn     int                                // after how many records
	out      strings.Builder
}

// asked is a request that waits for its answer.
type asked struct {
	who string
	req kmsg.Request
}

func newScenario(t testing.TB) *scenario {
	s := &scenario{t: t}
	s.restart()
	return s
}

// restart begins with an empty log, at the hour zero.
func (s *scenario) restart() {
	*s = scenario{
		t: s.t, cfg: kind.DefaultConfig(), start: time.Unix(1_700_000_000, 0).UTC(),
		names: map[string]string{}, alias: map[string]string{}, asked: map[machine.RequestID]asked{}, told: map[string]told{}, timers: map[machine.TimerKey]machine.Timer{},
	}
	s.now = s.start
	s.shard = NewShard(s.cfg)
	s.step(machine.Loaded{})
	s.out.Reset()
}

// run carries out one command and returns what happened.
func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	s.out.Reset()
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
	if s.out.Len() == 0 {
		return "nothing happens\n"
	}
	return s.out.String()
}

var commands = map[string]func(*scenario, *datadriven.TestData){
	"new": (*scenario).begin, "group": (*scenario).group, "state": (*scenario).state, "timers": (*scenario).showTimers, "stale-timers": (*scenario).staleTimers,
	"config": (*scenario).config, "settings": (*scenario).settings, "wait": (*scenario).wait, "crash": (*scenario).crash, "compact": (*scenario).compact, "append-fails": (*scenario).appendFails,
	"join": (*scenario).join, "sync": (*scenario).sync, "heartbeat": (*scenario).heartbeat, "leave": (*scenario).leave,
	"txn-commit": (*scenario).txnCommit, "answer": (*scenario).answer, "marker": (*scenario).marker, "marker-while-loading": (*scenario).markerWhileLoading,
	"commit": (*scenario).commit, "fetch": (*scenario).fetch, "offset-delete": (*scenario).offsetDelete,
	"describe": (*scenario).describe, "list": (*scenario).list, "delete-groups": (*scenario).deleteGroups,
	"beat": (*scenario).beat, "describe-consumers": (*scenario).consumerDescribe, "tasks": (*scenario).runTasks,
	"topics-deleted": (*scenario).topicsDeleted, "topics": (*scenario).setTopics, "max-batch": (*scenario).setMaxBatch, "journal": (*scenario).showJournal, "replay": (*scenario).replay,
}

// step gives the shard an event and writes down the effects.
func (s *scenario) step(e machine.Event) {
	s.fresh++
	before, committed := s.states(), s.shard.committedOffsets()
	in := machine.Input{Now: s.now, Image: s.image, MaxBatch: s.maxBatch, Event: e}
	if r, ok := e.(machine.Request); ok && needsRandom(r.Msg) {
		in.Random = freshBytes(s.fresh)
	}
	fx := s.shard.Step(in)
	checkCommitted(s.t, committed, s.shard, e, committedIn(fx.Notes))
	if s.failing && len(fx.Batches) > 0 {
		s.failed(fx)
		return
	}
	s.log = append(s.log, cloneBatches(fx.Batches)...)
	s.sends = append(s.sends, fx.Sends...)
	s.tasks = append(s.tasks, fx.Tasks...)
	var answers []string
	for _, r := range fx.Replies {
		a, ok := s.asked[r.ID]
		if !ok {
			s.t.Errorf("a second answer, or one that nobody asked for: %v", r)
			continue
		}
		delete(s.asked, r.ID)
		answers = append(answers, fmt.Sprintf("%s ← %s\n", a.who, s.showReply(a.who, s.wire(a.req, r.Msg))))
	}
	for _, text := range s.showBatches(fx.Batches) { // After the answers, which give names to ids.
		fmt.Fprintf(&s.out, "stored: %s\n", text)
	}
	if len(fx.Tasks) > 0 {
		s.out.WriteString("a task begins\n")
	}
	for _, m := range fx.Sends {
		fmt.Fprintf(&s.out, "asks %s\n", showSend(m))
	}
	s.out.WriteString(strings.Join(answers, ""))
	for _, tm := range fx.Timers {
		if old, ok := s.timers[tm.Key]; ok {
			s.stale = append(s.stale, old)
		}
		delete(s.timers, tm.Key)
		if !tm.Cancel {
			s.timers[tm.Key] = tm
		}
	}
	if _, ok := e.(machine.Loaded); !ok {
		s.showChanges(before)
	}
	if s.journal {
		for _, e := range machine.NotesOf[*journal.Entry](fx.Notes) {
			fmt.Fprintf(&s.out, "journal: %s\n", s.showEntry(e))
		}
	}
}

func freshBytes(n int) (b [16]byte) {
	b[15], b[14] = byte(n), byte(n>>8)
	return b
}

// wire returns the answer as the client reads it in the version of its request:
// without what that version has no field for.
func (s *scenario) wire(req kmsg.Request, resp kmsg.Response) kmsg.Response {
	if resp.GetVersion() != req.GetVersion() || resp.Key() != req.Key() {
		s.t.Errorf("%T version %d answers %T version %d", resp, resp.GetVersion(), req, req.GetVersion())
	}
	again := req.ResponseKind()
	if err := again.ReadFrom(resp.AppendTo(nil)); err != nil {
		s.t.Errorf("%T version %d: %v", resp, resp.GetVersion(), err)
	}
	return again
}

func (s *scenario) request(who string, msg kmsg.Request) {
	// As the broker reads it, without what that version has no field for.
	again := kmsg.RequestForKey(msg.Key())
	again.SetVersion(msg.GetVersion())
	if err := again.ReadFrom(msg.AppendTo(nil)); err != nil {
		s.t.Fatal(err)
	}
	s.next++
	s.asked[s.next] = asked{who, again}
	defer s.foresee(who, again)()
	s.step(machine.Request{ID: s.next, ClientID: clientID(who), Host: s.host, Msg: again})
	if _, ok := s.asked[s.next]; ok {
		fmt.Fprintf(&s.out, "%s waits\n", who)
	}
}

// wait lets time pass and fires the timers that come due, in order.
func (s *scenario) wait(d *datadriven.TestData) { s.pass(parseDuration(s.t, d.CmdArgs[0].Key)) }

func (s *scenario) pass(d time.Duration) {
	until := s.now.Add(d)
	for {
		tm, ok := s.due(until)
		if !ok {
			break
		}
		delete(s.timers, tm.Key)
		s.now = tm.At
		before := s.out.Len()
		s.step(machine.TimerFired{Key: tm.Key, Seq: tm.Seq})
		if s.out.Len() > before {
			text := s.out.String()
			s.out.Reset()
			fmt.Fprintf(&s.out, "%safter %s:\n%s", text[:before], s.now.Sub(s.start), text[before:])
		}
	}
	s.now = until
}

// due returns the first timer that fires until then.
func (s *scenario) due(until time.Time) (machine.Timer, bool) {
	var due []machine.Timer
	for _, tm := range s.timers {
		if !tm.At.After(until) {
			due = append(due, tm)
		}
	}
	if len(due) == 0 {
		return machine.Timer{}, false
	}
	return slices.MinFunc(due, func(a, b machine.Timer) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return int(a.Seq) - int(b.Seq)
	}), true
}

func (s *scenario) config(d *datadriven.TestData) {
	for _, a := range d.CmdArgs {
		v := a.Vals[0]
		switch a.Key {
		case "initial-delay":
			s.cfg.InitialDelay = parseDuration(s.t, v)
		case "min-session":
			s.cfg.MinSession = parseDuration(s.t, v)
		case "max-session":
			s.cfg.MaxSession = parseDuration(s.t, v)
		case "max-size":
			s.cfg.MaxSize = parseInt(s.t, v)
		case "consumer-session":
			s.cfg.Consumer.Session = parseDuration(s.t, v)
		case "consumer-max-size":
			s.cfg.Consumer.MaxSize = parseInt(s.t, v)
		case "migration":
			s.cfg.Consumer.Migration = kind.MigrationPolicy(v)
		case "assignors":
			s.cfg.Consumer.Assignors = a.Vals
		case "interval":
			s.cfg.Consumer.Interval = parseDuration(s.t, v)
		case "retention":
			s.cfg.OffsetsRetention = parseDuration(s.t, v)
		case "sweep":
			s.cfg.SweepInterval = parseDuration(s.t, v)
		case "max-metadata":
			s.cfg.MaxMetadata = parseInt(s.t, v)
		default:
			d.Fatalf(s.t, "unknown setting %q", a.Key)
		}
	}
	s.step(Configured{Config: s.cfg})
}

func parseDuration(t testing.TB, v string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func parseInt(t testing.TB, v string) int {
	t.Helper()
	n, err := strconv.Atoi(v)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func errorName(code int16) string {
	if code == 0 {
		return "OK"
	}
	return fmt.Sprintf("%s (%d)", kerr.TypedErrorForCode(code).Message, code)
}
