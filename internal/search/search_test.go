package search

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// bag makes a search of some partitions, page by page, and returns what was found.
func bag(t *testing.T, s *Search, c *Cursor) (found []*Found, pages int, last *Outcome) {
	t.Helper()
	s.Now = time.Now
	s.Progress = func(Progress) {}
	for ; c != nil; pages++ {
		n := 0
		s.Found = func(f *Found) {
			n++
			found = append(found, f)
		}
		out, err := s.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if n > s.Limits.Records || out.Found != int64(len(found)) || pages > 100_000 {
			t.Fatalf("page %d has %d records: %+v", pages, n, out)
		}
		last = out
		if c = out.Next; c != nil {
			if c, err = ParseCursor(c.String()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return found, pages, last
}

// Whatever the order, the size of pages and the gaps: everything is found once, counted
// once, and in order.
func TestASearchFindsEverythingOnceAndInOrder(t *testing.T) {
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 1))
		logs := map[int32]Log{}
		var parts []int32
		var all []Record
		sparse := r.IntN(2) == 0
		for p := range int32(1 + r.IntN(5)) {
			l := aLog(r, p, 1+r.IntN(300), sparse)
			logs[p], parts, all = l, append(parts, p), append(all, l.all()...)
		}
		filtered, newest := r.IntN(2) == 0, r.IntN(2) == 0
		spec := Spec{}
		var want []string
		for _, x := range all {
			three := string(x.Value[len(x.Value)-6:]) == "true}}"
			if !filtered || three {
				want = append(want, fmt.Sprintf("%d@%d", x.Partition, x.Offset))
			}
		}
		if filtered {
			spec.Path, spec.PathValue = "$.of.three", "true"
		}
		s := &Search{Logs: logs, Filter: aFilter(t, spec), Limits: limits(1 + r.IntN(60)), Dense: !sparse}
		c, err := Begin(t.Context(), logs, parts, Place{}, Place{Kind: End})
		if err != nil {
			t.Fatal(err)
		}
		c.Newest = newest
		found, _, last := bag(t, s, c)
		var got []string
		for i, f := range found {
			got = append(got, fmt.Sprintf("%d@%d", f.Partition, f.Offset))
			// Timestamps go back by less than 30 within a partition.
			if i > 0 {
				back := found[i-1].Timestamp - f.Timestamp
				if newest {
					back = -back
				}
				if back > 30 {
					t.Fatalf("seed %d: %s comes %d ms too late after %s", seed, got[i], back, got[i-1])
				}
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || last.Why != AtEnd || last.Searched != int64(len(all)) || last.Total != last.Searched || last.About {
			t.Fatalf("seed %d: found %d of %d; %+v of %d\n%v\n%v", seed, len(got), len(want), last, len(all), got, want)
		}
	}
}

func TestPlacesBoundASearch(t *testing.T) {
	l := aLog(rand.New(rand.NewPCG(1, 2)), 0, 100, false)
	logs := map[int32]Log{0: l}
	all := l.all()
	for _, c := range []struct {
		from, to string
		low, hi  int64
	}{
		{"beginning", "end", l.start, l.end},
		{"end", "", l.end, l.end},
		{fmt.Sprintf("offset:%d", all[10].Offset), fmt.Sprintf("offset:%d", all[20].Offset), all[10].Offset, all[20].Offset},
		{"offset:0", "offset:99999999", l.start, l.end},
		{"offset:50", "offset:10", min(50, l.end), min(50, l.end)},
		{"time:1970-01-01T00:00:00Z", "", l.start, l.end},
		{"time:-1h", "", l.end, l.end},
	} {
		from, err := ParsePlace(c.from, Beginning, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		to, err := ParsePlace(c.to, End, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		got, err := Begin(t.Context(), logs, []int32{0}, from, to)
		if err != nil || got.Spans[0] != (Span{0, c.low, c.hi}) {
			t.Errorf("%s to %s: %+v, %v; want %d to %d", c.from, c.to, got.Spans, err, c.low, c.hi)
		}
	}
	at := all[50].Timestamp
	from, err := ParsePlace("time:"+time.UnixMilli(at).UTC().Format(time.RFC3339Nano), Beginning, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	got, err := Begin(t.Context(), logs, []int32{0}, from, Place{Kind: End})
	if i := slices.IndexFunc(all, func(r Record) bool { return r.Timestamp >= at }); err != nil || got.Spans[0].Low != all[i].Offset {
		t.Errorf("from %d: %+v, %v", at, got.Spans, err)
	}
}

// A search ends when it may take no more, and goes on from there.
func TestASearchEndsAtItsBounds(t *testing.T) {
	for name, c := range map[string]struct {
		limits Limits
		why    string
	}{
		"bytes": {Limits{Records: 1000, Bytes: 500, Page: 1 << 30, Shown: 10, Time: time.Hour}, AtBytes},
		"time":  {Limits{Records: 1000, Bytes: 1 << 40, Page: 1 << 30, Shown: 10, Time: -1}, AtTimeout},
		"page":  {Limits{Records: 1000, Bytes: 1 << 40, Page: 1000, Shown: 10, Time: time.Hour}, AtPage},
		"limit": {Limits{Records: 3, Bytes: 1 << 40, Page: 1 << 30, Shown: 10, Time: time.Hour}, AtLimit},
	} {
		for _, newest := range []bool{false, true} {
			logs := map[int32]Log{}
			for p := range int32(3) {
				logs[p] = aLog(rand.New(rand.NewPCG(3, uint64(p))), p, 200, false)
			}
			s := &Search{Logs: logs, Filter: aFilter(t, Spec{}), Limits: c.limits, Dense: true, Now: time.Now, Progress: func(Progress) {}, Found: func(f *Found) {
				if len(f.Value) > 10 || f.Value == nil {
					t.Errorf("the value has %d bytes", len(f.Value))
				}
			}}
			first, err := Begin(t.Context(), logs, []int32{0, 1, 2}, Place{}, Place{Kind: End})
			if err != nil {
				t.Fatal(err)
			}
			first.Newest = newest
			out, err := s.Run(t.Context(), first)
			if err != nil || out.Why != c.why || out.Next == nil || out.Searched == 0 || out.Searched >= 600 || !out.About || out.Total < 600 {
				t.Errorf("%s: %+v, %v", name, out, err)
			}
			found, pages, _ := bag(t, s, first)
			if len(found) < 600 || pages < 3 {
				t.Errorf("%s: %d records on %d pages", name, len(found), pages)
			}
		}
	}
}

func TestASearchStopsAtOnceWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	l := aLog(rand.New(rand.NewPCG(3, 3)), 0, 1000, false)
	for _, newest := range []bool{false, true} {
		n := 0
		s := &Search{Logs: map[int32]Log{0: l}, Filter: aFilter(t, Spec{}), Limits: limits(100000), Now: time.Now, Progress: func(Progress) {}, Found: func(*Found) { n++; cancel() }}
		_, err := s.Run(ctx, &Cursor{Newest: newest, Spans: []Span{{0, l.start, l.end}}})
		if !errors.Is(err, context.Canceled) || n > 200 {
			t.Errorf("after %d records: %v", n, err)
		}
	}
}

// A partition that cannot be read leaves the others to be searched, and can be tried again.
func TestAPartitionThatFailsIsNamed(t *testing.T) {
	a, b := aLog(rand.New(rand.NewPCG(1, 1)), 0, 50, false), aLog(rand.New(rand.NewPCG(2, 2)), 1, 50, false)
	b.fails = errors.New("no leader")
	n := 0
	s := &Search{Logs: map[int32]Log{0: a, 1: b}, Filter: aFilter(t, Spec{}), Limits: limits(1000), Now: time.Now, Progress: func(Progress) {}, Found: func(*Found) { n++ }}
	out, err := s.Run(t.Context(), &Cursor{Spans: []Span{{0, a.start, a.end}, {1, b.start, b.end}}})
	if err != nil || out.Why != AtFailure || len(out.Failures) != 1 || out.Failures[0].Partition != 1 || n != len(a.all()) || len(out.Next.Spans) != 1 {
		t.Errorf("%d records, %+v, %v", n, out, err)
	}
}

// What retention takes away meanwhile is passed over.
func TestASearchGoesOnWhereTheLogBeginsNow(t *testing.T) {
	for _, newest := range []bool{false, true} {
		l := aLog(rand.New(rand.NewPCG(4, 4)), 0, 300, false)
		all := l.all()
		from := Span{0, l.start, l.end}
		l.start = all[200].Offset
		l.batches = slices.DeleteFunc(l.batches, func(b []Record) bool { return b[len(b)-1].Offset < l.start })
		s := &Search{Logs: map[int32]Log{0: l}, Filter: aFilter(t, Spec{}), Limits: limits(10000), Dense: true}
		found, _, last := bag(t, s, &Cursor{Newest: newest, Spans: []Span{from}})
		if len(found) < len(all)-200 || last.Why != AtEnd || last.Searched != int64(len(found)) {
			t.Errorf("found %d of %d, %+v", len(found), len(all)-200, last)
		}
	}
}
