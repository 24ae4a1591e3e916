package leader

import (
	"testing"
	"testing/synctest"

	"muster/internal/assert"
	"muster/internal/share/window"
)

// A panic of what runs in the background would end the broker.
func TestAPanicInTheBackgroundDropsTheSharePartitionAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.coord.panics(1)
		got := w.fetch("m")
		if got == "" { // The load ended later than the fetch.
			got = w.fetch("m")
		}
		assert.Equal(t, got, "0-2", "when it is loaded again")
		w.coord.panics(1)
		assert.Equal(t, w.ack("m", window.Accept, 0, 1), "UNKNOWN_SERVER_ERROR", "what was to be stored")
		synctest.Wait()
		assert.Equal(t, w.fetch("m"), "0-2", "what is not")
		p := w.l.find(w.in().Key, w.in().Log)
		p.mu.Lock()
		p.window = nil // When its lock runs out, there is none.
		p.mu.Unlock()
		w.pass(w.set.Lock)
		synctest.Wait()
		assert.Equal(t, w.fetch("m"), "0-2", "when it is loaded again")
	})
}

func TestAPanicOfAFetchLeavesNoLock(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.fetch("m", most(0))
		p := w.l.find(w.in().Key, w.in().Log)
		func() {
			defer func() { assert.True(t, recover() != nil, "it does not panic") }()
			_, _ = p.take(Fetch{}, nil, 0)
		}()
		assert.Equal(t, w.fetch("m"), "0-2", "when it is loaded again")
	})
}
