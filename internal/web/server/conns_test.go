package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"muster/internal/assert"
)

// crowd is connections of a test, which come from addresses that it names.
type crowd struct {
	t *testing.T
	*conns
}

// someone is a connection, with its other end.
type someone struct {
	net.Conn
	crowd *crowd
	addr  string
	end   net.Conn
	ctx   context.Context
}

func (s *someone) RemoteAddr() net.Addr { return fakeAddr(s.addr) }

type fakeAddr string

func (fakeAddr) Network() string  { return "tcp" }
func (a fakeAddr) String() string { return string(a) }

// comes opens a connection.
func (c *crowd) comes(addr string) *someone {
	here, there := net.Pipe()
	s := &someone{Conn: here, crowd: c, addr: addr + ":4711", end: there}
	c.t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	s.ctx = c.opened(c.t.Context(), s)
	return s
}

func (s *someone) isClosed() bool {
	_ = s.end.SetReadDeadline(time.Now().Add(-time.Second))
	_, err := s.end.Read(make([]byte, 1))
	return err == io.EOF
}

// asks sends a request, which is served while the test does something. It returns the code
// of the answer.
func (s *someone) asks(path string, during func(r *http.Request)) int {
	s.crowd.changed(s, http.StateActive)
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(s.ctx, http.MethodPost, "http://localhost"+path, http.NoBody)
	s.crowd.handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { during(r) })).ServeHTTP(w, r)
	return w.Code
}

// serves has requests of several connections be served at a time, and does something then.
func serves(all []*someone, path string, then func()) {
	if len(all) == 0 {
		then()
		return
	}
	assert.Equal(all[0].crowd.t, all[0].asks(path, func(*http.Request) { serves(all[1:], path, then) }), http.StatusOK, "one of those that are served gets")
}

func TestConnectionsThatAreAnsweredStay(t *testing.T) {
	c := &crowd{t, newConns(2)}
	one, two := c.comes("10.0.0.1"), c.comes("10.0.0.1")
	serves([]*someone{one, two}, "/", func() {
		third := c.comes("10.0.0.2")
		assert.True(t, !one.isClosed() && !two.isClosed() && third.isClosed(), "the new one should have gone")
	})
	c.changed(two, http.StateIdle)
	c.changed(one, http.StateIdle)
	if c.comes("10.0.0.2"); one.isClosed() || !two.isClosed() {
		t.Error("the one that was idle for longest should have gone")
	}
	c.changed(two, http.StateClosed)
	c.changed(one, http.StateClosed)
	if len(c.all) != 1 || c.waiting.Len() != 1 || len(c.of) != 1 || c.others.all != 0 || len(c.others.of) != 0 {
		t.Errorf("%d connections are left, %d of them waiting, %d addresses, %d served", len(c.all), c.waiting.Len(), len(c.of), c.others.all)
	}
}

func TestTheAddressWithTheMostConnectionsLosesOne(t *testing.T) {
	c := &crowd{t, newConns(4)}
	quiet := c.comes("10.0.0.1")
	first, second := c.comes("10.0.0.2"), c.comes("10.0.0.2")
	v6, sameNet := c.comes("[2001:db8::1]"), c.comes("[2001:db8::2]")
	if quiet.isClosed() || !first.isClosed() || second.isClosed() || v6.isClosed() || sameNet.isClosed() {
		t.Error("the oldest of one of the addresses with two should have gone")
	}
	if c.comes("10.0.0.3"); !v6.isClosed() || quiet.isClosed() || second.isClosed() || sameNet.isClosed() {
		t.Error("two addresses of one IPv6 network should count as one")
	}
}

func TestAConnectionThatBeginsARequestIsNotTheLongestSilent(t *testing.T) {
	c := &crowd{t, newConns(2)}
	first, second := c.comes("10.0.0.1"), c.comes("10.0.0.1")
	c.changed(first, http.StateActive)
	if c.comes("10.0.0.1"); first.isClosed() || !second.isClosed() {
		t.Error("the silent one should have gone")
	}
}

// Whatever the broker waits for may go: the headers, the body, what is left of it, and who
// does not read an answer.
func TestASlowConnectionGoes(t *testing.T) {
	gone := func(c *crowd, slow *someone) {
		t.Helper()
		if c.comes("10.0.0.2"); !slow.isClosed() {
			t.Error("the slow one should have gone")
		}
	}
	c := &crowd{t, newConns(1)}
	slow := c.comes("10.0.0.1")
	c.changed(slow, http.StateActive)
	gone(c, slow)

	c = &crowd{t, newConns(1)}
	slow = c.comes("10.0.0.1")
	slow.asks("/", func(r *http.Request) {
		body := &timedBody{&during{func() { gone(c, slow) }}, http.NewResponseController(httptest.NewRecorder()), heldOf(r)}
		_, _ = body.Read(nil)
	})
	assert.Equal(t, c.others.all, 0, "requests are left")

	c = &crowd{t, newConns(1)}
	slow = c.comes("10.0.0.1")
	slow.asks("/", func(r *http.Request) {
		w := paced(&recorder{header: http.Header{}, pause: func() { gone(c, slow) }}, heldOf(r))
		_, _ = w.Write([]byte("x"))
	})

	c = &crowd{t, newConns(1)}
	slow = c.comes("10.0.0.1")
	slow.asks("/", func(*http.Request) {})
	gone(c, slow)

	c = &crowd{t, newConns(1)}
	fast := c.comes("10.0.0.1")
	fast.asks("/", func(r *http.Request) {
		body := &timedBody{&during{func() {}}, http.NewResponseController(httptest.NewRecorder()), heldOf(r)}
		_, _ = body.Read(nil)
		if c.comes("10.0.0.2"); fast.isClosed() {
			t.Error("one whose body has come should have stayed")
		}
	})
}

