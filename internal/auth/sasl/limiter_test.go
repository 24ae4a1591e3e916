package sasl

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"muster/internal/assert"
)

var testLimits = Limits{Turns: 1, Logins: 64, From: 24, As: 4, Known: 16}

func enters(q *limiter, from, name string) (*Login, bool) {
	l := &Login{From: from}
	_, ok := q.place(l, q.mark(from, name))
	return l, ok
}

func TestLoginsAreSharedAmongAddressesAndNames(t *testing.T) {
	q := newLimiter(testLimits)
	var all []*Login
	fill := func(from string, names int) (entered int) {
		for i := range names {
			for range testLimits.As + 1 {
				if l, ok := enters(q, from, fmt.Sprint("user-", i)); ok {
					all = append(all, l)
					entered++
				}
			}
		}
		return entered
	}
	if n := fill("a", 1); n != testLimits.As {
		t.Errorf("one name gets %d places", n)
	}
	if n := fill("a", 100); n != testLimits.From-testLimits.As {
		t.Errorf("other names of the address get %d places more", n)
	}
	if n := fill("b", 100) + fill("c", 100); n != testLimits.Logins-testLimits.From {
		t.Errorf("other addresses get %d places", n)
	}
	ann, ok := enters(q, "a", "ann")
	assert.False(t, ok, "a stranger gets in though all is full")
	q.Admitted(ann.With(t.Context()), "ann")
	for i := range testLimits.As + 1 {
		l, ok := enters(q, "a", "ann")
		assert.Equal(t, ok, i < testLimits.As, "place %d of one who was let in before", i)
		all = append(all, l)
	}
	if _, ok := enters(q, "b", "ann"); ok {
		t.Error("who was let in elsewhere gets in")
	}
	for i := range testLimits.Known {
		name := fmt.Sprint("known-", i)
		l, _ := enters(q, "a", name)
		q.Admitted(l.With(t.Context()), name)
		l, ok := enters(q, "a", name)
		assert.Equal(t, ok, i < testLimits.Known-testLimits.As, "known %d", i)
		all = append(all, l)
	}
	for _, l := range all {
		l.End()
		l.End()
	}
	assert.Equal(t, q.logins+q.knowns+len(q.from)+len(q.as)+len(q.knownAs), 0, "left are %d and %d, %v %v %v", q.logins, q.knowns, q.from, q.as, q.knownAs)
}

func TestWhoWasLetInIsRememberedWithinBounds(t *testing.T) {
	q := newLimiter(testLimits)
	ctx := (&Login{From: "a"}).With(t.Context())
	for i := range 3 * rememberAdmitted {
		q.Admitted(ctx, fmt.Sprint(i))
		q.Admitted(ctx, fmt.Sprint(i))
	}
	assert.True(t, len(q.admitted) == rememberAdmitted && len(q.order) == rememberAdmitted, "%d are remembered, %d in order", len(q.admitted), len(q.order))
	assert.True(t, q.admitted[q.mark("a", fmt.Sprint(3*rememberAdmitted-1))], "the last is not")
}

func TestALoginThatGivesUpLeavesItsPlace(t *testing.T) {
	q := newLimiter(testLimits)
	ctx, cancel := context.WithCancel(t.Context())
	first := &Login{From: "a"}
	if err := q.Acquire(first.With(ctx), "ann"); err != nil || !first.Derived {
		t.Fatal(err)
	}
	cancel()
	second := &Login{From: "a"}
	if err := q.Acquire(second.With(ctx), "ann"); !errors.Is(err, context.Canceled) || second.Derived {
		t.Errorf("the second: %v", err)
	}
	second.End()
	q.Release()
	first.End()
	if q.logins != 0 || q.free != 1 || q.unknown.order.Len()+len(q.unknown.by) != 0 {
		t.Errorf("%d are left, %d turns, %v wait", q.logins, q.free, q.unknown.by)
	}
	for range testLimits.As {
		if _, ok := enters(q, "a", "ann"); !ok {
			t.Fatal("there is room")
		}
	}
	assert.ErrorIs(t, q.Acquire(first.With(t.Context()), "ann"), ErrBusy, "one too many")
}

// The order in which those who wait are let in, of a limiter that has all wait.
func TestTurnsGoAroundAddressesAndNamesAndThoseLetInBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newLimiter(Limits{Turns: 1})
		must(t, q.Acquire(t.Context(), "first"))
		served := make(chan string, 100)
		waits := func(ctx context.Context, from, name string) {
			go func() {
				if q.Acquire((&Login{From: from}).With(ctx), name) == nil {
					served <- from + " " + name
				}
			}()
			synctest.Wait()
		}
		q.Admitted((&Login{From: "a"}).With(t.Context()), "kim")
		gone, cancel := context.WithCancel(t.Context())
		for range 3 {
			waits(gone, "0", "hung up") // First in line, and gone when the line moves.
		}
		for range 4 {
			waits(t.Context(), "a", "x")
		}
		waits(t.Context(), "a", "ann")
		waits(t.Context(), "b", "bob")
		waits(t.Context(), "a", "kim")
		waits(t.Context(), "a", "kim")
		cancel()
		synctest.Wait()
		var order []string
		for range 8 {
			q.Release()
			order = append(order, <-served)
		}
		want := []string{"a kim", "a x", "a kim", "b bob", "a ann", "a x", "a x", "a x"}
		assert.EqualSlices(t, order, want)
		q.Release()
		if q.free != 1 || len(q.unknown.by)+q.unknown.order.Len()+len(q.known.by)+q.known.order.Len() != 0 {
			t.Errorf("%d free, %v and %v wait", q.free, q.unknown.by, q.known.by)
		}
	})
}
