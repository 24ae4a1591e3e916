package listener

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/protocol"
)

// clock is how a server waits in these tests: until the test says so.
type clock struct {
	asked chan time.Duration
	over  chan time.Time
}

func newClock() *clock {
	return &clock{asked: make(chan time.Duration, 1000), over: make(chan time.Time)}
}

func (c *clock) after(d time.Duration) <-chan time.Time {
	c.asked <- d
	return c.over
}

// muter is a handler that mutes the connections of requests that say so, and answers
// those that do not say that they want none.
type muter struct{ served atomic.Int32 }

func (m *muter) Handle(ctx context.Context, c *Client, frame []byte) (*protocol.Response, error) {
	m.served.Add(1)
	if bytes.HasPrefix(frame, []byte("mute")) {
		c.Mute(time.Hour)
		c.Mute(time.Second) // The longer one counts.
	}
	if bytes.HasSuffix(frame, []byte("silent")) {
		return nil, nil
	}
	return echo(ctx, frame)
}

func TestAMuteConnectionIsAnsweredAtOnceAndThenNotRead(t *testing.T) {
	for _, first := range []string{"mute", "mute silent"} {
		clock, m := newClock(), &muter{}
		_, addr := startHandler(t, Options{After: clock.after}, m, nil)
		c, other := dial(t, addr), dial(t, addr)
		sendFrame(t, c, []byte(first))
		sendFrame(t, c, []byte("next"))
		if first == "mute" {
			assert.Equal(t, string(readFrame(t, c)), "mute", "the answer")
		}
		assert.Equal(t, <-clock.asked, time.Hour, "mute for")
		// No one else is held up, however many come.
		for range 100 {
			sendFrame(t, other, []byte("x"))
			readFrame(t, other)
		}
		assert.Equal(t, m.served.Load(), 101, "requests were handled while one connection was mute")
		clock.over <- time.Time{}
		assert.Equal(t, string(readFrame(t, c)), "next", "after the wait the answer")
		sendFrame(t, c, []byte("later"))
		assert.Equal(t, string(readFrame(t, c)), "later", "it stayed mute, or was it again")
		if len(clock.asked) != 0 {
			t.Errorf("it was mute for another %s", <-clock.asked)
		}
	}
}

func TestAMuteConnectionEndsWithItsClient(t *testing.T) {
	for name, behind := range map[string]int{"alone": 0, "with a request behind it": 10, "with more behind it than is buffered": 20_000} {
		for _, secure := range []bool{false, true} {
			clock, m := newClock(), &muter{}
			s, addr := startHandler(t, Options{After: clock.after}, m, map[bool]*tls.Config{true: certified(t)}[secure])
			var c net.Conn = dial(t, addr)
			if secure {
				c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // The certificate is this test's own.
			}
			sendFrame(t, c, []byte("mute"))
			<-clock.asked
			if behind > 0 {
				sendFrame(t, c, make([]byte, behind))
			}
			c.Close()
			waitFor(t, name+": the connection is closed", func() bool { return s.Connections() == 0 })
			assert.Equal(t, m.served.Load(), 1, "%s: requests of a client that has gone were handled", name)
		}
	}
}

func TestShutdownDoesNotWaitForMuteConnections(t *testing.T) {
	clock := newClock()
	s, addr := startHandler(t, Options{After: clock.after}, &muter{}, nil)
	c := dial(t, addr)
	sendFrame(t, c, []byte("mute"))
	readFrame(t, c)
	<-clock.asked
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s.Shutdown(ctx)
	assert.NoError(t, ctx.Err(), "it had to be cut off")
	if _, err := c.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the client sees %v", err)
	}
}

// Whoever was mute has as long for the next request as anybody: the time of the last answer
// is not taken for now.
func TestAfterAMuteTimeTheClockIsLookedAt(t *testing.T) {
	over := make(chan time.Time)
	close(over)
	s := &Server{ctx: t.Context(), after: func(time.Duration) <-chan time.Time { return over }}
	c := &conn{server: s, mute: time.Second, now: time.Now().Add(-time.Hour)}
	assert.MustTrue(t, c.stayMute(), "the client has gone")
	if old := time.Since(c.clock()); old > 30*time.Minute {
		t.Errorf("the time is that of %s ago", old)
	}
	// The time of an answer serves once.
	c.now = time.Now().Add(-time.Hour)
	if first, second := time.Since(c.clock()), time.Since(c.clock()); first < 30*time.Minute || second > 30*time.Minute {
		t.Errorf("the time is that of %s ago, and then of %s ago", first, second)
	}
}
