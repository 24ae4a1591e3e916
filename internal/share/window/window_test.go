package window

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

var defaults = Settings{Lock: 30 * time.Second, Limit: 5, Window: 4000, Renew: true}

// A window of thousands of records is a handful of runs, however they were delivered.
func TestRecordsThatAreAlikeAreOneRun(t *testing.T) {
	p := Load(defaults, Epochs{}, false, 0, nil)
	f := Fetch{Member: "a", MaxRecords: 500, BatchSize: 100}
	for o := int64(0); o < 4000; o += 10 {
		f.Batches = append(f.Batches, Batch{o, o + 9})
	}
	now := time.Unix(1000, 0)
	for p.NextOffset() < 4000 {
		f.From, _ = p.NextFetch()
		f.Next = 4000
		if got := p.Acquire(now, f); len(got) != 5 {
			t.Fatalf("%d ranges", len(got))
		}
	}
	if len(p.runs) != 1 {
		t.Errorf("%d runs of what is acquired", len(p.runs))
	}
	for o := int64(3999); o > 0; o-- { // One by one, from the end.
		w, err := p.Acknowledge(now, "a", []Acknowledgement{{o, o, []int8{Accept}}}, false)
		if err != nil {
			t.Fatal(err)
		}
		if p.Done(w.ID); len(p.runs) != 2 {
			t.Fatalf("%d runs after %d", len(p.runs), o)
		}
	}
	w, _ := p.Acknowledge(now, "a", []Acknowledgement{{0, 0, []int8{Accept}}}, false)
	if p.Done(w.ID); len(p.runs) != 0 || p.StartOffset() != 4000 || len(p.writes) != 0 {
		t.Errorf("left are %v, from %d", p.runs, p.StartOffset())
	}
}

// A call passes over each run and each acknowledgement once, though all offsets differ.
func TestOneCallIsOnePass(t *testing.T) {
	p := Load(defaults, Epochs{}, false, 0, nil)
	now := time.Unix(1000, 0)
	p.Acquire(now, Fetch{Member: "a", MaxRecords: 4000, Next: 4000, Batches: []Batch{{0, 3999}}})
	ack := Acknowledgement{First: 0, Last: 3999}
	for range 2000 {
		ack.Types = append(ack.Types, Release, Renew)
	}
	w, err := p.Acknowledge(now.Add(time.Second), "a", []Acknowledgement{ack}, true)
	if err != nil || len(w.Batches) != 2000 {
		t.Fatal(w, err)
	}
	calls := 0
	p.change(0, 3999, func(r run) (int64, is) {
		calls++
		return r.last, r.is
	})
	if calls != 4000 || len(p.runs) != 4000 {
		t.Errorf("%d calls for %d runs", calls, len(p.runs))
	}
	if p.Done(w.ID); len(p.runs) != 4000 {
		t.Errorf("%d runs", len(p.runs))
	}
	if w := p.Expire(now.Add(time.Minute)); len(p.runs) != 1 || len(w.Batches) != 2000 {
		t.Errorf("%d runs", len(p.runs))
	}
	if cap(p.room) > keep {
		t.Errorf("room for %d runs is kept", cap(p.room))
	}
}

// Whatever was stored, the next leader has a window.
func TestLoadIsTotal(t *testing.T) {
	p := Load(defaults, Epochs{Leader: 2, State: 1}, false, 10, []StateBatch{
		{40, 49, Acknowledged, 1}, {0, 4, Archived, 1}, {5, 14, Available, 2}, {20, 19, Archived, 1}, {20, 24, 3, 2}, {22, 29, Acquired, -1}, {30, 30, 9, 1},
	})
	want := []run{
		{10, 14, is{count: 2}},
		{15, 19, is{}},
		{20, 24, is{state: Archived, count: 2}},
		{25, 29, is{}},
		{30, 30, is{state: Archived, count: 1}},
		{31, 39, is{}},
		{40, 49, is{state: Acknowledged, count: 1}},
	}
	if err := p.CheckInvariants(); err != nil || !slices.Equal(p.runs, want) || p.StartOffset() != 10 || p.NextOffset() != 50 {
		t.Errorf("%v: %v", err, p)
	}
	if w := p.Leave("a"); w != nil {
		t.Errorf("no one is there, and has %v", w)
	}
	p.Acquire(time.Unix(1, 0), Fetch{Member: "a", MaxRecords: 1, From: 10, Next: 15, Batches: []Batch{{10, 14}}})
	if w := p.Leave("a"); w == nil || w.Epochs != (Epochs{2, 1}) || w.Start != 10 || w.Completed != 16 {
		t.Errorf("the write is %+v", w)
	}
}

// Reading has to begin inside the window or where it ends: what is between would be skipped.
func TestNothingIsAcquiredPastTheEnd(t *testing.T) {
	p := Load(defaults, Epochs{}, false, 0, nil)
	if got := p.Acquire(time.Unix(1, 0), Fetch{Member: "a", MaxRecords: 9, From: 5, Next: 15, Batches: []Batch{{5, 14}}}); got != nil || p.NextOffset() != 0 {
		t.Errorf("%v", got)
	}
}

// What of the share coordinator's errors reaches members is about the leader or the group.
func TestErrorsOfWritesAsMembersSeeThem(t *testing.T) {
	for _, c := range []struct{ got, want *kerr.Error }{
		{kerr.FencedLeaderEpoch, kerr.NotLeaderForPartition},
		{kerr.FencedStateEpoch, kerr.NotLeaderForPartition},
		{kerr.NotCoordinator, kerr.CoordinatorNotAvailable},
		{kerr.CoordinatorLoadInProgress, kerr.CoordinatorNotAvailable},
		{kerr.CoordinatorNotAvailable, kerr.CoordinatorNotAvailable},
		{kerr.GroupIDNotFound, kerr.GroupIDNotFound},
		{kerr.UnknownTopicOrPartition, kerr.UnknownTopicOrPartition},
		{kerr.InvalidRequest, kerr.UnknownServerError},
	} {
		if got := ClientError(c.got); !errors.Is(got, c.want) {
			t.Errorf("%v becomes %v", c.got, got)
		}
	}
}

// What the checks find is found.
func TestInvariantsCanFail(t *testing.T) {
	acquired := is{state: Acquired, count: 1, member: "a", until: 7}
	for name, p := range map[string]*Partition{
		"a hole":           {next: 4, runs: []run{{0, 1, acquired}, {3, 3, is{}}}},
		"an overlap":       {next: 4, runs: []run{{0, 2, acquired}, {2, 3, is{}}}},
		"alike":            {next: 4, runs: []run{{0, 1, acquired}, {2, 3, acquired}}},
		"too short":        {next: 5, runs: []run{{0, 3, acquired}}},
		"a terminal start": {next: 4, runs: []run{{0, 3, is{state: Archived}}}},
		"never delivered":  {next: 4, runs: []run{{0, 3, is{state: Acquired, member: "a", until: 7}}}},
		"no lock":          {next: 4, runs: []run{{0, 3, is{state: Acquired, member: "a", count: 1}}}},
		"a lock":           {next: 4, runs: []run{{0, 3, is{until: 7}}}},
		"an owner":         {next: 4, runs: []run{{0, 3, is{member: "a"}}}},
		"no such write":    {next: 4, runs: []run{{0, 3, is{state: Acquired, count: 1, member: "a", until: 7, write: 2}}}},
		"a decision":       {next: 4, runs: []run{{0, 3, is{state: Acquired, count: 1, member: "a", until: 7, then: Archived}}}},
	} {
		if p.CheckInvariants() == nil {
			t.Errorf("%s is not found", name)
		}
	}
}
