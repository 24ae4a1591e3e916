package pump

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/journal"
	"muster/internal/machine"
)

// note is a record of the scripted core.
type note string

func (n note) Encode() (key, value []byte) { return []byte(n), []byte("value") }
func (n note) Size() int                   { return len(n) + len("value") }

// script is a core that does what the test says, and remembers what it was told.
type script struct {
	next machine.Effects
	seen []string
}

func (s *script) Replay(machine.Stored) {}

func (s *script) Step(in machine.Input) machine.Effects {
	switch e := in.Event.(type) {
	case machine.Request:
		s.seen = append(s.seen, fmt.Sprintf("request %d", e.ID))
	case machine.TimerFired:
		s.seen = append(s.seen, fmt.Sprintf("timer %s %d", e.Key.Kind, e.Seq))
	case machine.Appended:
		s.seen = append(s.seen, fmt.Sprintf("appended %d at %d", e.Tag, e.Offset))
	case machine.Sent:
		s.seen = append(s.seen, fmt.Sprintf("sent %d", e.ID))
	case machine.TaskDone:
		s.seen = append(s.seen, fmt.Sprintf("task %d: %v", e.ID, e.Result))
	default:
		s.seen = append(s.seen, strings.TrimPrefix(fmt.Sprintf("%T", e), "machine."))
	}
	fx := s.next
	s.next = machine.Effects{}
	return fx
}

// bed is a pump with a scripted core.
type bed struct {
	t    *testing.T
	pump *Pump
	core *script
	in   machine.Input
	ids  machine.RequestID
}

func newBed(t *testing.T) *bed {
	b := &bed{t: t, pump: New(), in: machine.Input{Now: time.Unix(1_700_000_000, 0)}}
	b.load()
	return b
}

// load gives the pump a core that knows nothing.
func (b *bed) load() {
	b.core = &script{}
	if !b.pump.Begin(b.pump.Life(), b.core, machine.Loaded{Epoch: 1}, b.in) {
		b.t.Fatal("the pump does not take a core")
	}
	b.pump.Drained()
}

// drained is what the pump wants done, and the append that begins then.
type drained struct {
	Out
	append *Append // nil if none does
}

func (b *bed) drain() drained {
	d := drained{Out: b.do()}
	if a, ok := b.pump.Append(); ok {
		d.append = &a
	}
	return d
}

// do does what the pump wants done, which is to remember it.
func (b *bed) do() Out {
	out := b.pump.Drain()
	out.Replies, out.Sends = slices.Clone(out.Replies), slices.Clone(out.Sends)
	out.Tasks, out.Notes = slices.Clone(out.Tasks), slices.Clone(out.Notes)
	b.pump.Drained()
	return out
}

// ask has a request handled that asks for these batches, and is answered.
func (b *bed) ask(batches ...machine.Batch) drained {
	b.ids++
	b.core.next = machine.Effects{
		Batches: batches, Replies: []machine.Reply{{ID: b.ids}}, Sends: []machine.Send{{ID: uint64(b.ids)}},
		Notes: []machine.Note{&journal.Entry{Group: fmt.Sprint(b.ids)}},
	}
	if !b.pump.Request(b.in, machine.Request{ID: b.ids}) {
		b.t.Fatal("nobody handles the request")
	}
	return b.drain()
}

// done ends the append under way.
func (b *bed) done(base int64) drained {
	b.pump.Appended(b.pump.Life(), b.in, base, false)
	return b.drain()
}

// plain is a batch of records that may be merged with others.
func plain(names ...string) machine.Batch {
	var b machine.Batch
	for _, n := range names {
		b.Records = append(b.Records, note(n))
	}
	return b
}

// appended shows what is to be appended: nothing is empty.
func appended(o drained) string {
	if o.append == nil {
		return ""
	}
	var names []string
	for _, r := range o.append.Records {
		names = append(names, string(r.(note)))
	}
	return strings.Join(names, " ")
}

// released checks who is let out: replies, sends and journal alike.
func (b *bed) released(o drained, want ...machine.RequestID) {
	b.t.Helper()
	var got []machine.RequestID
	for _, r := range o.Replies {
		got = append(got, r.ID)
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("answered are %v, should be %v", got, want)
	}
	if len(o.Sends) != len(want) || len(o.Notes) != len(want) {
		b.t.Errorf("%d sends and %d notes go out, should be those of %v", len(o.Sends), len(o.Notes), want)
	}
}

