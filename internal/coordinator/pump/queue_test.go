package pump

import (
	"testing"

	"muster/internal/journal"
	"muster/internal/machine"
)

// A log that is never idle always has somebody who waits for it. What has been
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
			Batches: []machine.Batch{{Records: records}}, Journal: make([]journal.Entry, 10_000), Txns: make([]journal.Txn, 10_000), Committed: make([]machine.Committed, 10_000), Replies: make([]machine.Reply, 10_000),
		}
		b.pump.Request(b.in, machine.Request{ID: 1})
		b.drain()
		b.done(0)
		for what, n := range map[string]int{
			"replies": cap(b.pump.out.Replies), "entries": cap(b.pump.out.Journal), "entries of transactions": cap(b.pump.out.Txns), "offsets": cap(b.pump.out.Committed),
			"held replies": cap(b.pump.replies.items), "held entries": cap(b.pump.journal.items), "held entries of transactions": cap(b.pump.txns.items), "held offsets": cap(b.pump.commits.items),
		} {
			if n > keep {
				t.Errorf("%s: room for %d %s is kept", name, n, what)
			}
		}
	}
}
