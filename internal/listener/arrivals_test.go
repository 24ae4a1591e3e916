package listener

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"muster/internal/assert"
)

// fixedArrivals lets some connections through and holds up the others.
type fixedArrivals struct {
	free        atomic.Int32 // connections of addresses that are let through
	hold, wait  time.Duration
	from, on    atomic.Int32 // how often it was asked
	host, named atomic.Value
}

func (a *fixedArrivals) From(host string) time.Duration {
	a.from.Add(1)
	a.host.Store(host)
	if a.free.Add(-1) >= 0 {
		return 0
	}
	return a.hold
}

func (a *fixedArrivals) On(listener string) time.Duration {
	a.on.Add(1)
	a.named.Store(listener)
	return a.wait
}

func TestAddressesThatComeTooOftenAreHeldAndThenClosed(t *testing.T) {
	clock, a := newClock(), &fixedArrivals{hold: time.Hour}
	a.free.Store(1)
	s, addr := start(t, Options{After: clock.after, Arrivals: a}, echo)
	first := dial(t, addr)
	sendFrame(t, first, []byte("x"))
	readFrame(t, first)
	second := dial(t, addr) // It sends nothing: what no one reads would reset it anyway.
	assert.Equal(t, <-clock.asked, longestHold, "held for")
	if s.Connections() != 1 || a.on.Load() != 1 || a.host.Load() != "127.0.0.1" || a.named.Load() != "PLAINTEXT" {
		t.Errorf("%d connections; %d counted on %v, the last from %v", s.Connections(), a.on.Load(), a.named.Load(), a.host.Load())
	}
	clock.over <- time.Time{}
	if _, err := second.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the client sees %v, want a reset", err)
	}
	sendFrame(t, first, []byte("x"))
	readFrame(t, first)
}

func TestOnlySomeConnectionsAreHeld(t *testing.T) {
	clock, a := newClock(), &fixedArrivals{hold: time.Second}
	s, addr := start(t, Options{After: clock.after, Arrivals: a}, echo)
	s.mu.Lock()
	s.sockets = 10 * heldShare
	s.mu.Unlock()
	for range 10 {
		dial(t, addr)
	}
	waitFor(t, "all are accepted", func() bool { return len(clock.asked) == 10 })
	for range 20 {
		last, err := net.Dial("tcp", addr)
		if err != nil {
			continue // It was closed before we knew that it was open.
		}
		_ = last.SetDeadline(time.Now().Add(20 * time.Second))
		if _, err := last.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("one above the bound sees %v", err)
		}
		last.Close()
	}
	assert.Equal(t, len(clock.asked), 10, "held")
	for range 10 {
		clock.over <- time.Time{}
	}
	waitFor(t, "room for others", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.held == 0 })
	dial(t, addr)
	waitFor(t, "another is held", func() bool { return len(clock.asked) == 11 })
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s.Shutdown(ctx)
	assert.NoError(t, ctx.Err(), "shutdown waits for what is held")
}

// A connection that is held has a descriptor as one that is served has.
func TestConnectionsThatAreHeldTakeThePlaceOfOthers(t *testing.T) {
	clock, a := newClock(), &fixedArrivals{hold: time.Second}
	s, addr := start(t, Options{After: clock.after, Arrivals: a}, echo)
	s.mu.Lock()
	s.sockets = heldShare // One of them may be held.
	s.mu.Unlock()
	dial(t, addr)
	<-clock.asked
	a.free.Store(1000)
	served := func() {
		c := dial(t, addr)
		sendFrame(t, c, []byte("x"))
		readFrame(t, c)
	}
	for range heldShare - 1 {
		served()
	}
	wantClosed(t, dial(t, addr))
	clock.over <- time.Time{}
	waitFor(t, "the one that is held is closed", func() bool { s.mu.Lock(); defer s.mu.Unlock(); return s.held == 0 })
	served()
	assert.Equal(t, s.Connections(), heldShare, "connections")
}

func TestListenersWaitWhenConnectionsComeTooOften(t *testing.T) {
	clock, a := newClock(), &fixedArrivals{wait: time.Minute}
	a.free.Store(1000)
	s, addr := start(t, Options{After: clock.after, Arrivals: a}, echo)
	for i := range 3 {
		c := dial(t, addr)
		dial(t, addr) // It stays behind the one that waits.
		sendFrame(t, c, []byte("x"))
		assert.Equal(t, <-clock.asked, time.Minute, "waits for")
		if s.Connections() != 2*i || int(a.on.Load()) != 2*i+1 {
			t.Errorf("%d connections are served, %d counted", s.Connections(), a.on.Load())
		}
		clock.over <- time.Time{}
		readFrame(t, c)
		<-clock.asked
		clock.over <- time.Time{}
		waitFor(t, "the other is served", func() bool { return s.Connections() == 2*i+2 })
	}
	dial(t, addr)
	<-clock.asked
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s.Shutdown(ctx)
	assert.NoError(t, ctx.Err(), "shutdown waits for the listener")
}

func TestAddressesCanHaveLimitsOfTheirOwn(t *testing.T) {
	s, addr := start(t, Options{MaxPerHost: 1}, echo)
	s.SetOverrides(map[string]int{"127.0.0.1": 2, "10.0.0.1": 7})
	for range 2 {
		c := dial(t, addr)
		sendFrame(t, c, []byte("x"))
		readFrame(t, c)
	}
	wantClosed(t, dial(t, addr))
	s.SetOverrides(map[string]int{"10.0.0.1": 7})
	wantClosed(t, dial(t, addr))
	assert.Equal(t, s.Connections(), 2, "connections")
}
