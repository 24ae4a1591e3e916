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

func TestTheFirstFetchLoadsAndWhoWaitsIsWoken(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		wait := NewWait()
		defer wait.End()
		f := plainFetch
		f.Member, f.Wait = "m", wait
		loading := make(chan struct{})
		w.coord.gate = loading
		got := w.l.Acquire(t.Context(), w.in(), f)
		assert.Equal(t, show(&got), "", "before it is loaded")
		close(loading)
		<-wait.C
		got = w.l.Acquire(t.Context(), w.in(), f)
		assert.Equal(t, show(&got), "0-2", "after")
	})
}

func TestALoadAloneWakesWhoWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		w.initialize("h", 1, 0) // Nothing is stored at first.
		w.members.Store("h", true)
		w.append(3)
		wait := NewWait()
		defer wait.End()
		f := plainFetch
		f.Member, f.Wait = "m", wait
		loading := make(chan struct{})
		w.coord.gate = loading
		w.l.Acquire(t.Context(), w.of("h"), f)
		close(loading)
		began := time.Now()
		select {
		case <-wait.C:
		case <-time.After(time.Minute):
		}
		assert.Equal(t, time.Since(began), 0, "waited")
	})
}

func TestExpiryGivesRecordsAwayThoughItCannotBeStoredYet(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.fetch("vanished")
		release := w.held()
		defer release()
		wait := NewWait()
		defer wait.End()
		f := plainFetch
		f.Member, f.Wait = "m", wait
		w.l.Acquire(t.Context(), w.in(), f)
		began := time.Now()
		<-wait.C
		assert.Equal(t, time.Since(began), 30*time.Second, "waited")
		got := w.l.Acquire(t.Context(), w.in(), f)
		assert.Equal(t, show(&got), "0-2*2")
	})
}

func TestAShareGroupBeginsWhereItsSettingSaysAndTheNextLeaderGoesOnThere(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reset Reset
		want  string
	}{
		{"latest", Reset{Kind: Latest}, "6-7"},
		{"earliest", Reset{Kind: Earliest}, "0-7"},
		{"by duration", Reset{ByDuration, time.Hour}, "3-7"},
		{"by a duration without records", Reset{ByDuration, time.Second}, "6-7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.set.Reset = tt.reset
				w.append(3)
				w.pass(2 * time.Hour)
				w.append(3)
				w.pass(time.Minute)
				w.fetch("m", most(0)) // It is loaded, and no more.
				w.lead()
				w.append(2)
				assert.Equal(t, w.fetch("m"), tt.want, "after another leader has taken over")
			})
		})
	}
}

func TestAnAcceptIsAnsweredOnceItIsStored(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		assert.Equal(t, w.fetch("m"), "0-2", "")
		release := w.held()
		done := w.l.Acknowledge(w.in(), "m", []window.Acknowledgement{{First: 0, Last: 1, Types: []int8{window.Accept}}}, false)
		synctest.Wait()
		select {
		case <-done.ready:
			t.Error("answered before it is stored")
		default:
		}
		assert.Equal(t, w.ack("m", window.Accept, 1, 1), "INVALID_RECORD_STATE", "of what is under a write")
		release()
		assert.Equal(t, said(done.Wait()), "ok", "the accept")
		w.lead()
		assert.Equal(t, w.fetch("n"), "2-2", "by the next leader")
	})
}

func TestWritesThatWaitGoTogetherInTheirOrder(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(5)
		w.fetch("m")
		before := len(w.writes())
		release := w.held()
		var all []*Outcome
		for i := range int64(4) {
			all = append(all, w.l.Acknowledge(w.in(), "m", []window.Acknowledgement{{First: i, Last: i, Types: []int8{window.Accept}}}, false))
			synctest.Wait()
		}
		synctest.Wait()
		release()
		for _, o := range all {
			assert.Equal(t, said(o.Wait()), "ok", "")
		}
		writes := w.writes()[before:]
		assert.MustEqual(t, len(writes), 2, "requests for four acknowledgements")
		last := writes[1].Topics[0].Partitions[0]
		assert.Equal(t, len(last.StateBatches), 3, "that came meanwhile")
		assert.Equal(t, last.DeliveryCompleteCount, 4, "completed")
	})
}

