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
)

// TestScenarios runs the files in testdata. A scenario is a list of requests and
// of time passing, each with what the coordinator does. See testdata/README.md
// for the language; -rewrite writes the outcomes anew.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.HasSuffix(path, ".md") {
			return
		}
		s := newScenario(t)
		datadriven.RunTest(t, path, s.run)
	})
}

// scenario plays clients, clock, log and timers around a shard.
type scenario struct {
	t     *testing.T
	shard *Shard
	cfg   Config
	start time.Time
	now   time.Time
	fresh int
	next  RequestID

	names    map[string]string    // variable to member id: $a is the id that a was given last
	alias    map[string]string    // member id as shown: a#1
	asked    map[RequestID]string // who waits for which answer
	log      []Record
	timers   map[TimerKey]Timer
	journal  bool
	out      strings.Builder
	versions map[RequestID]string
}

func newScenario(t *testing.T) *scenario {
	s := &scenario{
		t: t, cfg: DefaultConfig(), start: time.Unix(1_700_000_000, 0).UTC(),
		names: map[string]string{}, alias: map[string]string{}, asked: map[RequestID]string{}, timers: map[TimerKey]Timer{},
	}
	s.now = s.start
	s.shard = NewShard(s.cfg)
	s.step(Loaded{})
	s.out.Reset()
	return s
}

// run carries out one command and returns what happened.
func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	s.out.Reset()
	if cmd, ok := commands[d.Cmd]; ok {
		cmd(s, d)
	} else {
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	if err := s.shard.CheckInvariants(); err != nil {
		t.Errorf("%s: %v", d.Pos, err)
	}
	if s.out.Len() == 0 {
		return "nothing happens\n"
	}
	return s.out.String()
}

var commands = map[string]func(*scenario, *datadriven.TestData){
	"config": (*scenario).config, "wait": (*scenario).wait, "crash": (*scenario).crash, "compact": (*scenario).compact,
	"join": (*scenario).join, "sync": (*scenario).sync, "heartbeat": (*scenario).heartbeat, "leave": (*scenario).leave,
	"commit": (*scenario).commit, "fetch": (*scenario).fetch, "offset-delete": (*scenario).offsetDelete,
	"describe": (*scenario).describe, "list": (*scenario).list, "delete-groups": (*scenario).deleteGroups,
	"topics-deleted": (*scenario).topicsDeleted, "journal": (*scenario).showJournal, "replay": (*scenario).replay,
}

// step gives the shard an event and writes down the effects.
func (s *scenario) step(e Event) {
	s.fresh++
	var fresh [16]byte
	fresh[15], fresh[14] = byte(s.fresh), byte(s.fresh>>8)
	fx := s.shard.Step(Input{Now: s.now, Fresh: fresh, Event: e})
	for _, r := range fx.Records {
		s.log = append(s.log, r)
		fmt.Fprintf(&s.out, "stored: %s\n", s.showRecord(r))
	}
	for _, r := range fx.Replies {
		who, ok := s.asked[r.ID]
		if !ok {
			s.t.Errorf("a second answer, or one that nobody asked for: %v", r)
		}
		delete(s.asked, r.ID)
		fmt.Fprintf(&s.out, "%s ← %s\n", who, s.showReply(who, r.Msg))
	}
	for _, tm := range fx.Timers {
		delete(s.timers, tm.Key)
		if !tm.Cancel {
			s.timers[tm.Key] = tm
		}
	}
	if s.journal {
		for _, e := range fx.Journal {
			fmt.Fprintf(&s.out, "journal: %s\n", s.showEntry(e))
		}
	}
}

func (s *scenario) request(who string, msg kmsg.Request) {
	s.next++
	s.asked[s.next] = who
	s.step(Request{ID: s.next, ClientID: strings.TrimRight(who, "0123456789'"), Host: "10.0.0.1", Msg: msg})
	if s.asked[s.next] != "" {
		fmt.Fprintf(&s.out, "%s waits\n", who)
	}
}

// wait lets time pass and fires the timers that come due, in order.
func (s *scenario) wait(d *datadriven.TestData) {
	until := s.now.Add(parseDuration(s.t, d.CmdArgs[0].Key))
	for {
		var due []Timer
		for _, tm := range s.timers {
			if !tm.At.After(until) {
				due = append(due, tm)
			}
		}
		if len(due) == 0 {
			break
		}
		slices.SortFunc(due, func(a, b Timer) int {
			if c := a.At.Compare(b.At); c != 0 {
				return c
			}
			return int(a.Seq) - int(b.Seq)
		})
		tm := due[0]
		delete(s.timers, tm.Key)
		s.now = tm.At
		before := s.out.Len()
		s.step(TimerFired{Key: tm.Key, Seq: tm.Seq})
		if s.out.Len() > before {
			text := s.out.String()
			s.out.Reset()
			fmt.Fprintf(&s.out, "%safter %s:\n%s", text[:before], s.now.Sub(s.start), text[before:])
		}
	}
	s.now = until
}

func (s *scenario) config(d *datadriven.TestData) {
	for _, a := range d.CmdArgs {
		v := a.Vals[0]
		switch a.Key {
		case "initial-delay":
			s.cfg.InitialDelay = parseDuration(s.t, v)
		case "max-size":
			s.cfg.MaxSize, _ = strconv.Atoi(v)
		case "retention":
			s.cfg.OffsetsRetention = parseDuration(s.t, v)
		case "sweep":
			s.cfg.SweepInterval = parseDuration(s.t, v)
		case "max-metadata":
			s.cfg.MaxMetadata, _ = strconv.Atoi(v)
		default:
			d.Fatalf(s.t, "unknown setting %q", a.Key)
		}
	}
	s.step(Configured{Config: s.cfg})
}

// crash loses all soft state and loads the shard from its log, as a successor
// would. The digest must be the same.
func (s *scenario) crash(*datadriven.TestData) {
	before := s.shard.Digest()
	s.load()
	if got := s.shard.Digest(); got != before {
		s.t.Errorf("after a load the state is another")
	}
}

func (s *scenario) load() {
	s.shard = NewShard(s.cfg)
	s.timers, s.asked = map[TimerKey]Timer{}, map[RequestID]string{}
	for _, r := range s.log {
		key, value := r.Encode()
		again, err := DecodeRecord(key, value)
		if err != nil {
			s.t.Fatal(err)
		}
		s.shard.Replay(again)
	}
	s.step(Loaded{})
}

// compact keeps the last record of every key, tombstones included or not.
func (s *scenario) compact(d *datadriven.TestData) {
	last := map[string]int{}
	for i, r := range s.log {
		key, _ := r.Encode()
		last[string(key)] = i
	}
	var kept []Record
	for i, r := range s.log {
		key, value := r.Encode()
		if last[string(key)] == i && (value != nil || d.HasArg("keep-tombstones")) {
			kept = append(kept, r)
		}
	}
	s.log = kept
	s.crash(d)
}

func parseDuration(t *testing.T, v string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(v)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func errorName(code int16) string {
	if code == 0 {
		return "OK"
	}
	return fmt.Sprintf("%s (%d)", kerr.TypedErrorForCode(code).Message, code)
}
