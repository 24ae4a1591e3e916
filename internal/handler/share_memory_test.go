package handler_test

import (
	"runtime"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/share/window"
)

// liveHeap is how many bytes something still points to.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// What was acknowledged may be many megabytes, which no one counts while the request waits.
func TestARequestOfAShareGroupThatWaitsKeepsNoAcknowledgements(t *testing.T) {
	const large = 16 << 20
	w := newShareWorld(t)
	w.request(w.produceRequest(9, 0))
	o := aConn()
	conn := o.Conn.(*fakeConn)
	w.fetches(o, w.fetchOf("m", 0))
	types := make([]int8, large) // Too many for the range, which is refused.
	waits := func(req kmsg.Request, over func()) {
		conn.parked = make(chan int, 10)
		before := liveHeap()
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.from(o, req)
		}()
		<-conn.parked
		assert.True(t, liveHeap()-before < large, "%s keeps %d bytes", kmsg.NameForKey(req.Key()), liveHeap()-before)
		over()
		<-done
	}
	fetch := w.fetchOf("m", 0)
	fetch.MaxWaitMillis = 60_000
	fetch.Topics[0].Partitions[0].AcknowledgementBatches = ackBatch(0, 2, types...)
	waits(fetch, func() { w.request(w.produceRequest(9, 0)) })
	gate := make(chan struct{})
	w.gate.Store(&gate)
	ack := w.acknowledgement("m", 0, 2, window.Accept)
	other := ack.Topics[0].Partitions[0]
	other.Partition, other.AcknowledgementBatches = 1, w.acknowledgement("m", 0, 2, types...).Topics[0].Partitions[0].AcknowledgementBatches
	ack.Topics[0].Partitions = append(ack.Topics[0].Partitions, other)
	waits(ack, func() { close(gate) })
}

func TestARequestThatForgetsMorePartitionsThanThereIsRoomForEndsItsConnection(t *testing.T) {
	w := newShareWorld(t)
	w.conn = newFakeConn()
	w.conn.limit = 1 << 20
	req := w.fetchOf("m")
	req.ForgottenTopicsData = []kmsg.ShareFetchRequestForgottenTopicsData{{Partitions: make([]int32, 10_000)}}
	w.refuse(req)
}
