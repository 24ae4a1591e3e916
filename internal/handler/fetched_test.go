package handler

import (
	"fmt"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/protocol"
)

// clockAt is a clock that tests set.
func clockAt(now *time.Time) func() time.Time { return func() time.Time { return *now } }

func TestTheLastFetchIsRememberedByClientAndPartition(t *testing.T) {
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	f := newFetched(clockAt(&now))
	last := func(client, host, topic string, partition int32) time.Time {
		at, known := f.last(client, host, topic, partition)
		assert.True(t, known, "of %s at %s in %s-%d it is not known", client, host, topic, partition)
		return at
	}
	if at := last("a", "h", "t", 0); !at.IsZero() {
		t.Errorf("nobody fetched, but at %v", at)
	}
	first := now
	by := f.by("a", "h")
	by.note("t", 0)
	now = now.Add(90*time.Second + 300*time.Millisecond)
	by = f.by("a", "h")
	by.note("t", 1)
	if at := last("a", "h", "t", 0); !at.Equal(first) {
		t.Errorf("fetched at %v, not %v", at, first)
	}
	if at := last("a", "h", "t", 1); now.Sub(at) < 0 || now.Sub(at) >= time.Second {
		t.Errorf("fetched at %v, not %v", at, now)
	}
	by.note("t", 0)
	if at := last("a", "h", "t", 0); now.Sub(at) >= time.Second {
		t.Errorf("fetched again, but at %v", at)
	}
	for _, other := range []struct {
		client, host, topic string
		partition           int32
	}{{"b", "h", "t", 0}, {"a", "i", "t", 0}, {"h", "a", "t", 0}, {"a", "h", "u", 0}, {"a", "h", "t", 2}} {
		if at := last(other.client, other.host, other.topic, other.partition); !at.IsZero() {
			t.Errorf("%v has not fetched, but at %v", other, at)
		}
	}
	now = first.Add(-time.Hour) // The clock went back.
	by = f.by("c", "h")
	by.note("t", 0)
	if at := last("c", "h", "t", 0); !at.Equal(first) {
		t.Errorf("before the start: %v", at)
	}
}

// TestWhoFetchesStaysThoughOthersCome fills a table many times over: what is fetched
// again and again is there, or soon again.
func TestWhoFetchesStaysThoughOthersCome(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills a table of half a million places, alone")
	}
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	f := newFetched(clockAt(&now))
	for round := range 20 {
		now = now.Add(10 * time.Second)
		stranger := f.by(fmt.Sprint("stranger", round), "h")
		for p := range int32(fetchedBuckets * fetchedWays / 4) {
			stranger.note("t", p)
		}
		now = now.Add(time.Second) // Else two that share a bucket with seven strangers may push each other out.
		by := f.by("a", "h")
		for p := range int32(1000) {
			by.note("t", p)
		}
	}
	missing := 0
	for p := range int32(1000) {
		if at, _ := f.last("a", "h", "t", p); now.Sub(at) >= time.Second {
			missing++
		}
	}
	assert.True(t, missing <= 0, "%d of 1000 are forgotten", missing)
	if at, _ := f.last("stranger0", "h", "t", 0); !at.IsZero() && now.Sub(at) < 100*time.Second {
		t.Errorf("who came first fetched at %v", at)
	}
}

// Of someone who may have been pushed out a moment ago, it is not known whether it fetches.
func TestWhoMayHaveBeenPushedOutLatelyIsNotKnown(t *testing.T) {
	if testing.Short() {
		t.Skip("it fills a table of half a million places, alone")
	}
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	f := newFetched(clockAt(&now))
	known := func() (n int) {
		for p := range int32(1000) {
			at, is := f.last("a", "h", "t", p)
			assert.MustTrue(t, at.IsZero(), "it has not fetched, but at %v", at)
			if is {
				n++
			}
		}
		return n
	}
	fill := func(n int32) {
		by := f.by("stranger", "h")
		for p := range n {
			by.note("t", p)
		}
	}
	fill(fetchedBuckets / 8)
	if n := known(); n != 1000 {
		t.Errorf("while there is room, of %d of 1000 it is known", n)
	}
	fill(6 * fetchedBuckets * fetchedWays)
	if n := known(); n != 0 {
		t.Errorf("when all is full, of %d of 1000 it is known", n)
	}
	now = now.Add(fetchedLately - time.Second)
	if n := known(); n != 0 {
		t.Errorf("a little less than a minute later, of %d of 1000 it is known", n)
	}
	now = now.Add(time.Second)
	if n := known(); n != 1000 {
		t.Errorf("a minute later, of %d of 1000 it is known", n)
	}
}

// What a full bucket has lost is older than the oldest that it has, wherever that is.
func TestTheOldestOfABucketTellsWhatWasForgotten(t *testing.T) {
	now := time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)
	f := newFetched(clockAt(&now))
	now = now.Add(time.Hour)
	f.table.Store(new(fetchedTable))
	hash := f.place(f.who("a", "h"), "t", 0)
	bucket := &f.table.Load()[hash%fetchedBuckets]
	for old := range fetchedWays + 1 {
		for i := range bucket {
			second := f.second(now)
			if i == old {
				second = f.second(now.Add(-fetchedLately))
			}
			bucket[i].Store((hash>>32+1)<<32 | uint64(second)) // Someone else.
		}
		want := int64(protocol.NeverFetched)
		if old == fetchedWays {
			want = protocol.FetchNotKnown
		}
		assert.Equal(t, f.ago("a", "h", "t", 0), want, "number %d is old", old)
	}
	by := f.by("a", "h")
	by.note("t", 0)
	now = now.Add(1500 * time.Millisecond)
	if got := f.ago("a", "h", "t", 0); got != 1500 {
		t.Errorf("fetched %d ms ago", got)
	}
	now = now.Add(-time.Minute) // The clock went back.
	assert.Equal(t, f.ago("a", "h", "t", 0), 0, "before it fetched: ms ago")
}

func TestToNoteAFetchAllocatesNothing(t *testing.T) {
	f := newFetched(time.Now)
	by := f.by("a", "h")
	by.note("t", 0) // The table is made with the first.
	if n := testing.AllocsPerRun(1000, func() {
		by := f.by("a", "h")
		by.note("t", 1)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNoteFetch(b *testing.B) {
	f := newFetched(time.Now)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			by := f.by("consumer-billing-1", "10.1.2.3")
			by.note("orders", 3)
		}
	})
}
