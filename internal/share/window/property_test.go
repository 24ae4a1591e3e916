package window

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// pair compares a window with a model, call by call.
type pair struct {
	t       *rapid.T
	p       *Partition
	m       *model
	now     time.Time
	log     []Batch // what the log has; other offsets have no record
	aborted []Batch
	end     int64
	writes  map[uint64]*Write // under way
	stored  map[int64]StateBatch
	begun   int64
	gone    map[int64]State // terminal, as far as the window has said
}

func (x *pair) failf(format string, args ...any) {
	x.t.Helper()
	x.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), x.p)
}

// String shows the runs, for people.
func (p *Partition) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%d, %d)", p.start, p.next)
	for _, r := range p.runs {
		fmt.Fprintf(&b, " %d-%d:%+v", r.first, r.last, r.is)
	}
	return b.String()
}

// check compares all that is known.
func (x *pair) check() {
	x.t.Helper()
	if err := x.p.CheckInvariants(); err != nil {
		x.failf("%v", err)
	}
	if x.p.StartOffset() != x.m.start || x.p.NextOffset() != x.m.next || x.p.Completed() != x.m.completed() {
		x.failf("want [%d, %d) with %d completed, not %d", x.m.start, x.m.next, x.m.completed(), x.p.Completed())
	}
	first, locked := int64(0), false
	for _, r := range x.p.runs {
		for o := r.first; o <= r.last; o++ {
			if x.m.at[o] != r.is {
				x.failf("%d is %+v, want %+v", o, r.is, x.m.at[o])
			}
		}
		if r.state == Acquired && r.write == 0 && (!locked || r.until < first) {
			first, locked = r.until, true
		}
	}
	if at, ok := x.p.NextExpiry(); ok != locked || ok && at.UnixNano() != first {
		x.failf("the next lock runs out %v, %t", at, ok)
	}
	if x.p.StartOffset() < x.begun {
		x.failf("the start went back from %d", x.begun)
	}
	x.begun = x.p.StartOffset()
	x.final()
	offset, ok := x.p.NextFetch()
	want, is := x.m.next, x.m.used() < x.m.set.Window
	for o := x.m.next - 1; o >= x.m.start; o-- {
		if x.m.at[o].state == Available {
			want, is = o, true
		}
	}
	if offset != want || ok != is {
		x.failf("reads from %d, %t; want %d, %t", offset, ok, want, is)
	}
}

// final says that what was acknowledged or archived stays so.
func (x *pair) final() {
	for _, r := range x.p.runs {
		for o := r.first; o <= r.last; o++ {
			if was, ok := x.gone[o]; ok && was != r.state {
				x.failf("%d was %d", o, was)
			}
			if r.state.isTerminal() {
				x.gone[o] = r.state
			}
		}
	}
}

// wrote looks at a write that the window asks for, and keeps it for later.
func (x *pair) wrote(w *Write, want bool, start int64) {
	x.t.Helper()
	if (w != nil) != want {
		x.failf("a write: %+v, want %t", w, want)
	}
	if w == nil {
		return
	}
	if w.ID != x.m.write || w.Epochs != (Epochs{3, 5}) || w.Start != start {
		x.failf("write %+v, should be %d from %d", w, x.m.write, start)
	}
	next := start
	for i, b := range w.Batches {
		alike := i > 0 && w.Batches[i-1].Last+1 == b.First && w.Batches[i-1].State == b.State && w.Batches[i-1].Count == b.Count
		if b.First < next || b.Last < b.First || alike || b.State == Acquired || b.State == absent {
			x.failf("write %+v", w)
		}
		next = b.Last + 1
	}
	x.writes[w.ID] = w
}

// store is what the share coordinator does with a write, as far as it matters here.
func (x *pair) store(w *Write) {
	for _, b := range w.Batches {
		for o := b.First; o <= b.Last; o++ {
			if was, ok := x.stored[o]; !ok || b.Count > was.Count || b.Count == was.Count && b.State > was.State {
				x.stored[o] = StateBatch{o, o, b.State, b.Count}
			}
		}
	}
	for o := range x.stored {
		if o < w.Start {
			delete(x.stored, o)
		}
	}
}

func (x *pair) member() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(x.t, "member") }

