package redis

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// An append adopts only so many entries of others by the way, and all the same none that lies
// below what it adds may be left without an offset.
func TestAnAppendAfterManyEntriesOfOthersLeavesNoneOut(t *testing.T) {
	for _, n := range []int{63, 64, 65, 200} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := newBed(t, inIndex)
			l := b.open(1)
			b.append(l, b.valued("first"))
			b.store.now = func() time.Time { return time.Now().Add(time.Hour) } // so that ids are above all of theirs
			want := []string{"first"}
			for i := range n {
				want = append(want, fmt.Sprint(i))
				b.do("XADD", b.keys().stream, "*", "value", fmt.Sprint(i))
			}
			if at := b.append(l, b.valued("last")); at.BaseOffset != int64(n)+1 {
				t.Errorf("the record is at %d", at.BaseOffset)
			}
			if got := b.values(l); !slices.Equal(got, append(want, "last")) {
				t.Errorf("%d records: %q", len(got), got)
			}
			b.wantSound()
		})
	}
}

// A reply to an adoption may be lost, and then the handle knows an older top than Redis does.
func TestAnAppendIsAboveWhatWasAdoptedUnheard(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		t.Run(fmt.Sprint("deleted ", deleted), func(t *testing.T) {
			b := newBed(t, inIndex)
			l := b.open(1)
			b.append(l, b.valued("0"))
			il := l.(indexLog)
			before := il.tail
			id := b.do("XADD", b.keys().stream, "99999999999999-7", "value", "1")
			b.refresh(l)
			il.tail = before
			want := []string{"0", "1", "2", "3"}
			if deleted {
				b.do("XDEL", b.keys().stream, id)
				want = []string{"0", "2", "3"}
			}
			if at := b.append(l, b.valued("2", "3")); at.BaseOffset != 2 {
				t.Errorf("the records are at %d", at.BaseOffset)
			}
			if got := b.values(l); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
			b.wantSound()
		})
	}
}