// during is a body that does something while it is read.
type during struct{ do func() }

func (d *during) Read([]byte) (int, error) { d.do(); return 0, io.EOF }
func (*during) Close() error               { return nil }

// No address has more than its share of the requests, and health and metrics have their own.
func TestRequestsAreSharedAmongAddresses(t *testing.T) {
	c := &crowd{t, newConns(maxConns)}
	var all []*someone
	for i := range MaxServed {
		all = append(all, c.comes(fmt.Sprint("10.0.0.", i/maxOwnServed)))
	}
	code := func(addr, path string) int { return c.comes(addr).asks(path, func(*http.Request) {}) }
	serves(all[:maxOwnServed], "/", func() {
		if busy, other := code("10.0.0.0", "/"), code("10.0.0.9", "/"); busy != http.StatusServiceUnavailable || other != http.StatusOK {
			t.Errorf("one more of the address gets %d, another address %d", busy, other)
		}
		serves(all[maxOwnServed:], "/", func() {
			assert.Equal(t, code("10.0.0.9", "/"), http.StatusServiceUnavailable, "one more than all gets")
			for _, path := range []string{HealthPath, MetricsPath} {
				assert.Equal(t, code("10.0.0.0", path), http.StatusOK, "%s gets", path)
			}
		})
	})
	for path, own := range map[string]int{HealthPath: maxOwnHealth, MetricsPath: maxOwnMetrics} {
		c := &crowd{t, newConns(maxConns)}
		var all []*someone
		for range own {
			all = append(all, c.comes("10.0.0.1"))
		}
		serves(all, path, func() {
			if one, other := c.comes("10.0.0.1").asks(path, func(*http.Request) {}), c.comes("10.0.0.2").asks(path, func(*http.Request) {}); one != http.StatusServiceUnavailable || other != http.StatusOK {
				t.Errorf("%s: one more of the address gets %d, another address %d", path, one, other)
			}
		})
	}
}

// A request takes the place of a slow one, which is of its own address if that has its share.
func TestARequestTakesThePlaceOfASlowOne(t *testing.T) {
	c := &crowd{t, newConns(maxConns)}
	other, slow := c.comes("10.0.0.2"), c.comes("10.0.0.1")
	var all []*someone
	for range maxOwnServed - 1 {
		all = append(all, c.comes("10.0.0.1"))
	}
	for range maxOwnServed + 5 {
		c.comes("10.0.0.2") // It has more connections, and not its share of requests.
	}
	stalls := func(s *someone, then func()) {
		s.asks("/", func(r *http.Request) {
			_, _ = heldOf(r).await(func() (int, error) { then(); return 0, nil })
		})
	}
	stalls(other, func() {
		stalls(slow, func() {
			serves(all, "/", func() {
				assert.Equal(t, c.comes("10.0.0.1").asks("/", func(*http.Request) {}), http.StatusOK, "one more gets")
				assert.True(t, slow.isClosed() && !other.isClosed(), "the slow one of the same address should have gone")
			})
		})
	})
	assert.True(t, c.others.all == 0 && len(c.others.of) == 0, "%d requests are left, of %v", c.others.all, c.others.of)
}

// A connection that was closed while its request came is not served: no place would be counted for it.
func TestARequestOfAConnectionThatHasGoneIsNotServed(t *testing.T) {
	c := &crowd{t, newConns(1)}
	gone := c.comes("10.0.0.1")
	c.comes("10.0.0.2")
	assert.MustTrue(t, gone.isClosed(), "the first one should have gone")
	code := gone.asks("/", func(*http.Request) { t.Error("it is served") })
	assert.Equal(t, code, http.StatusServiceUnavailable, "it gets")
	assert.True(t, c.others.all == 0 && len(c.others.of) == 0, "%d requests are left, of %v", c.others.all, c.others.of)
}

// The classes leave connections for whoever comes next.
func TestNotAllConnectionsCanBeServedAtOnce(t *testing.T) {
	assert.True(t, MaxServed+maxHealth+maxMetrics < maxConns, "if all are served there is none left to be closed")
}