// grow adds batches, some after a hole, some of a transaction that is aborted.
func (x *pair) grow() {
	for range rapid.IntRange(1, 4).Draw(x.t, "batches") {
		x.end += rapid.SampledFrom([]int64{0, 0, 0, 1, 3, 40}).Draw(x.t, "hole")
		n := rapid.Int64Range(1, 9).Draw(x.t, "length")
		x.log = append(x.log, Batch{x.end, x.end + n - 1})
		if rapid.IntRange(0, 5).Draw(x.t, "abort") == 0 {
			x.aborted = append(x.aborted, Batch{x.end, x.end + n - 1})
		}
		x.end += n
	}
}

// compact removes a batch.
func (x *pair) compact() {
	if len(x.log) > 0 {
		i := rapid.IntRange(0, len(x.log)-1).Draw(x.t, "batch")
		x.log = slices.Delete(slices.Clone(x.log), i, i+1)
	}
}

func (x *pair) fetch() {
	from, _ := x.p.NextFetch()
	if rapid.IntRange(0, 3).Draw(x.t, "from elsewhere") == 0 {
		from += rapid.Int64Range(-4, 4).Draw(x.t, "from")
	}
	f := Fetch{
		Member: x.member(), Mode: Mode(rapid.IntRange(0, 1).Draw(x.t, "mode")), From: from, Next: max(from, 0),
		MaxRecords: rapid.Int64Range(0, 20).Draw(x.t, "max records"), BatchSize: rapid.Int64Range(0, 12).Draw(x.t, "batch size"),
	}
	for _, b := range x.log {
		if b.Last >= from && len(f.Batches) < 6 {
			f.Batches = append(f.Batches, b)
			f.Next = b.Last + 1
		}
	}
	if len(f.Batches) < 6 {
		f.Next = max(f.Next, x.end)
	}
	if rapid.Bool().Draw(x.t, "committed") {
		f.Aborted = x.aborted
	}
	before := x.p.NextOffset()
	got, want := x.p.Acquire(x.now, f), x.m.acquire(x.now, f)
	if !slices.Equal(got, want) {
		x.failf("%+v has %v, want %v", f, got, want)
	}
	last, fresh := int64(-1), false
	for _, r := range got {
		if r.First <= last || r.Last < r.First || r.Count > x.m.set.Limit {
			x.failf("ranges %v", got)
		}
		last, fresh = r.Last, fresh || r.Last >= before
		for o := r.First; o <= r.Last; o++ {
			if in(x.log, o) < 0 {
				x.failf("%d is not in the log", o)
			}
		}
	}
	if fresh && x.m.used() > x.m.set.Window {
		x.failf("the window has %d", x.m.used())
	}
}

func (x *pair) acknowledge() {
	var acks []Acknowledgement
	at := x.p.StartOffset() - rapid.Int64Range(0, 3).Draw(x.t, "before")
	for range rapid.IntRange(0, 4).Draw(x.t, "acknowledgements") {
		at += rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 5, -1}).Draw(x.t, "skip")
		n := rapid.SampledFrom([]int64{1, 2, 3, 5, 8, 0}).Draw(x.t, "length")
		a := Acknowledgement{First: at, Last: at + n - 1}
		types := rapid.SampledFrom([]int64{1, 1, n, n, 2, 0}).Draw(x.t, "types")
		for range types {
			a.Types = append(a.Types, rapid.SampledFrom([]int8{Gap, Accept, Accept, Release, Release, Reject, Renew, 5}).Draw(x.t, "type"))
		}
		acks = append(acks, a)
		at += n
	}
	x.say(x.member(), acks, rapid.Bool().Draw(x.t, "renew"))
}

func (x *pair) say(member string, acks []Acknowledgement, renew bool) {
	start := x.m.start
	before := slices.Clone(x.p.runs)
	w, err := x.p.Acknowledge(x.now, member, acks, renew)
	code, write := x.m.acknowledge(x.now, member, acks, renew)
	if (err == nil) != (code == 0) || err != nil && err.Code != code {
		x.failf("%v: %v, want %d", acks, err, code)
	}
	if err != nil && !slices.Equal(before, x.p.runs) {
		x.failf("%v: %v, but something changes", acks, err)
	}
	x.wrote(w, write, start)
}

