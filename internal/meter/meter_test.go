package meter

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestDurationsAreInTheBucketsOfBothForms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.SampledFrom([]*Scale{Fast, Slow}).Draw(t, "scale")
		h := NewHistogram(scale)
		var all []time.Duration
		for range rapid.IntRange(1, 50).Draw(t, "count") {
			d := time.Duration(math.Exp2(rapid.Float64Range(0, 42).Draw(t, "log2 of nanoseconds")))
			if rapid.Bool().Draw(t, "on a bound") {
				d = rapid.SampledFrom(scale.Classic).Draw(t, "bound")
			}
			all = append(all, d)
			h.Observe(d)
		}
		got := h.Read()
		if got.Count() != uint64(len(all)) {
			t.Fatalf("%d are counted of %d", got.Count(), len(all))
		}
		for i, n := range got.Classic() {
			want := uint64(0)
			for _, d := range all {
				if d <= scale.Classic[i] {
					want++
				}
			}
			if n != want {
				t.Fatalf("%d are at most %s, want %d: %v", n, scale.Classic[i], want, all)
			}
		}
		checkNative(t, got, all)
	})
}

// checkNative holds the native buckets against the durations, by Prometheus's own
// formula. Bounds are rounded to nanoseconds.
func checkNative(t *rapid.T, got Durations, all []time.Duration) {
	counts := map[int]uint64{}
	zero := got.Native(func(bucket int, n uint64) { counts[bucket] = n })
	want, wantZero := map[int]uint64{}, uint64(0)
	for _, d := range all {
		switch bucket := int(math.Ceil(math.Log2(d.Seconds()) * (1 << Schema))); {
		case d.Seconds() <= ZeroThreshold():
			wantZero++
		default:
			want[min(bucket, lastNative)]++
		}
	}
	if zero == wantZero && fmt.Sprint(counts) == fmt.Sprint(want) {
		return
	}
	for _, d := range all { // One that is within a nanosecond of a bound may be on its other side.
		for i := firstNative; i <= lastNative; i++ {
			if end := nativeEnd(i); int64(d) >= end-1 && int64(d) <= end+1 {
				return
			}
		}
	}
	t.Fatalf("native buckets %v and %d, want %v and %d: %v", counts, zero, want, wantZero, all)
}

func TestQuantilesAreRightToATenth(t *testing.T) {
	h := NewHistogram(Fast)
	for i := 1; i <= 10_000; i++ {
		h.Observe(time.Duration(i) * 10 * time.Microsecond)
	}
	before := h.Read()
	for _, q := range []float64{0.5, 0.75, 0.95, 0.99, 0.999} {
		got, ok := before.Quantile(q)
		want := time.Duration(q * float64(100*time.Millisecond))
		if off := math.Abs(float64(got)/float64(want) - 1); !ok || off > 0.1 {
			t.Errorf("%v is %s, want about %s", q, got, want)
		}
	}
	if _, ok := h.Read().Since(before).Quantile(0.5); ok {
		t.Error("nothing has a quantile")
	}
	for range 10 {
		h.Observe(time.Second)
	}
	since := h.Read().Since(before)
	if got, _ := since.Quantile(0.5); got < 800*time.Millisecond || since.Count() != 10 || since.Sum != 10*time.Second {
		t.Errorf("since then: %s, %d, %s", got, since.Count(), since.Sum)
	}
}

func TestLongAndNegativeDurationsAreCounted(t *testing.T) {
	h := NewHistogram(Slow)
	h.Observe(-time.Second)
	h.Observe(time.Hour)
	h.Observe(math.MaxInt64)
	got := h.Read()
	buckets := 0
	zero := got.Native(func(_ int, n uint64) { buckets += int(n) })
	if got.Count() != 3 || zero != 1 || buckets != 2 || got.Classic()[9] != 1 {
		t.Errorf("%d, %d, %d, %v", got.Count(), zero, buckets, got.Classic())
	}
}

