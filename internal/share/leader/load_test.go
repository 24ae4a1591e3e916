package leader

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/share/window"
)

func TestLoadsThatAreTriedAgainAreNotInTheWayOfOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.l.loads = make(chan struct{}, 1)
		w.initialize("h", 1, -1)
		w.members.Store("h", true)
		w.coord.only = "g"
		w.broken(nil, kerr.NotCoordinator)
		assert.Equal(t, w.fetch("m"), "", "while its coordinator moves")
		assert.Equal(t, w.fetchOf("h", "m"), "0-2", "of another group")
	})
}

// The end of a log may be lost, and with it records that were accepted.
func TestAWindowBehindTheEndOfTheLogBeginsAtTheEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.initialize("g", 2, 10)
		w.fetch("m", most(0))
		w.append(2)
		assert.Equal(t, w.fetch("m"), "3-4")
	})
}

func TestWhatIsStoredOfRecordsThatAreLostIsNotSaidOfOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.store(window.StateBatch{First: 1, Last: 9, State: window.Acknowledged, Count: 1}, window.StateBatch{First: 12, Last: 13, State: window.Acknowledged, Count: 1})
		assert.Equal(t, w.fetch("m"), "0-0")
		w.append(12)
		assert.Equal(t, w.fetch("m"), "3-14")
	})
}

// The leader after the one that found it out has no way to.
func TestWhatIsLostOfALogIsStoredForTheNextLeader(t *testing.T) {
	for _, start := range []int64{0, 10} {
		inWorld(t, func(w *world) {
			w.append(3)
			w.initialize("g", 2, start)
			w.storeUnder(2, window.StateBatch{First: 1, Last: 1, State: window.Acknowledged, Count: 1}, window.StateBatch{First: 12, Last: 13, State: window.Acknowledged, Count: 1})
			w.fetch("m", most(0))
			w.append(12)
			w.lead()
			if start == 0 {
				assert.Equal(t, w.fetch("m"), "0-0 2-14")
				assert.Equal(t, w.ack("m", window.Accept, 2, 14), "ok")
			} else {
				assert.Equal(t, w.fetch("m"), "3-14")
				assert.Equal(t, w.ack("m", window.Accept, 3, 14), "ok")
			}
			w.leave("m")
			w.lead()
			if got := w.fetch("m"); start == 0 {
				assert.Equal(t, got, "0-0*2")
			} else {
				assert.Equal(t, got, "")
			}
		})
	}
}

// It is stored before anything is delivered.
func TestNothingIsDeliveredUntilWhatIsLostIsStored(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.initialize("g", 2, 10)
		w.coord.refuse = kerr.UnknownServerError
		w.fetch("m", most(0))
		w.append(2)
		assert.Equal(t, w.fetch("m"), "UNKNOWN_SERVER_ERROR")
		w.coord.refuse = nil
		assert.Equal(t, w.fetch("m"), "")
		w.append(1)
		assert.Equal(t, w.fetch("m"), "5-5")
	})
}

func TestWhereAWindowBeginsIsStoredOrItIsLoadedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.set.Reset = Reset{Kind: Latest}
		w.append(3)
		w.coord.refuse = kerr.UnknownServerError
		w.fetch("m", most(0))
		assert.False(t, w.here("g"), "a window that begins where no one knows is kept")
		w.coord.refuse = nil
		w.fetch("m", most(0))
		w.append(2)
		w.lead()
		assert.Equal(t, w.fetch("m"), "3-4", "by the next leader")
	})
}

func TestWhatIsAskedOfATopicThatIsGoneIsNotTriedAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.fetch("m")
		w.broken(nil, kerr.UnknownTopicOrPartition)
		began := time.Now()
		done := w.l.Acknowledge(w.in(), "m", []window.Acknowledgement{{First: 0, Last: 2, Types: []int8{window.Accept}}}, false)
		synctest.Wait()
		w.l.Changed(func(metadata.TopicID, int32) *partition.Partition { return nil })
		assert.Equal(t, said(done.Wait()), "UNKNOWN_TOPIC_OR_PARTITION")
		assert.True(t, time.Since(began) <= lastPause, "it took %v", time.Since(began))
	})
}
