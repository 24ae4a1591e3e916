package redis

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
)

// addAt adds an entry as a Redis application does that names its id, and returns its offset.
func (b *bed) addAt(l store.Log, at time.Time, value string) int64 {
	b.Helper()
	b.do("XADD", b.keys().stream, fmt.Sprintf("%d-0", at.UnixMilli()), "value", value)
	end, err := l.(store.Refresher).Refresh(b.ctx)
	must(b.T, err)
	return end - 1
}

// Whoever has read all that went finds the log where it is, also if the next record comes
// much later.
func TestAStreamStartsAfterWhatIsTooOld(t *testing.T) {
	b := newBed(t, inStreams)
	l := b.open(1)
	began := time.Now().Add(time.Minute)
	retain := func(seconds int) (start int64) {
		_, end := l.Bounds()
		must(t, l.Retain(b.ctx, store.Retention{Now: began.Add(time.Duration(seconds) * time.Second), MaxAge: time.Second, MaxBytes: -1, NextOffset: end}))
		start, _ = l.Bounds()
		return start
	}
	x := b.addAt(l, began, "x")
	if start := retain(2); start != x+1 {
		t.Errorf("the log starts at %d, and %d went", start, x)
	}
	y := b.addAt(l, began.Add(10*time.Second), "y")
	if start := retain(3); start != x+1 {
		t.Errorf("the log starts at %d, and %d went", start, x)
	}
	if got := b.values(l); !slices.Equal(got, []string{"y"}) {
		t.Errorf("from there on there is %q", got)
	}
	b.addAt(l, began.Add(20*time.Second), "z")
	if start := retain(12); start != y+1 {
		t.Errorf("the log starts at %d, and %d went", start, y)
	}
	if _, err := l.Read(b.ctx, store.ReadRequest{Offset: y, NextOffset: y + 1, MaxBytes: 100}); !errors.Is(err, store.ErrOffsetOutOfRange) {
		t.Errorf("what went: %v", err)
	}
	l = b.open(2)
	if start, _ := l.Bounds(); start != y+1 {
		t.Errorf("opened again, the log starts at %d, and %d went", start, y)
	}
	if got := b.values(l); !slices.Equal(got, []string{"z"}) {
		t.Errorf("from there on there is %q", got)
	}
}

func TestAStreamStartsAfterWhatIsTooMuch(t *testing.T) {
	for _, c := range []struct {
		keep, next, want int // next is the first that must stay.
	}{{1000, 5000, 1000}, {10, 3000, 2000}} {
		b := newBed(t, inStreams)
		b.open(1)
		// Between any two there is a gap.
		b.do("EVAL", `for i = 1, 5000 do redis.call('XADD', KEYS[1], string.format('%.0f-7', ARGV[1] + 2 * i), 'value', i) end return 1`,
			"1", b.keys().stream, decimal(time.Now().UnixMilli()))
		l := b.open(2).(recordLog)
		all := b.content(l)
		next := all[len(all)-1].Offset + 1
		if c.next < len(all) {
			next = all[c.next].Offset
		}
		must(t, l.shorten(b.ctx, int64(c.keep), next))
		start, _ := l.Bounds()
		left := b.content(l)
		if len(left) < c.want || len(left) > c.want+200 {
			t.Fatalf("%d records remain, of which at least %d had to", len(left), c.want)
		}
		if last := all[len(all)-len(left)-1].Offset; start != last+1 {
			t.Errorf("the log starts at %d, and %d went", start, last)
		}
		if n := b.do("XLEN", b.keys().stream); n != decimal(int64(len(left))) || l.tail.count != int64(len(left)) {
			t.Errorf("%s and %d entries are counted, and there are %d", n, l.tail.count, len(left))
		}
		if again, _ := b.open(3).Bounds(); again != start {
			t.Errorf("opened again, the log starts at %d, and did at %d", again, start)
		}
	}
}

