package redis

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/record"
	"muster/internal/store"
)

// min.compaction.lag.ms may be raised. What is too young by it stays, though a compaction has
// been there before, and a newer record of its key is old enough.
func TestARaisedLagHoldsBackCompactionOfWhatWasCompacted(t *testing.T) {
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			l := b.open(1)
			now := time.Now()
			ago := func(d time.Duration, value string) {
				b.append(l, b.batchOf(record.Record{Timestamp: now.Add(-d).UnixMilli(), Key: []byte("k"), Value: []byte(value)}))
			}
			compact := func(lag time.Duration) {
				_, next := l.Bounds()
				must(t, l.Compact(b.ctx, store.Compaction{Now: now, NextOffset: next, MinLag: lag}))
			}
			ago(3*time.Hour, "old")
			ago(30*time.Minute, "young")
			compact(time.Minute)
			if got := b.values(l); !slices.Equal(got, []string{"young"}) {
				t.Fatalf("after the first compaction %q", got)
			}
			ago(2*time.Hour, "late")
			compact(time.Hour)
			if got := b.values(l); !slices.Equal(got, []string{"young", "late"}) {
				t.Errorf("within the lag %q", got)
			}
			compact(time.Minute)
			if got := b.values(l); !slices.Equal(got, []string{"late"}) {
				t.Errorf("in the end %q", got)
			}
		})
	}
}

// A read of fewer bytes than the first batch has returns that batch, and nothing after it, if it
// is to return one, and otherwise nothing: there may be more partitions in a fetch.
func TestAReadReturnsOneBatchBeyondItsLimitOnlyIfAsked(t *testing.T) {
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			l := b.open(1)
			b.append(l, b.valued(strings.Repeat("a", 1000)))
			b.append(l, b.valued(strings.Repeat("b", 1000)))
			start, end := l.Bounds()
			read := func(limit int, one bool) string {
				r, err := l.Read(b.ctx, store.ReadRequest{Offset: start, NextOffset: math.MaxInt64, MaxBytes: limit, MinOne: one})
				must(t, err)
				text := ""
				for rest := r.Bytes; len(rest) > 0; {
					batch, more, err := record.Next(rest)
					must(t, err)
					must(t, batch.Each(func(r *record.Record) error { text += string(r.Value[:1]); return nil }))
					rest = more
				}
				return text
			}
			for limit, want := range map[int][2]string{0: {"", "a"}, 500: {"", "a"}, 1500: {"a", "a"}, 3000: {"ab", "ab"}} {
				for i, one := range []bool{false, true} {
					if got := read(limit, one); got != want[i] {
						t.Errorf("%d bytes, MinOne %v, of %d to %d: %q, not %q", limit, one, start, end, got, want[i])
					}
				}
			}
		})
	}
}

// An append and an adoption write the same into the index about what Redis clients have added.
func TestBothScriptsAdoptTheSame(t *testing.T) {
	var entries, states []string
	for _, byAppend := range []bool{true, false} {
		b := newBed(t, inIndex)
		l := b.open(300)
		for i, fields := range [][]string{
			{"value", "0", "timestamp", "-1300"}, {"timestamp", "1", "timestamp", "2", "value", "1"}, {"value", "2", "timestamp", "1e3"}, {"value", "3", "timestamp", "0x10"},
			{"value", "4", "timestamp", "4503599627370496"}, {"value", "5", "timestamp", "4503599627370497"}, {"value", "6", "timestamp", "-4503599627370497"},
		} {
			b.do(append([]string{"XADD", b.keys().stream, fmt.Sprint(5+i/3, "-", 1+i%3)}, fields...)...)
		}
		b.do("XADD", b.keys().stream, "18014398509481984-7", "value", "7")
		if !byAppend {
			b.refresh(l)
		}
		b.append(l, b.marker(7, true))
		b.append(l, b.batchOf(record.Record{Timestamp: 8, Value: []byte("8")}))
		id := map[bool]string{true: "9-0", false: "8-0"}[byAppend] // A marker adopts nothing.
		entries = append(entries, b.do("EVAL", "return redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1][2][2]", "1", b.keys().index, id))
		_, state, _ := strings.Cut(b.do("HGET", b.keys().meta, "s"), " ") // The append's ids differ.
		states = append(states, state)
		if epochs := b.do("HGET", b.keys().meta, "epochs"); epochs != "[[300,0]]" {
			t.Errorf("the epochs are %s", epochs)
		}
		b.wantSound()
	}
	if entries[0] != entries[1] {
		t.Errorf("the index has\n%q and\n%q", entries[0], entries[1])
	}
	if states[0] != states[1] {
		t.Errorf("the states are %s and %s", states[0], states[1])
	}
}
