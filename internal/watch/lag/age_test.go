package lag

import (
	"testing"
	"time"
)

// halfBlind is a world in which the records of a topic cannot be looked at.
type halfBlind struct{ *world }

func (h halfBlind) FirstTime(topic string, partition int32, offset int64) (int64, bool) {
	if topic == "away" {
		return 0, false
	}
	return h.world.FirstTime(topic, partition, offset)
}

// Records that no one can look at do not keep others from their turn.
func TestOnlyWhatWasLookedAtCounts(t *testing.T) {
	w := newWorld(t, 1<<20)
	w.tracker = NewTracker(Limits{Bytes: 1 << 20, Asks: 4}, halfBlind{w})
	for _, topic := range []string{"away", "here"} {
		for i := range int32(6) {
			l := w.log(topic, i, 0)
			w.produce(l, 10, w.now.Add(-time.Hour))
			w.commit(w.group("g"), l, 1)
		}
	}
	for pass, want := range []int{4, 6} {
		w.pass()
		dated := 0
		for _, p := range w.tracker.Partitions("g") {
			if !p.SecondsAtLeast {
				dated++
			}
		}
		if dated != want || w.asked != want {
			t.Errorf("pass %d: asked %d times, and of %d it is known, want %d", pass, w.asked, dated, want)
		}
		w.step()
	}
}
