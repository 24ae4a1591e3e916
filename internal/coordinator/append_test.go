package coordinator

import (
	"testing"
	"testing/synctest"

	"muster/internal/machine"
)

// No one brings anything more: what was queued is appended all the same.
func TestWhatWaitsIsAppendedWhenTheAppendBeforeItEnds(t *testing.T) {
	log := &gatedLog{held: true}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		first, second := async(t, c, commitRequest(1)), async(t, c, commitRequest(2))
		for n := range 2 {
			log.settle(nil)
			synctest.Wait()
			if !answered(first) || answered(second) != (n == 1) {
				t.Errorf("after append %d: answered %v, %v", n+1, answered(first), answered(second))
			}
		}
	})
}

// What no one asked for, such as the end of a topic, has no reply that waits for
// it, and is appended at once.
func TestWhatFollowsFromAnEventIsAppended(t *testing.T) {
	log := &gatedLog{}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		log.change(c, imageOf(0), imageOf(1))
		c.Do(t.Context(), "g", Client{}, commitRequest(3))
		before := log.appends
		log.change(c, imageOf(1), imageOf(0))
		synctest.Wait()
		if log.appends != before+1 {
			t.Errorf("%d appends of what became of the offsets", log.appends-before)
		}
	})
}

// While someone is about to begin an append, others only add to it.
func TestWhoeverComesBeforeAnAppendBeginsAddsToIt(t *testing.T) {
	log := &gatedLog{}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		s := (*c.shards.Load())[0]
		s.mu.Lock()
		s.soon = true
		s.mu.Unlock()
		first, second := async(t, c, commitRequest(1)), async(t, c, commitRequest(2))
		if log.appends != 0 || answered(first) || answered(second) {
			t.Errorf("%d appends before the one that is to begin", log.appends)
		}
		s.mu.Lock()
		s.soon = false
		s.unlock()
		synctest.Wait()
		if log.appends != 1 || !answered(first) || !answered(second) {
			t.Errorf("%d appends; answered %v, %v", log.appends, answered(first), answered(second))
		}
	})
}

// It is announced under the lock that an append is about to begin, and only if there
// is anything to append.
func TestAnAppendIsAnnouncedBeforeItBegins(t *testing.T) {
	log := &gatedLog{}
	inBubble(t, log, func(t *testing.T, c *Coordinator) {
		s := (*c.shards.Load())[0]
		s.mu.Lock()
		s.appendSoon()
		if s.soon {
			t.Error("an append of nothing is about to begin")
		}
		s.pump.Request(s.input(), machine.Request{ID: 1, Msg: commitRequest(1)})
		s.carryOut()
		s.appendSoon()
		if !s.soon {
			t.Error("nobody knows that an append is about to begin")
		}
		s.mu.Unlock()
		synctest.Wait()
		if s.soon || log.appends != 1 {
			t.Errorf("%d appends; another is about to begin: %v", log.appends, s.soon)
		}
	})
}
