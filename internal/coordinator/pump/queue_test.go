package pump

import (
	"testing"

	"muster/internal/machine"
)

// A log that is never idle always has someone who waits for it. What has been
// let out must not be kept until there is a pause.
func TestWhatIsHeldDoesNotGrowWhileTheLogIsBusy(t *testing.T) {
	b := newBed(t)
	one := machine.Batch{Records: []machine.Record{note("r")}}
	b.ask(one)
	for range 10_000 {
		b.ask(one)
		b.pump.Appended(b.pump.Life(), b.in, 0, false)
		if out := b.drain(); len(out.Replies) != 1 {
			t.Fatalf("%d replies after an append", len(out.Replies))
		}
	}
	if n := cap(b.pump.replies.items); n > 100 {
		t.Errorf("room for %d replies is kept for one that waits", n)
	}
}

// What one large step needs, such as a load, is not kept for all that come
// after it.
func TestTheRoomOfALargeStepIsGivenBack(t *testing.T) {
	for name, records := range map[string][]machine.Record{"at once": nil, "held": {note("r")}} {
		b := newBed(t)
		b.core.next = machine.Effects{
			Batches: []machine.Batch{{Records: records}}, Notes: make([]machine.Note, 10_000), Replies: make([]machine.Reply, 10_000),
		}
		b.pump.Request(b.in, machine.Request{ID: 1})
		b.drain()
		b.done(0)
		for what, n := range map[string]int{
			"replies": cap(b.pump.out.Replies), "notes": cap(b.pump.out.Notes),
			"held replies": cap(b.pump.replies.items), "held notes": cap(b.pump.notes.items),
		} {
			if n > keep {
				t.Errorf("%s: room for %d %s is kept", name, n, what)
			}
		}
	}
}
