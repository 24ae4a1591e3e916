package redis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/record"
	"muster/internal/store"
)

// Scripts compare ids as Redis does, which are too large for their numbers.
func TestScriptsCompareIds(t *testing.T) {
	b := newBed(t, inIndex)
	ids := []string{
		"0-0", "0-1", "1-0", "1-9", "1-10", "2-0", "10-0", "99-5",
		"9007199254740992-0", "9007199254740993-0", "9007199254740993-9007199254740992", "9007199254740993-9007199254740993", "18446744073709551615-18446744073709551615",
	}
	for i, x := range ids {
		for j, y := range ids {
			if got := b.do("EVAL", stateFunction+`if upto(ARGV[1], ARGV[2]) then return 1 end return 0`, "0", x, y); (got == "1") != (i <= j) {
				t.Errorf("%s is up to %s: %s", x, y, got)
			}
		}
	}
}

func TestScriptsWriteNumbersAndStatesAsTheyAre(t *testing.T) {
	b := newBed(t, inIndex)
	call := func(what string, n int64) string {
		text, err := b.client.Do(b.ctx, b.client.B().Eval().Script(stateFunction+adoptFunction+`return `+what+`(tonumber(ARGV[1]))`).Numkeys(0).Arg(decimal(n)).Build()).ToString()
		must(t, err)
		return text
	}
	for _, n := range []int64{0, 1, 63, 64, 65, 127, 128, 129, 255, 256, 16383, 16384, 16385, 1 << 31, 1<<52 - 1, 1 << 52} {
		if got := call("varint", n); got != string(binary.AppendUvarint(nil, uint64(n))) {
			t.Errorf("%d is written as %x", n, got)
		}
		for _, n := range []int64{n, -n} {
			if got := call("zigzag", n); got != string(binary.AppendVarint(nil, n)) {
				t.Errorf("%d, which may be negative, is written as %x", n, got)
			}
		}
	}
	for _, s := range []string{"0-0 0 -1 0", "99999999999999-18446744073709551615 9007199254740991 -4503599627370496 -5", "1-2 3 18014398509481985 6"} {
		if got := b.do("EVAL", stateFunction+`return state_text(state(ARGV[1]))`, "0", s); got != s {
			t.Errorf("state %q becomes %q", s, got)
		}
	}
	for a, to := range map[[2]string]string{{"5", "7"}: "7", {"7", "5"}: "7", {"-1", "-9"}: "-1", {"18014398509481985", "3"}: "18014398509481985"} {
		if got := b.do("EVAL", stateFunction+`return later(ARGV[1], ARGV[2])`, "0", a[0], a[1]); got != to {
			t.Errorf("of %q %s is later", a, got)
		}
	}
}

// What a timestamp is is the same to a script as to a leader, also where it is the only entry.
func TestScriptsReadTimestampsAsLeadersDo(t *testing.T) {
	b := newBed(t, inIndex)
	for _, fields := range [][]string{
		{"timestamp", "1", "timestamp", "2"}, {"timestamp", "soon", "timestamp", "2"}, {"timestamp", "1e3"}, {"timestamp", "0x10"}, {"timestamp", "+7"}, {"timestamp", "-7"},
		{"timestamp", "4503599627370496"}, {"timestamp", "-4503599627370496"}, {"timestamp", "4503599627370497"}, {"timestamp", " 8"}, {"timestamp", ""}, {"value", "9"},
		{"timestamp", "99999999999999999999"}, {"Timestamp", "5"},
	} {
		m := `{{'77-1', {` + "'" + strings.Join(fields, "','") + `'}}}`
		got, err := b.client.Do(b.ctx, b.client.B().Eval().Script(stateFunction+adoptFunction+`
local s = {top = '0-0', added = 0, maxts = '-1', size = 0}
return adopt(`+m+`, s, 4)`).Numkeys(0).Build()).ToString()
		must(t, err)
		e, err := parseIndex(entryID{ms: 1}, "0 1 77-1\n"+got)
		must(t, err)
		if want := decodeAdopted(entryID{77, 1}, fields).Timestamp; e.batches[0].maxTimestamp != want || e.batches[0].baseTimestamp != want {
			t.Errorf("%q: timestamps %d to %d, not %d", fields, e.batches[0].baseTimestamp, e.batches[0].maxTimestamp, want)
		}
	}
}

