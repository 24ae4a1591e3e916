package redis

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"muster/internal/redistest"
	"muster/internal/store"
)

// The first append of a leader may adopt entries of others and be refused then, since they have
// its ids. That it is of a new epoch is written down with what it adopts, or never.
func TestAnAppendThatAdoptsAndIsRefusedWritesItsEpoch(t *testing.T) {
	for _, n := range []int{1, 64, 65} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := newBed(t, inIndex)
			b.append(b.open(1), b.valued("first"))
			l := b.open(2)
			for i := range n {
				b.do("XADD", b.keys().stream, fmt.Sprint("99999999999999-", i), "value", "theirs")
			}
			if at := b.append(l, b.valued("last")); at.BaseOffset != int64(n)+1 {
				t.Errorf("the record is at %d", at.BaseOffset)
			}
			want := []store.EpochStart{{Epoch: 1}, {Epoch: 2, Start: 1}}
			if got := l.Epochs(); !slices.Equal(got, want) {
				t.Errorf("the leader knows epochs %+v", got)
			}
			if got := b.do("HGET", b.keys().meta, "epochs"); got != formatEpochs(want) {
				t.Errorf("Redis has epochs %s", got)
			}
			if got := b.open(3).Epochs(); !slices.Equal(got, want) {
				t.Errorf("the next leader knows epochs %+v", got)
			}
			b.wantSound()
		})
	}
}

func TestADeposedLeaderAdoptsNothing(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	b.append(l, b.valued("0"))
	next := b.openIn(b.newStore(single(t), Options{}), 2)
	b.do("XADD", b.keys().stream, "*", "value", "theirs")
	if _, err := l.(store.Refresher).Refresh(b.ctx); !errors.Is(err, store.ErrFenced) {
		t.Errorf("%v", err)
	}
	if end := b.do("HGET", b.keys().meta, "end"); end != "1" {
		t.Errorf("the log ends at %s", end)
	}
	if end := b.refresh(next); end != 2 {
		t.Errorf("the next leader says it ends at %d", end)
	}
	b.wantSound()
}

// A reply to an adoption may be lost; the next one finds that it was done, and where the log ends.
func TestAnAdoptionWhoseReplyWasLostIsNotDoneAgain(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	b.append(l, b.valued("0"))
	before := l.(indexLog).tail
	b.do("XADD", b.keys().stream, "*", "value", "1")
	b.do("XADD", b.keys().stream, "*", "value", "2")
	b.refresh(l)
	l.(indexLog).tail = before
	if end := b.refresh(l); end != 3 {
		t.Errorf("the log ends at %d", end)
	}
	if got := b.values(l); !slices.Equal(got, []string{"0", "1", "2"}) {
		t.Errorf("%q", got)
	}
	b.wantSound()
}

// What Redis clients have added before Redis was full is there for consumers.
func TestEntriesOfOthersAreAdoptedInAFullRedis(t *testing.T) {
	b := newBedAt(t, redistest.Single(t, "maxmemory-policy noeviction").URL(), inIndex)
	l := b.open(1)
	b.append(l, b.valued("0"))
	b.do("XADD", b.keys().stream, "*", "value", "1")
	b.do("CONFIG", "SET", "maxmemory", "1kb")
	if end := b.refresh(l); end != 2 {
		t.Errorf("the log ends at %d", end)
	}
	b.do("CONFIG", "SET", "maxmemory", "0")
	b.wantSound()
}