// process says something of what a member has, which is seldom wrong.
func (x *pair) process() {
	member := x.member()
	var acks []Acknowledgement
	for _, r := range x.p.runs {
		if r.state != Acquired || r.member != member || r.write != 0 || rapid.IntRange(0, 3).Draw(x.t, "skip") == 0 {
			continue
		}
		a := Acknowledgement{First: r.first, Last: r.last}
		n := r.length()
		if rapid.Bool().Draw(x.t, "one type") {
			n = 1
		}
		for range n {
			a.Types = append(a.Types, rapid.SampledFrom([]int8{Gap, Accept, Accept, Release, Release, Release, Reject, Renew}).Draw(x.t, "type"))
		}
		acks = append(acks, a)
	}
	x.say(member, acks, true)
}

func (x *pair) settle() {
	if len(x.writes) == 0 {
		return
	}
	id := rapid.SampledFrom(slices.Sorted(maps.Keys(x.writes))).Draw(x.t, "write")
	w := x.writes[id]
	delete(x.writes, id)
	if rapid.IntRange(0, 3).Draw(x.t, "fails") > 0 {
		x.store(w)
		x.p.Done(id)
		x.m.done(id)
		return
	}
	start := x.m.start
	x.wrote(x.p.Failed(x.now, id), x.m.failed(x.now, id), start)
}

// fail is another leader, who knows what was stored.
func (x *pair) fail() {
	var batches []StateBatch
	for _, o := range slices.Sorted(maps.Keys(x.stored)) {
		batches = append(batches, x.stored[o])
	}
	start := x.begun
	if len(batches) > 0 {
		start = min(start, batches[0].First)
	}
	x.p = Load(x.m.set, Epochs{3, 5}, x.m.sparse, start, batches)
	x.m = newModel(x.m.set, x.m.sparse, start, batches)
	x.writes, x.begun, x.gone = map[uint64]*Write{}, x.p.start, map[int64]State{}
}

func (x *pair) configure() {
	x.m.set.Limit = rapid.Int16Range(2, 6).Draw(x.t, "limit")
	x.m.set.Renew = rapid.Bool().Draw(x.t, "renew")
	x.m.set.Window = rapid.SampledFrom([]int64{8, 20, 60}).Draw(x.t, "window")
	x.p.Configure(x.m.set)
}

// A window is what its rules say of each offset.
func TestRunsDoWhatOffsetsWould(t *testing.T) {
	for range 10 { // A hundred sequences each.
		t.Run("", rapid.MakeCheck(compare))
	}
}

func FuzzWindow(f *testing.F) { f.Fuzz(rapid.MakeFuzz(compare)) }

func compare(t *rapid.T) {
	set := Settings{Lock: 10 * time.Second, Limit: 3, Window: 20, Renew: true}
	x := &pair{t: t, now: time.Unix(1000, 0), writes: map[uint64]*Write{}, stored: map[int64]StateBatch{}, gone: map[int64]State{}}
	sparse := rapid.Bool().Draw(t, "sparse")
	x.p, x.m = Load(set, Epochs{3, 5}, sparse, 0, nil), newModel(set, sparse, 0, nil)
	steps := map[string]func(){
		"configure": x.configure, "grow": x.grow, "compact": x.compact, "fetch": x.fetch, "acknowledge": x.acknowledge, "process": x.process, "settle": x.settle, "fail": x.fail,
		"wait": func() {
			x.now = x.now.Add(time.Duration(rapid.IntRange(1, 8).Draw(t, "seconds")) * time.Second)
			start := x.m.start
			x.wrote(x.p.Expire(x.now), x.m.expire(x.now), start)
		},
		"pass": func() { // Time passes, and no one looks at locks.
			x.now = x.now.Add(time.Duration(rapid.IntRange(1, 8).Draw(t, "seconds")) * time.Second)
		},
		"leave": func() {
			member, start := x.member(), x.m.start
			x.wrote(x.p.Leave(member), x.m.leave(member), start)
		},
		"start": func() {
			offset := x.p.StartOffset() + rapid.Int64Range(-2, 12).Draw(t, "offset")
			x.p.LogStart(offset)
			x.m.logStart(offset)
		},
	}
	names := []string{
		"fetch", "fetch", "fetch", "fetch", "grow", "grow", "process", "process", "process", "acknowledge", "settle", "settle", "settle", "wait", "pass", "compact", "leave", "fail", "start", "configure",
	}
	for range rapid.IntRange(1, 80).Draw(t, "steps") {
		steps[rapid.SampledFrom(names).Draw(t, "step")]()
		x.check()
	}
}