func TestALockThatRanOutGivesItsRecordsToWhoWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		assert.Equal(t, w.fetch("vanished"), "0-2", "")
		wait := NewWait()
		defer wait.End()
		f := plainFetch
		f.Member, f.Wait = "m", wait
		assert.Equal(t, w.fetch("m"), "", "while it is locked")
		w.l.Acquire(t.Context(), w.in(), f)
		began := time.Now()
		<-wait.C
		assert.Equal(t, time.Since(began), 30*time.Second, "waited")
		assert.Equal(t, w.fetch("m"), "0-2*2", "afterwards")
		assert.Equal(t, w.ack("vanished", window.Accept, 0, 2), "INVALID_RECORD_STATE", "of who has lost it")
		w.lead()
		assert.Equal(t, w.fetch("n"), "0-2*2", "by the next leader, who counts what was stored")
	})
}

func TestRenewalKeepsRecordsAndStoresNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.fetch("m")
		stored := len(w.writes())
		w.pass(20 * time.Second)
		assert.Equal(t, w.ack("m", window.Renew, 0, 2), "ok", "renew")
		w.pass(20 * time.Second)
		assert.Equal(t, w.fetch("n"), "", "while it is renewed")
		assert.Equal(t, len(w.writes()), stored, "writes")
		w.pass(10 * time.Second)
		assert.Equal(t, w.fetch("n"), "0-2*2", "after")
	})
}

func TestTheEndOfASessionReleasesAndWhoWaitsIsWoken(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		assert.Equal(t, w.fetch("m", most(2)), "0-1", "")
		assert.Equal(t, w.fetch("n"), "2-2", "")
		wait := NewWait()
		defer wait.End()
		f := plainFetch
		f.Member, f.Wait = "n", wait
		w.l.Acquire(t.Context(), w.in(), f)
		w.leave("m")
		<-wait.C
		assert.Equal(t, w.fetch("n"), "0-1*2", "")
	})
}

func TestAWriteThatFailsLeavesTheRecordsToTheirMember(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.fetch("m")
		w.broken(nil, kerr.UnknownServerError)
		assert.Equal(t, w.ack("m", window.Accept, 1, 1), "UNKNOWN_SERVER_ERROR", "")
		w.broken(nil, nil)
		assert.Equal(t, w.ack("m", window.Release, 1, 1), "ok", "another time")
		assert.Equal(t, w.fetch("n"), "1-1*2", "what was released")
	})
}

func TestACoordinatorThatIsAwayForAMomentIsAskedAgain(t *testing.T) {
	for _, how := range []struct {
		away error
		code *kerr.Error
	}{{errAway, nil}, {nil, kerr.NotCoordinator}, {nil, kerr.CoordinatorLoadInProgress}, {nil, kerr.UnknownTopicOrPartition}} {
		inWorld(t, func(w *world) {
			w.append(3)
			w.broken(how.away, how.code)
			assert.Equal(t, w.fetch("m"), "", "while it is away")
			w.broken(nil, nil)
			w.pass(lastPause)
			assert.Equal(t, w.fetch("m"), "0-2", "when it is back")
			w.broken(how.away, how.code)
			done := w.l.Acknowledge(w.in(), "m", []window.Acknowledgement{{First: 0, Last: 2, Types: []int8{window.Accept}}}, false)
			w.pass(3 * time.Second)
			w.broken(nil, nil)
			assert.Equal(t, said(done.Wait()), "ok", "of the accept")
		})
	}
}

func TestMembersAreNotToldThatTheCoordinatorIsAway(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.broken(errAway, nil)
		wait := NewWait()
		defer wait.End()
		f := plainFetch
		f.Member, f.Wait = "m", wait
		w.l.Acquire(t.Context(), w.in(), f)
		for range 3 { // Each time it could not be loaded.
			<-wait.C
			got := w.l.Acquire(t.Context(), w.in(), f)
			assert.Equal(t, show(&got), "", "an error of which clients know nothing")
		}
		w.broken(nil, nil)
		w.pass(time.Minute)
		assert.Equal(t, w.fetch("m"), "0-2", "when it is back")
	})
}

func TestACoordinatorThatStaysAwayIsNotWaitedForForever(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.fetch("m")
		w.broken(errAway, nil)
		began := time.Now()
		assert.Equal(t, w.ack("m", window.Accept, 0, 2), "COORDINATOR_NOT_AVAILABLE", "")
		assert.True(t, time.Since(began) <= tryFor, "it took %v", time.Since(began))
	})
}

