package window

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"muster/internal/harness"
)

func TestScenarios(t *testing.T) {
	harness.Walk(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string { return new(scenario).run })
}

// scenario plays the log, the share coordinator and the clock around a window.
type scenario struct {
	t       *testing.T
	p       *Partition
	set     Settings
	sparse  bool
	now     time.Time
	log     []Batch
	aborted []Batch
	start   int64 // as it is stored
	stored  []StateBatch
	held    bool // writes wait for done or fails
	writes  map[uint64]*Write
	out     strings.Builder
}

func (s *scenario) printf(format string, args ...any) { fmt.Fprintf(&s.out, format, args...) }

func (s *scenario) run(t *testing.T, d *datadriven.TestData) string {
	s.t = t
	s.out.Reset()
	a := harness.Args{T: t, D: d}
	cmd, ok := map[string]func(harness.Args){
		"new": s.begin, "log": s.setLog, "abort": s.abort, "config": s.configure, "log-start": func(a harness.Args) { s.p.LogStart(offset(t, a.Who())) },
		"fetch": s.fetch, "ack": s.ack, "close": func(a harness.Args) { s.wrote(s.p.Leave(a.Who())) },
		"wait": s.wait, "hold": func(harness.Args) { s.held = true }, "done": s.done, "fails": s.fails,
		"failover": func(harness.Args) { s.load() }, "state": s.state,
	}[d.Cmd]
	if !ok {
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	cmd(a)
	if err := s.p.CheckInvariants(); err != nil {
		t.Errorf("%s: %v", d.Pos, err)
	}
	if s.out.Len() == 0 {
		return "ok\n"
	}
	return s.out.String()
}

func offset(t testing.TB, text string) int64 { return int64(harness.ParseInt(t, text)) }

// span reads 3-7, or 3.
func (s *scenario) span(text string) Batch {
	first, last, ok := strings.Cut(text, "-")
	if !ok {
		last = first
	}
	return Batch{offset(s.t, first), offset(s.t, last)}
}

// new [limit=5] [window=2000] [lock=30s] [renew=off] [start=0] [sparse]: an empty window.
func (s *scenario) begin(a harness.Args) {
	*s = scenario{t: s.t, now: time.Unix(1_700_000_000, 0), start: int64(a.Number("start", 0)), sparse: a.Flag("sparse")}
	s.set = Settings{Limit: 5, Window: 2000, Lock: 30 * time.Second, Renew: true}
	s.load()
	s.configure(a)
}

func (s *scenario) configure(a harness.Args) {
	s.set.Limit = int16(a.Number("limit", int(s.set.Limit)))
	s.set.Window = int64(a.Number("window", int(s.set.Window)))
	s.set.Lock = a.Duration("lock", s.set.Lock.String())
	s.set.Renew = a.Text("renew", "on") == "on"
	s.p.Configure(s.set)
}

// load is another leader, which knows what is stored.
func (s *scenario) load() {
	s.writes = map[uint64]*Write{}
	s.p = Load(s.set, Epochs{}, s.sparse, s.start, s.stored)
}

// log 0-9 10-19: the record batches that there are.
func (s *scenario) setLog(a harness.Args) {
	s.log = nil
	for _, c := range a.D.CmdArgs {
		s.log = append(s.log, s.span(c.Key))
	}
}

// abort 10-19: batches of a transaction that is aborted.
func (s *scenario) abort(a harness.Args) {
	for _, c := range a.D.CmdArgs {
		s.aborted = append(s.aborted, s.span(c.Key))
	}
	slices.SortFunc(s.aborted, func(a, b Batch) int { return cmp.Compare(a.First, b.First) })
}

// fetch a [max=500] [size=500] [exact] [committed] [bytes=2]: the member reads, a few batches
// if bytes are few.
func (s *scenario) fetch(a harness.Args) {
	from, ok := s.p.NextFetch()
	if !ok {
		s.printf("the window is full\n")
		return
	}
	f := Fetch{Member: a.Who(), MaxRecords: int64(a.Number("max", 500)), BatchSize: int64(a.Number("size", 500)), From: from, Next: from}
	if a.Flag("exact") {
		f.Mode = ByRecord
	}
	if a.Flag("committed") {
		f.Aborted = s.aborted
	}
	for _, b := range s.log {
		if b.Last >= from && len(f.Batches) < a.Number("bytes", 1000) {
			f.Batches, f.Next = append(f.Batches, b), b.Last+1
		}
	}
	ranges := s.p.Acquire(s.now, f)
	for _, r := range ranges {
		s.printf("%s ← %s delivery %d\n", a.Who(), show(r.First, r.Last), r.Count)
	}
	if len(ranges) == 0 {
		s.printf("%s ← nothing, read from %d\n", a.Who(), from)
	}
}

var typeNames = []string{"gap", "accept", "release", "reject", "renew"}

func typeOf(name string) int8 {
	for i, n := range typeNames {
		if n == name {
			return int8(i)
		}
	}
	return int8(len(typeNames))
}

// ack a 0-4=accept 5-6=(release,reject) [old]: the member says so; old is a request of a
// version that knows no renewal.
func (s *scenario) ack(a harness.Args) {
	var acks []Acknowledgement
	for _, c := range a.D.CmdArgs[1:] {
		if c.Key == "old" {
			continue
		}
		b := s.span(c.Key)
		ack := Acknowledgement{First: b.First, Last: b.Last}
		for _, v := range c.Vals {
			ack.Types = append(ack.Types, typeOf(v))
		}
		acks = append(acks, ack)
	}
	w, err := s.p.Acknowledge(s.now, a.Who(), acks, !a.Flag("old"))
	if err != nil {
		s.printf("%s ← %s\n", a.Who(), harness.ErrorName(err.Code))
		return
	}
	s.wrote(w)
	if w == nil {
		s.printf("%s ← OK\n", a.Who())
	}
}

// wrote is a write, which is done at once unless writes are held.
func (s *scenario) wrote(w *Write) {
	if w == nil {
		return
	}
	s.printf("write %d from %d, %d completed:", w.ID, w.Start, w.Completed)
	for _, b := range w.Batches {
		s.printf(" %s %s %d", show(b.First, b.Last), stateNames[b.State], b.Count)
	}
	s.printf("\n")
	s.writes[w.ID] = w
	if !s.held {
		s.settle(w.ID)
	}
}

// settle stores a write, as the share coordinator does.
func (s *scenario) settle(id uint64) {
	w, ok := s.writes[id]
	if !ok {
		s.t.Fatalf("there is no write %d", id)
	}
	delete(s.writes, id)
	s.start = w.Start
	for _, b := range w.Batches {
		var kept []StateBatch
		for _, old := range s.stored {
			if old.First < b.First {
				kept = append(kept, StateBatch{old.First, min(old.Last, b.First-1), old.State, old.Count})
			}
			if old.Last > b.Last {
				kept = append(kept, StateBatch{max(old.First, b.Last+1), old.Last, old.State, old.Count})
			}
		}
		kept = append(kept, b)
		s.stored = kept
	}
	s.p.Done(id)
}

func (s *scenario) done(a harness.Args) { s.settle(uint64(harness.ParseInt(s.t, a.Who()))) }

func (s *scenario) fails(a harness.Args) {
	id := uint64(harness.ParseInt(s.t, a.Who()))
	delete(s.writes, id)
	s.wrote(s.p.Failed(s.now, id))
}

// wait 10s [asleep]: time passes, and locks that run out are seen to, unless asleep.
func (s *scenario) wait(a harness.Args) {
	s.now = s.now.Add(harness.ParseDuration(s.t, a.Who()))
	if at, ok := s.p.NextExpiry(); ok && !at.After(s.now) && !a.Flag("asleep") {
		s.wrote(s.p.Expire(s.now))
	}
}

var stateNames = map[State]string{Available: "available", Acquired: "acquired", Acknowledged: "acknowledged", Archived: "archived", absent: "absent"}

func show(first, last int64) string {
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// state shows the window.
func (s *scenario) state(harness.Args) {
	s.printf("start %d, next %d\n", s.p.StartOffset(), s.p.NextOffset())
	for _, r := range s.p.runs {
		s.printf("%s %s %d", show(r.first, r.last), stateNames[r.state], r.count)
		if r.state == Acquired {
			s.printf(" by %s for %s", r.member, time.Duration(r.until-s.now.UnixNano()))
		}
		if r.write != 0 {
			s.printf(", %s after write %d", stateNames[r.then], r.write)
		}
		s.printf("\n")
	}
}