func TestRequestsAreCountedByKeyAndVersion(t *testing.T) {
	var r Requests
	var running sync.WaitGroup
	for conn := range uint32(20) {
		running.Go(func() {
			r.Answered(conn, 0, 13, time.Millisecond)
			r.Answered(conn, 12, 4, time.Second)
			r.Answered(conn, 12, 3, time.Second)
			r.Answered(conn, -1, 0, 0)
			r.Answered(conn, maxKey+1, 0, 0)
			r.Answered(conn, 1, maxVersion+1, 0)
			r.Answered(conn, 1, -1, 0)
		})
	}
	running.Wait()
	got := r.Read()
	if len(got) != 2 || got[0].Key != 0 || got[1].Key != 12 {
		t.Fatalf("keys: %+v", got)
	}
	if got[0].Versions[13] != 20 || got[1].Versions[4] != 20 || got[1].Versions[3] != 20 {
		t.Errorf("versions: %v, %v", got[0].Versions, got[1].Versions)
	}
	if got[1].Took.Count() != 40 || got[1].Took.Sum != 40*time.Second {
		t.Errorf("took: %d, %s", got[1].Took.Count(), got[1].Took.Sum)
	}
}

func TestTrafficOfTopics(t *testing.T) {
	var topics Topics
	var running sync.WaitGroup
	for conn := range uint32(16) {
		running.Go(func() {
			for n := range 100 {
				topic := topics.Of(fmt.Sprint("topic-", n))
				topic.Produced(conn, 3, 100)
				topic.Refused(conn)
				topic.Fetched(conn, 4, 1, 50)
			}
		})
	}
	running.Wait()
	want := Traffic{Produced: 32, Refused: 16, Records: 48, BytesIn: 1600, Fetched: 64, Failed: 16, BytesOut: 800}
	for n := range 100 {
		if got := topics.Read(fmt.Sprint("topic-", n)); got != want {
			t.Fatalf("topic-%d: %+v, want %+v", n, got, want)
		}
	}
	only7 := func(name string) bool { return name == "topic-7" }
	topics.Keep(time.Now().Add(-time.Hour), only7)
	if topics.Read("topic-8") != want {
		t.Error("a topic is forgotten that is newer than what is known of topics")
	}
	topics.Keep(time.Now().Add(time.Hour), only7)
	if topics.Read("topic-7") != want || topics.Read("topic-8") != (Traffic{}) || topics.Read("other") != (Traffic{}) {
		t.Error("the wrong topics are kept")
	}
}

func TestCountingTakesNoMemory(t *testing.T) {
	m := New()
	name := "orders"
	m.Topics.Of(name)
	m.Requests.Answered(1, 0, 0, time.Millisecond)
	n := testing.AllocsPerRun(100, func() {
		m.Requests.Answered(1, 0, 13, time.Millisecond)
		topic := m.Topics.Of(name)
		topic.Produced(1, 1, 1)
		topic.Fetched(1, 1, 1, 1)
		m.Flushes.Observe(time.Millisecond)
	})
	if n != 0 {
		t.Errorf("%v pieces of memory", n)
	}
}

func TestRebalancesOfGroupsThatAreGoneAreForgotten(t *testing.T) {
	g := &New().Groups
	now := time.Unix(1_700_000_000, 0)
	g.Began("a", "left", now)
	early := g.Read()["a"]
	g.Began("a", "left", now)
	g.Began("a", "joined", now)
	g.Began("a", "left", now)
	g.Began("b", "left", now)
	g.Began("c", "left", now)
	g.Began(strings.Repeat("x", LongestName+1), "left", now)
	g.Gone("c")
	if got := fmt.Sprint(g.Read()); got != "map[a:[{joined 1} {left 3}] b:[{left 1}]]" {
		t.Error(got)
	}
	if fmt.Sprint(early) != "[{left 1}]" {
		t.Errorf("what was read has changed: %v", early)
	}
	onlyA := func(name string) bool { return name == "a" }
	g.Keep(now.Add(forgetAfter), onlyA)
	if len(g.Read()) != 2 {
		t.Error("a group is forgotten that nobody may have seen yet")
	}
	g.Keep(now.Add(forgetAfter+time.Second), onlyA)
	if got := fmt.Sprint(g.Read()); got != "map[a:[{joined 1} {left 3}]]" {
		t.Error(got)
	}
	g.Took(Join, time.Second)
	if p := g.Phases(); p[Join].Count() != 1 || p[Sync].Count() != 0 || len(p) != 3 {
		t.Errorf("phases: %v", p)
	}
}

func TestAVectorIsBounded(t *testing.T) {
	var v Vector
	v.Add(Labels{"known"}, 0)
	for n := range 2 * vectorMost {
		v.Add(Labels{fmt.Sprint(n)}, 1)
	}
	v.Add(Labels{"known"}, 0.5)
	got := v.Read()
	if len(got) != vectorMost || got[Labels{"known"}] != 0.5 {
		t.Errorf("%d, %v", len(got), got[Labels{"known"}])
	}
}
