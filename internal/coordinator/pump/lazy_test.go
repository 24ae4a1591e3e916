package pump

import (
	"testing"
	"time"

	"muster/internal/machine"
)

// lazy is a batch that nobody waits for.
func lazy(names ...string) machine.Batch {
	b := plain(names...)
	b.Lazy = true
	return b
}

// tell has the core ask for batches that belong to no request.
func (b *bed) tell(batches ...machine.Batch) drained {
	b.core.next = machine.Effects{Batches: batches}
	b.pump.Tell(b.in, machine.TopicsChanged{})
	return b.drain()
}

// fire lets time go by.
func (b *bed) fire(after time.Duration) drained {
	b.in.Now = b.in.Now.Add(after)
	b.pump.Fire(b.in)
	return b.drain()
}

func TestALazyBatchGoesWithTheNextOne(t *testing.T) {
	b := newBed(t)
	b.appends(b.tell(lazy("a")), "")
	b.appends(b.tell(lazy("b")), "")
	o := b.ask(plain("c"))
	b.appends(o, "a b c")
	b.released(o)
	b.released(b.done(0), 1)
	if next := b.pump.Next(); !next.IsZero() {
		t.Errorf("it wants to be woken at %v for what is in the log", next)
	}
	b.appends(b.ask(plain("d")), "d")
	b.appends(b.tell(lazy("e")), "")
	b.appends(b.tell(plain("f")), "")
	b.appends(b.done(0), "e f")
}

func TestALazyBatchDoesNotWaitForEver(t *testing.T) {
	b := newBed(t)
	at := b.in.Now
	b.tell(lazy("a"))
	b.in.Now = b.in.Now.Add(lazyFor / 2)
	b.tell(lazy("b"))
	if next := b.pump.Next(); !next.Equal(at.Add(lazyFor)) {
		t.Fatalf("it is due at %v, should be %v", next, at.Add(lazyFor))
	}
	b.appends(b.fire(lazyFor/2-1), "")
	b.appends(b.fire(1), "a b")
	b.done(0)
	if next := b.pump.Next(); !next.IsZero() {
		t.Errorf("it wants to be woken at %v for nothing", next)
	}
	// One that comes while the log is busy.
	b.ask(plain("c"))
	b.tell(lazy("d"))
	b.appends(b.done(2), "")
	b.appends(b.fire(lazyFor), "d")
	// Its time comes while the log is busy.
	b.tell(lazy("e"))
	b.appends(b.fire(lazyFor), "")
	b.appends(b.done(3), "e")
}

func TestTheEarlierOfTimerAndLazyBatchIsNext(t *testing.T) {
	for _, c := range []struct{ timer, want time.Duration }{{lazyFor / 2, lazyFor / 2}, {2 * lazyFor, lazyFor}} {
		b := newBed(t)
		at := b.in.Now
		b.core.next.Timers = []machine.Timer{{Key: machine.TimerKey{Kind: "k"}, Seq: 1, At: at.Add(c.timer)}}
		b.pump.Tell(b.in, machine.TopicsChanged{})
		b.drain()
		b.tell(lazy("a"))
		if next := b.pump.Next(); !next.Equal(at.Add(c.want)) {
			t.Errorf("a timer after %v: the next is due after %v", c.timer, next.Sub(at))
		}
	}
}

// Nobody reads what is not durable, so whoever asks has it appended.
func TestALazyBatchIsAppendedForWhoeverWaits(t *testing.T) {
	for what, fx := range map[string]machine.Effects{
		"an answer": {Replies: []machine.Reply{{ID: 7}}}, "a send": {Sends: []machine.Send{{ID: 7}}},
	} {
		b := newBed(t)
		b.tell(lazy("a"))
		b.core.next = fx
		b.pump.Tell(b.in, machine.TopicsChanged{})
		o := b.drain()
		if b.appends(o, "a"); len(o.Replies)+len(o.Sends) > 0 {
			t.Errorf("%s goes out before what it may be about is durable", what)
		}
		if o = b.done(0); len(o.Replies)+len(o.Sends) != 1 {
			t.Errorf("%s is not let out", what)
		}
	}
}

// A batch of its own does not make a lazy one wait.
func TestALazyBatchBetweenOthersKeepsItsPlace(t *testing.T) {
	b := newBed(t)
	whole := plain("w")
	whole.Whole = true
	b.ask(plain("a"))
	b.tell(lazy("b"))
	b.tell(whole)
	b.tell(lazy("c"))
	b.appends(b.done(0), "b")
	b.appends(b.done(1), "w")
	b.appends(b.done(2), "")
	b.appends(b.fire(lazyFor), "c")
}