// An append that cannot write the index adds no data, and says which key is in the way.
func TestAnAppendWithoutItsIndexAddsNothing(t *testing.T) {
	for name, spoil := range map[string]func(b *bed) (key string){
		"another type": func(b *bed) string {
			b.do("DEL", b.keys().index)
			b.do("SET", b.keys().index, "x")
			return b.keys().index
		},
		"ids that are ahead": func(b *bed) string {
			b.do("XSETID", b.keys().index, "99999999999999-0")
			return b.keys().index
		},
		"no state":           func(b *bed) string { b.do("HSET", b.keys().meta, "s", "x"); return "its state is x" },
		"no end":             func(b *bed) string { b.do("HDEL", b.keys().meta, "end"); return "it ends at false" },
		"the stream is gone": func(b *bed) string { b.do("DEL", b.keys().stream); return "the stream is gone" },
	} {
		for _, others := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " with others ", others), func(t *testing.T) {
				b := newBed(t, inIndex)
				l := b.open(1)
				b.append(l, b.valued("0"))
				if others {
					b.do("XADD", b.keys().stream, "*", "value", "theirs")
				}
				word := spoil(b)
				before, state := b.do("EXISTS", b.keys().stream), b.do("HGET", b.keys().meta, "s")
				n := b.do("XLEN", b.keys().stream)
				_, err := l.Append(b.ctx, b.valued("1"))
				if !errors.Is(err, store.ErrStorage) || !strings.Contains(err.Error(), word) {
					t.Errorf("%v", err)
				}
				if got := b.do("XLEN", b.keys().stream); got != n || b.do("EXISTS", b.keys().stream) != before {
					t.Errorf("there were %s entries, and are %s", n, got)
				}
				if got := b.do("HGET", b.keys().meta, "s"); got != state {
					t.Errorf("the state was %s, and is %s", state, got)
				}
			})
		}
	}
}

// A marker has no ids, so that it goes after whatever was adopted.
func TestAMarkerGoesAfterWhatWasAdoptedUnheard(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	b.append(l, b.valued("0"))
	il := l.(indexLog)
	before := il.tail
	b.do("XADD", b.keys().stream, "99999999999999-7", "value", "1")
	b.refresh(l)
	il.tail = before
	if at := b.append(l, b.marker(7, true)); at.BaseOffset != 2 {
		t.Errorf("the marker is at %d", at.BaseOffset)
	}
	if got := b.values(l); !slices.Contains(got, "1") {
		t.Errorf("%q", got)
	}
	b.wantSound()
}

// A marker that is refused has no ids that others could have taken: why is told, and nothing is adopted.
func TestAMarkerWithoutItsIndexIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(b *bed) (says string){
		"no state":    func(b *bed) string { b.do("HSET", b.keys().meta, "s", "x"); return "its state is x" },
		"no end":      func(b *bed) string { b.do("HDEL", b.keys().meta, "end"); return "it ends at false" },
		"a lower end": func(b *bed) string { b.do("HSET", b.keys().meta, "end", "0"); return "it ends at 0" },
		"no index":    func(b *bed) string { b.do("DEL", b.keys().index); return "the index is gone" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, inIndex)
			l := b.open(1)
			b.append(l, b.valued("0"))
			says := spoil(b)
			_, err := l.Append(b.ctx, b.marker(7, true))
			assert.ErrorIs(t, err, store.ErrStorage)
			assert.True(t, err != nil && strings.Contains(err.Error(), says), "%v", err)
			assert.Equal(t, b.do("XLEN", b.keys().stream), "1", "entries")
		})
	}
}

// The server's clock is asked for again from time to time.
func TestAnAppendTellsTheTime(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	b.append(l, b.valued("0"))
	at := time.Now().Add(2 * clockAge)
	b.store.now = func() time.Time { return at }
	b.append(l, b.valued("1"))
	if c := l.(indexLog).clock; !c.local.Equal(at) || c.server > time.Now().Add(clockAge).UnixMilli() {
		t.Errorf("the clock of the server is %+v", c)
	}
}

// What is adopted in one call is bounded by bytes, however it is adopted, and how large the
// largest was is known to who reads.
func TestAdoptionIsBoundedByBytes(t *testing.T) {
	const size = 256 << 10
	for _, c := range []struct {
		byAppend bool
		n        int
	}{{true, 1}, {true, 20}, {false, 1}, {false, 20}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			b := newBed(t, inIndex)
			l := b.open(1)
			b.append(l, b.valued("0"))
			for range c.n {
				b.do("XADD", b.keys().stream, "*", "value", strings.Repeat("x", size))
			}
			if !c.byAppend {
				b.refresh(l)
			}
			b.append(l, b.batchOf(record.Record{Value: []byte("last")}))
			if got := len(b.values(l)); got != c.n+2 {
				t.Errorf("%d records", got)
			}
			entries, err := decodeEntries(b.client.Do(b.ctx, b.client.B().Xrange().Key(b.keys().index).Start("-").End("+").Build()), b.keys())
			must(t, err)
			if n := entries[1].records(); c.byAppend && n > adoptedAtOnce || n == 0 {
				t.Errorf("%d entries of %d bytes are adopted at a time", n, size)
			}
			wantLargest := func(what string, largest int64) {
				if largest < size || largest > int64(c.n+1)*size {
					t.Errorf("%s: the largest entry has %d bytes", what, largest)
				}
			}
			wantLargest("the leader", l.(indexLog).tail.largest)
			wantLargest("the next leader", b.open(2).(indexLog).tail.largest)
			b.wantSound()
		})
	}
}
