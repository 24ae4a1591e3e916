package txn

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

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// TestScenarios runs the files in testdata. See testdata/README.md for the
// language; -rewrite writes the outcomes anew.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if strings.HasSuffix(path, ".txt") {
			datadriven.RunTest(t, path, newScenario(t).run)
		}
	})
}

// scenario plays clients, clock, log, timers and other brokers around a shard.
type scenario struct {
	t        testing.TB
	shard    *Shard
	cfg      Config
	start    time.Time
	now      time.Time
	next     machine.RequestID
	epoch    int32                              // of the last load
	pairs    map[string]pair                    // what clients were told last
	asked    map[machine.RequestID]asked        // who waits for which answer
	log      []machine.Record                   // what is durable
	timers   map[machine.TimerKey]machine.Timer // armed
	stale    []machine.Timer                    // replaced or cancelled since
	sends    map[uint64]machine.Send            // of this life
	open     []uint64                           // of them, those without outcome
	nextID   int64                              // the next block of producer ids begins with it
	blockLen int32                              // 0 if ids are to be answered by hand
	image    *metadata.Image
	maxBatch int
	failing  bool        // whether the next append fails
	server   machine.Run // of the store
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

// restart begins with an empty log, at time zero.
func (s *scenario) restart() {
	*s = scenario{
		t: s.t, cfg: DefaultConfig(), start: time.Unix(1_700_000_000, 0).UTC(), nextID: 1, blockLen: 10,
		image: imageOf("t=1,2", "u=1", metadata.OffsetsTopic+"=1,1,1,1", "s=1", "v=1"),
	}
	s.now, s.pairs = s.start, map[string]pair{}
	s.load()
	s.out.Reset()
}

// run carries out one command and returns what happened.
func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	s.out.Reset()
	s.command(d)
	s.check(d.Pos)
	if s.out.Len() == 0 {
		return "nothing happens\n"
	}
	return s.out.String()
}

func (s *scenario) command(d *datadriven.TestData) {
	cmd, ok := commands[d.Cmd]
	if !ok {
		d.Fatalf(s.t.(*testing.T), "unknown command %q", d.Cmd)
	}
	cmd(s, args{s, d})
}

func (s *scenario) check(where string) {
	if err := s.shard.CheckInvariants(); err != nil {
		s.t.Errorf("%s: %v", where, err)
	}
	for what, log := range map[string][]machine.Record{"log": s.log, "compacted log": compacted(s.log, false)} {
		if replayed(log, s.cfg).Digest() != s.shard.Digest() {
			s.t.Errorf("%s: the %s does not say what the shard knows", where, what)
		}
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
	fx := s.shard.Step(machine.Input{Now: s.now, Image: s.image, MaxBatch: s.maxBatch, Event: e})
	if s.failing && len(fx.Batches) > 0 {
		s.failed(fx)
		return
	}
	for _, r := range records(fx) {
		if s.maxBatch > 0 && machine.RecordOverhead+r.Size() > s.maxBatch {
			s.t.Errorf("%s does not fit", s.showRecord(r))
		}
		fmt.Fprintf(&s.out, "stored: %s\n", s.showRecord(r))
	}
	s.log = append(s.log, records(fx)...)
	for _, e := range machine.NotesOf[*journal.Txn](fx.Notes) {
		fmt.Fprintf(&s.out, "journal: %s\n", s.showEntry(e))
	}
	for _, r := range fx.Replies {
		s.replied(r)
	}
	for _, tm := range fx.Timers {
		if old, ok := s.timers[tm.Key]; ok {
			s.stale = append(s.stale, old)
		}
		delete(s.timers, tm.Key)
		if !tm.Cancel {
			s.timers[tm.Key] = tm
		}
	}
	for _, send := range fx.Sends {
		s.sends[send.ID] = send
		s.open = append(s.open, send.ID)
	}
	for _, send := range slices.Clone(fx.Sends) {
		s.sent(send)
	}
}

func (s *scenario) replied(r machine.Reply) {
	a, ok := s.asked[r.ID]
	if !ok {
		s.t.Errorf("a second answer, or one that nobody asked for: %v", r)
		return
	}
	delete(s.asked, r.ID)
	fmt.Fprintf(&s.out, "%s ← %s\n", a.who, s.showReply(a.who, s.wire(a.req, r.Msg)))
}

// sent shows a send; ids are given at once, unless they are given by hand.
func (s *scenario) sent(send machine.Send) {
	if send.To != machine.Self {
		fmt.Fprintf(&s.out, "send %d → node %d: %s\n", send.ID, send.To, s.showMarkers(send.Msg))
		return
	}
	if s.blockLen == 0 {
		fmt.Fprintf(&s.out, "send %d → self: producer ids\n", send.ID)
		return
	}
	s.giveIDs(send.ID, s.blockLen)
}

// wire returns the answer as the client reads it in the version of its request.
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
	again := onTheWire(s.t, msg)
	s.next++
	id := s.next
	s.asked[id] = asked{who, again}
	s.step(machine.Request{ID: id, ClientID: who + "-client", Host: "10.0.0.1", Msg: again})
	if _, ok := s.asked[id]; ok {
		fmt.Fprintf(&s.out, "%s waits\n", who)
	}
}

// onTheWire returns a request as the broker reads it in its version.
func onTheWire(t interface{ Fatal(...any) }, msg kmsg.Request) kmsg.Request {
	again := kmsg.RequestForKey(msg.Key())
	again.SetVersion(msg.GetVersion())
	if err := again.ReadFrom(msg.AppendTo(nil)); err != nil {
		t.Fatal(err)
	}
	return again
}

// wait 10s: time passes, and timers fire in order.
func (s *scenario) wait(a args) {
	until := s.now.Add(parseDuration(s.t, a.d.CmdArgs[0].Key))
	for {
		tm, ok := due(s.timers, until)
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
func due(timers map[machine.TimerKey]machine.Timer, until time.Time) (machine.Timer, bool) {
	var list []machine.Timer
	for _, tm := range timers {
		if !tm.At.After(until) {
			list = append(list, tm)
		}
	}
	if len(list) == 0 {
		return machine.Timer{}, false
	}
	return slices.MinFunc(list, func(a, b machine.Timer) int {
		if c := a.At.Compare(b.At); c != 0 {
			return c
		}
		return int(a.Seq) - int(b.Seq)
	}), true
}

func (s *scenario) config(a args) {
	for _, c := range a.d.CmdArgs {
		switch c.Key {
		case "max-timeout":
			s.cfg.MaxTimeout = parseDuration(s.t, c.Vals[0])
		case "sweep":
			s.cfg.SweepInterval = parseDuration(s.t, c.Vals[0])
		case "expiration":
			s.cfg.IDExpiration = parseDuration(s.t, c.Vals[0])
		default:
			s.t.Fatalf("unknown setting %q", c.Key)
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