func (b *bed) appends(o drained, want string) {
	b.t.Helper()
	if got := appended(o); got != want {
		b.t.Errorf("%q is appended, should be %q", got, want)
	}
}

func TestWhatAStepLetsOutWaitsForItsRecordsAndAllBefore(t *testing.T) {
	b := newBed(t)
	b.released(b.ask(), 1)
	out := b.ask(plain("a"))
	b.appends(out, "a")
	b.released(out)
	b.released(b.ask()) // Has no records, and reads what is not durable.
	out = b.ask(plain("b"))
	b.appends(out, "")
	b.released(out)
	b.released(b.ask())
	out = b.done(0)
	b.released(out, 2, 3)
	b.appends(out, "b")
	b.released(b.done(1), 4, 5)
	b.released(b.ask(), 6)
}

func TestPlainBatchesAreMergedWhileAnAppendIsUnderWay(t *testing.T) {
	b := newBed(t)
	b.appends(b.ask(plain("a")), "a")
	b.ask(plain("b", "c"))
	b.ask(plain("d"))
	out := b.done(0)
	b.appends(out, "b c d")
	b.released(out, 1)
	b.released(b.done(1), 2, 3)
}

// The runtime begins an append when it wants to. Until then all that comes is part
// of it, and nothing is let out.
func TestWhatComesBeforeTheNextAppendBeginsIsPartOfIt(t *testing.T) {
	b := newBed(t)
	step := func(name string) {
		b.ids++
		b.core.next = machine.Effects{Batches: []machine.Batch{plain(name)}, Replies: []machine.Reply{{ID: b.ids}}}
		b.pump.Request(b.in, machine.Request{ID: b.ids})
		if out := b.do(); len(out.Replies) > 0 {
			t.Errorf("%v are answered before an append begins", out.Replies)
		}
	}
	if b.pump.Ready() {
		t.Error("an append of nothing could begin")
	}
	step("a")
	step("b")
	if !b.pump.Ready() {
		t.Error("no append could begin")
	}
	b.appends(b.drain(), "a b")
	step("c")
	if _, ok := b.pump.Append(); ok || b.pump.Ready() {
		t.Error("a second append could begin before the first has ended")
	}
	b.pump.Appended(b.pump.Life(), b.in, 0, false)
	if out := b.do(); len(out.Replies) != 2 || !b.pump.Ready() {
		t.Errorf("%v are answered; an append could begin: %v", out.Replies, b.pump.Ready())
	}
	step("d")
	b.appends(b.drain(), "c d")
}

func TestABatchThatMustBeWholeIsAppendedAlone(t *testing.T) {
	for what, alone := range map[string]machine.Batch{
		"whole":    {Records: plain("x", "y").Records, Whole: true},
		"producer": {Records: plain("x", "y").Records, Producer: &machine.Producer{ID: 7, Epoch: 1, Transactional: true}},
	} {
		t.Run(what, func(t *testing.T) {
			b := newBed(t)
			b.in.MaxBatch = 20 // Too small for both records together, if they could be parted.
			b.ask(plain("a"))
			b.ask(plain("b"), alone, plain("c"))
			b.ask(plain("d"))
			b.appends(b.done(0), "b")
			out := b.done(1)
			b.appends(out, "x y")
			if out.append.Producer != alone.Producer {
				t.Errorf("appended for producer %+v", out.append.Producer)
			}
			b.released(out)
			b.in.MaxBatch = 0
			b.appends(b.done(2), "c d")
			b.released(b.done(4), 2, 3)
		})
	}
}

func TestAMarkerIsABatchOfItsOwn(t *testing.T) {
	b := newBed(t)
	marker := machine.Batch{Producer: &machine.Producer{ID: 7}, Control: &machine.Control{Commit: true, CoordinatorEpoch: 3}}
	out := b.ask(plain("a"), marker, plain("b"))
	b.appends(out, "a")
	out = b.done(0)
	if out.append == nil || out.append.Control != marker.Control || out.append.Producer != marker.Producer {
		t.Fatalf("appended is %+v, should be the marker", out.append)
	}
	b.released(out)
	b.appends(b.done(1), "b")
	b.released(b.done(2), 1)
}

