package broker

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// hold keeps requests about partitions from being handled while a broker that is alone
// stops: their answer would be that another broker leads, and there is none. A client that
// is told so asks who does before it tries again, and some (franz-go) ask no more often than
// every few seconds. One whose connection ends tries again as soon as it can connect.
type hold struct {
	on        atomic.Bool
	producing atomic.Int64 // Produce requests that are being handled
}

// holdPatience is how long a stop waits for Produce requests that are being handled. Those
// that then meet a closed partition are told to ask who leads it.
const holdPatience = 100 * time.Millisecond

var errStopping = errors.New("the broker stops")

// begin says whether a request of a kind is to be handled. If it is, end must follow.
func (h *hold) begin(k requestKind) bool {
	if k == otherRequest {
		return true
	}
	if k == produceRequest {
		h.producing.Add(1) // Before the look: close looks in the opposite order.
	}
	if h.on.Load() {
		h.end(k)
		return false
	}
	return true
}

func (h *hold) end(k requestKind) {
	if k == produceRequest {
		h.producing.Add(-1)
	}
}

// close has no more requests handled, and waits for those that are, for a while.
func (h *hold) close() {
	h.on.Store(true)
	for began := time.Now(); h.producing.Load() > 0 && time.Since(began) < holdPatience; {
		time.Sleep(time.Millisecond)
	}
}

// requestKind is what matters of a request here.
type requestKind int

const (
	otherRequest requestKind = iota
	produceRequest
	readRequest
)

func kindOf(frame []byte) requestKind {
	if len(frame) < 2 {
		return otherRequest
	}
	switch binary.BigEndian.Uint16(frame) {
	case uint16(kmsg.Produce):
		return produceRequest
	case uint16(kmsg.Fetch), uint16(kmsg.ListOffsets):
		return readRequest
	}
	return otherRequest
}
