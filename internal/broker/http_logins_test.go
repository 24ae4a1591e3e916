package broker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"muster/internal/web"
)

func enters(q *loginQueue, from, name string) (*loginWait, bool) {
	l := &loginWait{from: from, name: name}
	return l, q.enter(l)
}

func TestLoginsAreSharedAmongAddressesAndNames(t *testing.T) {
	q := newLoginQueue()
	var all []*loginWait
	fill := func(from string, names int) (entered int) {
		for i := range names {
			for range maxLoginsAs + 1 {
				if l, ok := enters(q, from, fmt.Sprint("user-", i)); ok {
					all = append(all, l)
					entered++
				}
			}
		}
		return entered
	}
	if n := fill("a", 1); n != maxLoginsAs {
		t.Errorf("one name gets %d places", n)
	}
	if n := fill("a", 100); n != maxLoginsFrom-maxLoginsAs {
		t.Errorf("other names of the address get %d places more", n)
	}
	if n := fill("b", 100) + fill("c", 100); n != maxLogins-maxLoginsFrom {
		t.Errorf("other addresses get %d places", n)
	}
	ann, ok := enters(q, "a", "ann")
	if ok {
		t.Error("a stranger gets in though all is full")
	}
	q.admitted(ann)
	for i := range maxLoginsAs + 1 {
		l, ok := enters(q, "a", "ann")
		if ok != (i < maxLoginsAs) {
			t.Errorf("place %d of one who was let in before: %t", i, ok)
		}
		all = append(all, l)
	}
	if _, ok := enters(q, "b", "ann"); ok {
		t.Error("who was let in elsewhere gets in")
	}
	for i := range maxKnownLogins {
		l, _ := enters(q, "a", fmt.Sprint("known-", i))
		q.admitted(l)
		l, ok := enters(q, "a", fmt.Sprint("known-", i))
		if ok != (i < maxKnownLogins-maxLoginsAs) {
			t.Errorf("known %d: %t", i, ok)
		}
		all = append(all, l)
	}
	for _, l := range all {
		l.end()
	}
	if q.strangers+q.known+len(q.from)+len(q.as)+len(q.knownAs) != 0 {
		t.Errorf("left are %d and %d, %v %v %v", q.strangers, q.known, q.from, q.as, q.knownAs)
	}
}

func TestWhoWasLetInIsRememberedWithinBounds(t *testing.T) {
	q := newLoginQueue()
	for i := range 3 * rememberAdmitted {
		q.admitted(&loginWait{from: "a", name: fmt.Sprint(i)})
		q.admitted(&loginWait{from: "a", name: fmt.Sprint(i)})
	}
	if len(q.admittedBefore) != rememberAdmitted || len(q.order) != rememberAdmitted {
		t.Errorf("%d are remembered, %d in order", len(q.admittedBefore), len(q.order))
	}
	if !q.admittedBefore[q.mark(&loginWait{from: "a", name: fmt.Sprint(3*rememberAdmitted - 1)})] {
		t.Error("the last is not")
	}
}

func TestALoginThatGivesUpLeavesItsPlace(t *testing.T) {
	q := newLoginQueue()
	ctx, cancel := context.WithCancel(t.Context())
	first := &loginWait{from: "a", name: "ann"}
	if err := q.Acquire(context.WithValue(ctx, loginKey{}, first)); err != nil || !first.derived {
		t.Fatal(err)
	}
	cancel()
	second := &loginWait{from: "a", name: "ann"}
	if err := q.Acquire(context.WithValue(ctx, loginKey{}, second)); !errors.Is(err, context.Canceled) || second.derived {
		t.Errorf("the second: %v", err)
	}
	second.end()
	q.Release()
	first.end()
	if q.strangers != 0 {
		t.Errorf("%d are left", q.strangers)
	}
	if err := q.Acquire(t.Context()); !errors.Is(err, web.ErrLoginBusy) {
		t.Errorf("one of no one: %v", err)
	}
}
