package listener

import (
	"context"
	"slices"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/protocol"
)

func TestTheSlowestReadersAreCutOffForTheAnswersOfOthers(t *testing.T) {
	a := newAnswers(100)
	now := time.Unix(1000, 0)
	conns := make([]*conn, 4)
	for i := range conns {
		conns[i] = &conn{}
		conns[i].unread.conn = conns[i]
	}
	cut := func(want ...int) func(got []*conn) {
		return func(got []*conn) {
			t.Helper()
			var ids []int
			for _, c := range got {
				ids = append(ids, slices.Index(conns, c))
			}
			assert.EqualSlices(t, ids, want, "cut off")
		}
	}
	cut()(a.add(&conns[0].unread, 40, now))
	cut()(a.add(&conns[1].unread, 30, now))
	cut()(a.add(&conns[1].unread, 30, now))
	cut()(a.add(&conns[2].unread, 50, now)) // Too much, but no one is slow yet.
	now = now.Add(unreadPatience / 2)
	a.remove(&conns[0].unread, 10, now) // Progress.
	now = now.Add(unreadPatience / 2)
	cut(1)(a.add(&conns[3].unread, 10, now))
	cut(1, 2)(a.add(&conns[3].unread, 70, now))
	for i, bytes := range [][]int{{30}, {30, 30}, {50}, {10, 70}} {
		for _, n := range bytes {
			a.remove(&conns[i].unread, n, now)
		}
	}
	if a.bytes != 0 || a.slow.Len() != 0 {
		t.Errorf("%d bytes and %d connections are left", a.bytes, a.slow.Len())
	}
	cut()(a.add(&conns[1].unread, 200, now)) // The first of it is as new as the last.
	cut(1)(a.add(&conns[0].unread, 1, now.Add(unreadPatience)))
}

func TestUnreadAnswersDoNotPileUp(t *testing.T) {
	answer := map[byte][]byte{'l': make([]byte, 64<<20), 's': make([]byte, 1<<20)} // The first does not fit in a socket.
	s, addr := start(t, Options{}, func(_ context.Context, frame []byte) (*protocol.Response, error) {
		return bytesResponse(answer[frame[0]]), nil
	})
	s.answers = newAnswers(32 << 20)
	slow, good := dial(t, addr), dial(t, addr)
	sendFrame(t, slow, []byte("l"))
	waitFor(t, "the answer is unread", func() bool { // Before any other, however busy the machine is.
		s.answers.mu.Lock()
		defer s.answers.mu.Unlock()
		return s.answers.slow.Len() == 1
	})
	waitFor(t, "an unread answer ends its connection", func() bool {
		sendFrame(t, good, []byte("s"))
		readFrame(t, good)
		return s.Connections() == 1
	})
	s.answers.mu.Lock()
	defer s.answers.mu.Unlock()
	if s.answers.slow.Len() > 1 {
		t.Errorf("%d connections count as slow", s.answers.slow.Len())
	}
}