// TestWhatGoesIsTrimmedPartByPart looks at a log that takes several scans, of
// which each is to make it shorter: whoever is interrupted has got somewhere.
func TestWhatGoesIsTrimmedPartByPart(t *testing.T) {
	t.Parallel()
	ways := map[string]func(b *bed, l store.Log, end int64) error{
		"retention": func(b *bed, l store.Log, end int64) error {
			return l.Retain(b.ctx, store.Retention{Now: time.Now(), MaxAge: -1, MaxBytes: 1, NextOffset: end})
		},
		"trim": func(b *bed, l store.Log, end int64) error { return l.Trim(b.ctx, end) },
	}
	for layout, cfg := range allLayouts {
		for name, free := range ways {
			if layout == "Stream" && name == "trim" {
				continue // It looks at nothing.
			}
			t.Run(layout+" "+name, func(t *testing.T) {
				node := redistest.Single(t)
				b := newBedAt(t, node.URL(), cfg)
				l := b.open(1)
				const parts = 6
				for range parts * scanBytes >> 20 {
					b.append(l, b.valued(strings.Repeat("v", 1<<20)))
				}
				_, end := l.Bounds()
				must(t, free(b, l, end))
				stats := node.Nodes[0].Info("commandstats", "cmdstat_xtrim")
				var trims int
				if _, err := fmt.Sscanf(stats, "calls=%d", &trims); err != nil || trims < parts {
					t.Errorf("trimmed %d times for %d parts (%q, %v)", trims, parts, stats, err)
				}
				if start, _ := l.Bounds(); len(b.values(l)) > 1 || l.Size() > 2<<20 || start == 0 {
					t.Errorf("%d bytes and %d records remain from %d", l.Size(), len(b.values(l)), start)
				}
			})
		}
	}
}

// twenty appends that many batches, and returns the size of each.
func (b *bed) twenty(l store.Log) int64 {
	b.Helper()
	for range 20 {
		b.append(l, b.valued(strings.Repeat("v", 1000)))
	}
	return l.Size() / 20
}

// TestWhatAnInterruptedTrimLeavesIsCounted has the start of a log moved, and what is below
// it still there, as a broker of before leaves it that was interrupted.
func TestWhatAnInterruptedTrimLeavesIsCounted(t *testing.T) {
	b := newBed(t, inBatches)
	h := b.open(1)
	each := b.twenty(h)
	must(t, h.(batchLog).writeStart(b.ctx, 10))
	l := b.open(1)
	if err := h.(batchLog).trimTo(b.ctx, 10, 10*each); !errors.Is(err, store.ErrClosed) {
		t.Fatal(err)
	}
	_, end := l.Bounds()
	keep := store.Retention{Now: time.Now(), MaxAge: -1, NextOffset: end}
	for _, most := range []int64{1 << 40, 10 * each} {
		keep.MaxBytes = most
		must(t, l.Retain(b.ctx, keep))
		if n := len(b.values(l)); n != 10 || l.Size() != 10*each || b.do("XLEN", b.keys().stream) != "10" {
			t.Errorf("%d records remain of 10 that fit, of %d bytes, want %d", n, l.Size(), 10*each)
		}
		l = b.open(1)
	}
}

// TestATrimHappensAtOnce looks at what Redis holds after each part of a trim: its size must
// be that of its entries, since a log can be opened again by then.
func TestATrimHappensAtOnce(t *testing.T) {
	b := newBed(t, inBatches)
	l := b.open(1)
	each := b.twenty(l)
	must(t, l.(batchLog).trimTo(b.ctx, 7, 7*each))
	if size, count := b.do("HGET", b.keys().meta, "size"), b.do("HGET", b.keys().meta, "count"); size != decimal(13*each) || count != "13" {
		t.Errorf("%s bytes in %s entries, want %d in 13", size, count, 13*each)
	}
	if l := b.open(1); l.Size() != 13*each {
		t.Errorf("opened again it has %d bytes, want %d", l.Size(), 13*each)
	}
}
