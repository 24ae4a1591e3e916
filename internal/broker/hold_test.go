package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/assert"
)

// Requests about partitions are not handled once a stop holds them, and are not waited for.
func TestHeldRequestsAreNotCounted(t *testing.T) {
	var h hold
	assert.MustTrue(t, h.begin(produceRequest) && h.producing.Load() == 1, "Produce is held by a broker that does not stop, or not counted")
	h.end(produceRequest)
	h.close()
	for kind, want := range map[requestKind]bool{produceRequest: false, readRequest: false, otherRequest: true} {
		assert.Equal(t, h.begin(kind), want, "request of kind %d is handled", kind)
	}
	assert.Equal(t, h.producing.Load(), 0, "Produce requests are counted as being handled")
}

// A stop waits for Produce requests that are being handled, but not for ever.
func TestAStopWaitsAWhileForProduceRequests(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: 0, holdPatience / 2: holdPatience / 2, time.Hour: holdPatience} {
		synctest.Test(t, func(t *testing.T) {
			var h hold
			h.begin(produceRequest)
			h.begin(readRequest) // It may wait for as long as it likes.
			time.AfterFunc(took, func() { h.end(produceRequest) })
			began := time.Now()
			h.close()
			if got := time.Since(began); got < want || got > want+2*time.Millisecond {
				t.Errorf("for a request that takes %v it waits %v", took, got)
			}
		})
	}
}