// A batch that grew too large is split between records, and no one is answered
// before the last part is durable.
func TestALargeBatchIsSplitAndAnsweredAtItsEnd(t *testing.T) {
	one := machine.RecordOverhead + note("a").Size()
	for what, limit := range map[string]int{"by the log's limit": 2 * one, "by count": 0, "by bytes": 64 << 20} {
		t.Run(what, func(t *testing.T) {
			b := newBed(t)
			b.in.MaxBatch = limit
			names, first := []string{"a", "b", "c", "d", "e"}, 2
			switch limit {
			case 0:
				names, first = slices.Repeat(names, maxRecords/4), maxRecords
			case 64 << 20:
				large := strings.Repeat("x", maxBytes/2-machine.RecordOverhead-len("value"))
				names, first = slices.Repeat([]string{large}, 5), 2
			}
			out := b.ask(plain(names...))
			for len(names) > 0 {
				n := min(first, len(names))
				b.appends(out, strings.Join(names[:n], " "))
				b.released(out)
				names = names[n:]
				out = b.done(0)
			}
			b.released(out, 1)
			b.appends(out, "")
		})
	}
}

func TestARecordThatIsTooLargeIsLeftToTheLog(t *testing.T) {
	b := newBed(t)
	b.in.MaxBatch = 1
	b.appends(b.ask(plain("a", "b")), "a")
	b.appends(b.done(0), "b")
}

// A tag is told where its batch is, also in the middle of a merged one that was
// split again.
func TestTheCoreIsToldWhereATaggedBatchIs(t *testing.T) {
	b := newBed(t)
	tagged := func(tag uint64, names ...string) machine.Batch {
		p := plain(names...)
		p.Tag = tag
		return p
	}
	b.ask(tagged(1, "a"))
	b.ask(plain("b"), tagged(2, "c", "d"))
	b.ask(tagged(3, "e"))
	b.core.seen = nil
	b.in.MaxBatch = 2 * (machine.RecordOverhead + note("a").Size())
	b.core.next = machine.Effects{Replies: []machine.Reply{{ID: 99}}}
	out := b.done(40)
	if len(out.Replies) != 1 { // The other one waits for b to e.
		t.Errorf("answered are %v", out.Replies)
	}
	b.appends(out, "b c")
	b.appends(b.done(50), "d e")
	b.done(60)
	if want := []string{"appended 1 at 40", "appended 2 at 51", "appended 3 at 61"}; !slices.Equal(b.core.seen, want) {
		t.Errorf("the core was told %v, should be %v", b.core.seen, want)
	}
}

func TestAFailedAppendEndsTheLifeWithAllThatWaits(t *testing.T) {
	b := newBed(t)
	life := b.pump.Life()
	b.core.next.Timers = []machine.Timer{{Key: machine.TimerKey{Kind: "k"}, At: b.in.Now}}
	b.pump.Tell(b.in, machine.TopicsChanged{})
	b.ask(plain("a"))
	b.ask(plain("stale"))
	b.pump.Appended(life, b.in, 0, true)
	out := b.drain()
	b.released(out)
	b.appends(out, "")
	if !out.Lost || b.pump.Active() || !b.pump.Loading() || b.pump.Life() == life {
		t.Errorf("lost %v, active %v, loading %v, life %d after %d", out.Lost, b.pump.Active(), b.pump.Loading(), b.pump.Life(), life)
	}
	if b.pump.Request(b.in, machine.Request{ID: 50}) || !b.pump.Next().IsZero() {
		t.Error("handles requests and timers without a core")
	}
	b.load()
	b.released(b.ask(), 3) // Nothing is left that it would have to wait for.
	b.appends(b.ask(plain("new")), "new")
	b.released(b.done(9), 4)
}

func TestWhatComesFromAnEarlierLifeIsIgnored(t *testing.T) {
	b := newBed(t)
	old := b.pump.Life()
	b.ask(plain("a"))
	b.pump.Appended(old, b.in, 0, true)
	b.pump.Drained()
	if b.pump.Begin(old, &script{}, machine.Loaded{Epoch: 1}, b.in) {
		t.Error("takes a core that was loaded for an earlier life")
	}
	b.load()
	b.ask(plain("b"))
	b.core.seen = nil
	b.pump.Appended(old, b.in, 5, false)
	b.pump.Sent(old, b.in, machine.Sent{ID: 1})
	b.pump.TaskDone(old, b.in, machine.TaskDone{ID: 1})
	b.pump.Appended(old, b.in, 5, true)
	b.released(b.drain())
	if len(b.core.seen) > 0 || !b.pump.Active() {
		t.Errorf("the core was told %v, active %v", b.core.seen, b.pump.Active())
	}
	b.released(b.done(0), 2)
}