func TestWhatWasNotInitializedIsAnErrorAndTakesNoMemory(t *testing.T) {
	inWorld(t, func(w *world) {
		w.members.Store("other", true)
		assert.Equal(t, w.fetchOf("other", "m"), "UNKNOWN_SERVER_ERROR", "")
		assert.False(t, w.here("other"), "a share partition is kept")
		for range 3 { // Who asks and does not wait for the answer.
			w.l.Acquire(t.Context(), w.of("other"), plainFetch)
			synctest.Wait()
		}
		assert.False(t, w.here("other"), "a share partition is kept")
		assert.Equal(t, w.l.memory.Load(), 0, "memory")
	})
}

func TestALeaderOfAnOlderEpochIsFenced(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		old := w.in()
		w.fetch("m")
		w.lead()
		assert.Equal(t, w.fetch("n"), "0-2", "by the new leader")
		stale := New(w.l.opts)
		defer stale.Close()
		p := stale.findOrLoad(old.Key, old.Log, false)
		synctest.Wait()
		assert.Equal(t, p.failure.err.Message, "NOT_LEADER_FOR_PARTITION", "to load")
	})
}

func TestAlteredOffsetsFenceTheWindowOfBefore(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(6)
		assert.Equal(t, w.fetch("m", most(2)), "0-1", "")
		w.initialize("g", 2, 4)
		assert.Equal(t, w.ack("m", window.Accept, 0, 1), "NOT_LEADER_FOR_PARTITION", "")
		assert.Equal(t, w.fetch("m"), "4-5", "from the new start")
	})
}

func TestTheWindowOfAGroupWithoutSessionsIsDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(6)
		assert.Equal(t, w.fetch("m", most(2)), "0-1", "")
		assert.Equal(t, w.ack("m", window.Accept, 0, 0), "ok", "")
		w.leave("m")
		assert.True(t, w.here("g"), "it is dropped while others have sessions")
		w.members.Delete("g")
		w.fetch("n", most(1))
		assert.True(t, w.here("g"), "it is dropped while something is acquired")
		w.leave("n")
		assert.False(t, w.here("g"), "it is kept")
		w.initialize("g", 2, 4)
		w.members.Store("g", true)
		assert.Equal(t, w.fetch("m"), "4-5", "from the offset to which it was altered")
	})
}

func TestSharePartitionsOfPartitionsThatAreGoneAreDropped(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(3)
		w.fetch("m")
		log := w.m.Get("t", 0)
		w.l.Changed(func(metadata.TopicID, int32) *partition.Partition { return log })
		assert.True(t, w.here("g"), "one that is still led")
		w.l.Changed(func(metadata.TopicID, int32) *partition.Partition { return nil })
		assert.False(t, w.here("g"), "one that is not")
		assert.Equal(t, w.ack("m", window.Accept, 0, 2), "UNKNOWN_TOPIC_OR_PARTITION", "an acknowledgement of what is not loaded")
	})
}

func TestAWindowThatGoesIntoUseJustBeforeItIsDroppedIsKept(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(6)
		assert.Equal(t, w.fetch("m", most(3)), "0-2")
		assert.Equal(t, w.ack("m", window.Accept, 0, 2), "ok")
		synctest.Wait() // What was acknowledged is stored.
		w.members.Delete("g")
		asked := func() { // Too late for the answer.
			f := plainFetch
			f.Member = "n"
			got := w.l.Acquire(t.Context(), w.in(), f)
			assert.Equal(t, show(&got), "3-5")
			w.members.Store("g", true)
		}
		w.asked.Store(&asked)
		w.leave("m")
		assert.Equal(t, w.ack("n", window.Accept, 3, 5), "ok", "what was acquired meanwhile")
	})
}

func TestARequestThatFoundAnOlderLeaderLeavesTheWindowOfTheNewOne(t *testing.T) {
	inWorld(t, func(w *world) {
		w.append(6)
		old := w.in()
		w.lead()
		assert.Equal(t, w.fetch("m", most(3)), "0-2")
		assert.Equal(t, said(w.l.Acknowledge(old, "n", []window.Acknowledgement{{First: 3, Last: 3, Types: []int8{window.Accept}}}, false).Wait()), "UNKNOWN_TOPIC_OR_PARTITION")
		f := plainFetch
		f.Member, f.MaxRecords = "n", 1
		got := w.l.Acquire(t.Context(), old, f)
		assert.Equal(t, show(&got), "3-3")
		assert.Equal(t, w.ack("m", window.Accept, 0, 2), "ok", "what was acquired")
	})
}
