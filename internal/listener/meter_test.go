package listener

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/protocol"
)

// meterLog keeps what a meter hears.
type meterLog struct {
	mu   sync.Mutex
	seen []answeredRequest
	news chan struct{}
}

type answeredRequest struct {
	conn         uint32
	key, version int16
	took         time.Duration
}

func (m *meterLog) Answered(conn uint32, key, version int16, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = append(m.seen, answeredRequest{conn, key, version, took})
	m.news <- struct{}{}
}

// next waits for what the meter hears next.
func (m *meterLog) next() answeredRequest {
	<-m.news
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[len(m.seen)-1]
}

// TestTheMeterHearsOfWhatWasAnswered: at once, later, and without an answer (acks=0), but
// not of a request that has ended its connection.
func TestTheMeterHearsOfWhatWasAnswered(t *testing.T) {
	meter := &meterLog{news: make(chan struct{}, 10)}
	later := make(chan *protocol.Response, 1)
	s, addr := start(t, Options{Meter: meter}, func(_ context.Context, frame []byte) (*protocol.Response, error) {
		switch frame[1] {
		case 3:
			resp := protocol.NewPending()
			later <- resp
			return resp, nil
		case 0:
			return nil, nil
		case 9:
			return nil, errors.New("no such thing")
		}
		return bytesResponse([]byte("answer")), nil
	})
	c := dial(t, addr)
	sendFrame(t, c, []byte{0, 12, 0, 4, 1, 2, 3, 4})
	readFrame(t, c)
	first := meter.next()
	assert.True(t, first.key == 12 && first.version == 4 && first.took > 0, "at once: %+v", first)
	sendFrame(t, c, []byte{0, 0, 0, 13, 1, 2, 3, 4})
	if got := meter.next(); got.key != 0 || got.version != 13 || got.conn != first.conn {
		t.Errorf("without an answer: %+v", got)
	}
	sendFrame(t, c, []byte{0, 3, 0, 9, 1, 2, 3, 4})
	pending, begun := <-later, time.Now()
	waitFor(t, "time to pass", func() bool { return time.Since(begun) > time.Millisecond })
	waited := time.Since(begun)
	pending.Complete(&protocol.Request{CorrelationID: 1}, kmsg.NewPtrHeartbeatResponse())
	readFrame(t, c)
	if got := meter.next(); got.key != 3 || got.version != 9 || got.took < waited {
		t.Errorf("after %s: %+v", waited, got)
	}
	other := dial(t, addr)
	sendFrame(t, other, []byte{0, 12, 0, 3, 1, 2, 3, 4})
	readFrame(t, other)
	if got := meter.next(); got.conn == first.conn {
		t.Errorf("two connections have one number: %+v", got)
	}
	wantConnections(t, s, 2)
	sendFrame(t, other, []byte{0, 9, 0, 0, 1, 2, 3, 4})
	wantClosed(t, other)
	waitFor(t, "the connection to be gone", func() bool { return s.ConnectionsByListener()["PLAINTEXT"] == 1 })
	sendFrame(t, c, []byte{0, 12, 0, 2, 1, 2, 3, 4})
	readFrame(t, c)
	assert.True(t, meter.next().version == 2 && len(meter.seen) == 5, "in the end: %+v", meter.seen)
}

func wantConnections(t *testing.T, s *Server, n int) {
	t.Helper()
	if got := s.ConnectionsByListener(); len(got) != 1 || got["PLAINTEXT"] != n {
		t.Errorf("connections: %v", got)
	}
}