func TestOutcomesReachTheCore(t *testing.T) {
	b := newBed(t)
	b.core.seen = nil
	b.core.next.Tasks = []machine.Task{{ID: 4}}
	b.pump.Tell(b.in, machine.TopicsChanged{})
	if out := b.do(); len(out.Tasks) != 1 || out.Tasks[0].ID != 4 {
		t.Errorf("tasks %v", out.Tasks)
	}
	b.pump.Sent(b.pump.Life(), b.in, machine.Sent{ID: 3})
	b.pump.TaskDone(b.pump.Life(), b.in, machine.TaskDone{ID: 4, Result: "r"})
	if want := []string{"TopicsChanged", "sent 3", "task 4: r"}; !slices.Equal(b.core.seen, want) {
		t.Errorf("the core was told %v, should be %v", b.core.seen, want)
	}
}

// Tasks begin at once: no one outside sees them.
func TestTasksDoNotWaitForRecords(t *testing.T) {
	b := newBed(t)
	b.core.next = machine.Effects{Batches: []machine.Batch{plain("a")}, Tasks: []machine.Task{{ID: 1}}}
	b.pump.Tell(b.in, machine.TopicsChanged{})
	if out := b.drain(); len(out.Tasks) != 1 || out.append == nil {
		t.Errorf("tasks %v, append %v", out.Tasks, out.append)
	}
}

// settings stands for an event of a core's own.
type settings struct{}

func (settings) IsEvent() {}

func TestWhatComesDuringALoadIsToldAfterIt(t *testing.T) {
	b := &bed{pump: New(), core: &script{}}
	b.pump.Tell(b.in, settings{})
	b.pump.Tell(b.in, machine.TopicsChanged{Topics: []string{"t"}}) // The load looks at all topics.
	b.pump.Begin(b.pump.Life(), b.core, machine.Loaded{Epoch: 1}, b.in)
	if want := []string{"Loaded", "pump.settings"}; !slices.Equal(b.core.seen, want) {
		t.Errorf("the core was told %v, should be %v", b.core.seen, want)
	}
}

func TestTimersFireOnceInOrderWhenTheirTimeHasCome(t *testing.T) {
	b := newBed(t)
	at := func(kind string, seq uint64, in time.Duration) machine.Timer {
		return machine.Timer{Key: machine.TimerKey{Kind: kind}, Seq: seq, At: b.in.Now.Add(in)}
	}
	b.core.next.Timers = []machine.Timer{at("late", 1, 5*time.Second), at("soon", 2, time.Second), at("gone", 3, 0), at("again", 4, time.Second)}
	b.pump.Tell(b.in, machine.TopicsChanged{})
	b.core.next.Timers = []machine.Timer{{Key: machine.TimerKey{Kind: "gone"}, Cancel: true}, at("again", 5, 2*time.Second)}
	b.pump.Tell(b.in, machine.TopicsChanged{})
	if want := b.in.Now.Add(time.Second); !b.pump.Next().Equal(want) {
		t.Errorf("the next one is due at %v, should be %v", b.pump.Next(), want)
	}
	b.core.seen = nil
	b.pump.Fire(b.in)
	b.in.Now = b.in.Now.Add(2 * time.Second)
	b.pump.Fire(b.in)
	b.pump.Fire(b.in)
	if want := []string{"timer soon 2", "timer again 5"}; !slices.Equal(b.core.seen, want) {
		t.Errorf("the core was told %v, should be %v", b.core.seen, want)
	}
}

func TestAnEndedPumpDoesNothing(t *testing.T) {
	b := newBed(t)
	b.ask(plain("a"))
	life := b.pump.Life()
	b.pump.End()
	b.core.seen = nil
	b.pump.Appended(life, b.in, 0, false)
	b.pump.Tell(b.in, settings{})
	b.pump.Fire(b.in)
	if b.pump.Request(b.in, machine.Request{}) || b.pump.Begin(life, b.core, machine.Loaded{Epoch: 1}, b.in) || len(b.core.seen) > 0 {
		t.Errorf("the core was told %v", b.core.seen)
	}
	b.released(b.drain())
}
