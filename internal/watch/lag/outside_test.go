package lag

import (
	"fmt"
	"testing"
)

// lonely says whether a group is told to have lag and no one to read it.
func (w *world) lonely(name string) bool {
	w.t.Helper()
	of := w.of(name)
	return of.Unread()
}

// Whoever assigns partitions by itself is no member, and commits all the same.
func TestWhoReadsWithoutBeingAMemberIsSeen(t *testing.T) {
	for _, bits := range []uint8{0, 10} {
		t.Run(fmt.Sprint(bits), func(t *testing.T) {
			w := newWorld(t, 1<<20)
			l, g := w.log("orders", 0, bits), w.group("flink")
			g.members = 0
			run := func(passes, consumed int) {
				for range passes {
					w.step()
					w.produce(l, 10, w.now)
					if consumed > 0 {
						w.commit(g, l, consumed)
					}
					w.pass()
				}
			}
			w.produce(l, 1000, w.now)
			w.commit(g, l, 1)
			run(1, 0)
			if !w.lonely("flink") {
				t.Error("nobody has read anything yet")
			}
			run(3, 10)
			if w.lonely("flink") {
				t.Error("somebody reads as fast as records come")
			}
			run(29, 0)
			if w.lonely("flink") {
				t.Error("it has not committed for less than five minutes")
			}
			run(1, 0)
			if !w.lonely("flink") {
				t.Error("it has not committed for five minutes")
			}
			for range 3 {
				run(59, 0)
				run(1, 10)
			}
			run(60, 0)
			if w.lonely("flink") {
				t.Error("it commits every ten minutes")
			}
		})
	}
}

func TestWhoNeverReadFromOutsideDoesNot(t *testing.T) {
	p := position{progress: progress{usual: 7 * day}} // A member commits once a week.
	if p.readOutside(8 * day) {
		t.Error("nobody did")
	}
}

func TestWhoHasLeftDoesNotRead(t *testing.T) {
	w, l, g := one(t)
	w.produce(l, 1000, w.now)
	for range 12 {
		w.step()
		w.commit(g, l, 10)
		w.pass()
	}
	w.step()
	w.commit(g, l, 10) // What it commits when it leaves.
	g.members = 0
	w.pass()
	if !w.lonely("billing") {
		t.Errorf("%+v", w.of("billing"))
	}
}

// What an open transaction keeps from being read is not the group's fault.
func TestWhatATransactionHoldsBackIsNotLate(t *testing.T) {
	w, l, g := one(t)
	other := w.log("users", 0, 0)
	w.produce(l, 100, w.now)
	w.produce(other, 100, w.now)
	w.commit(g, l, 50)
	w.commit(g, other, 100)
	l.LastStable = 50
	run := func(passes int, read bool) (late bool) {
		for range passes {
			w.step()
			w.produce(l, 1, w.now)
			w.produce(other, 1, w.now)
			if read {
				w.commit(g, other, 1)
			}
			w.pass()
		}
		of := w.of("billing")
		return of.NotCatchingUp()
	}
	if run(1, true); w.of("billing").Held {
		t.Errorf("nothing is old yet: %+v", w.of("billing"))
	}
	if late := run(59, true); late || w.of("billing").CatchUp != NotCatching || w.of("billing").Seconds < 500 {
		t.Errorf("%+v", w.of("billing"))
	}
	if late := run(29, false); late {
		t.Errorf("less than five minutes behind elsewhere: %+v", w.of("billing"))
	}
	if late := run(4, false); !late {
		t.Errorf("five minutes behind elsewhere: %+v", w.of("billing"))
	}
	run(1, false)
	w.commit(g, other, 1<<30)
	if late := run(1, true); late {
		t.Errorf("it has read all that it can: %+v", w.of("billing"))
	}
	l.LastStable = l.End
	if late := run(1, true); !late {
		t.Errorf("the transaction has ended: %+v", w.of("billing"))
	}
}
