package interop

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// relay stands between clients and a broker, and passes on what they say. It notes how
// members of the classic protocol join groups and ask for their assignments, and what
// they are answered: real clients do not tell.
type relay struct {
	t        testing.TB
	listener net.Listener
	broker   string // its address
	accepts  sync.WaitGroup
	passes   sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
	heard []*exchange // in the order of the requests
}

// exchange is a JoinGroup or SyncGroup request, and its answer.
type exchange struct {
	client, group string
	req           kmsg.Request
	resp          kmsg.Response // nil as long as it waits
}

// serveBehindRelay starts a broker that tells its clients to connect to a relay. On Redis
// its lease must not be lost: librdkafka sends several commits, and those that a
// coordinator refused which was away again after later ones.
func serveBehindRelay(t testing.TB, flags ...string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	r := &relay{t: t, listener: l}
	t.Cleanup(r.close)
	flags = append([]string{"--set", "advertised.listeners=PLAINTEXT://" + r.addr()}, flags...)
	r.broker = serve(t, t.TempDir(), flags...).addr()
	r.accepts.Go(r.accept)
	return r
}

func (r *relay) addr() string { return r.listener.Addr().String() }

func (r *relay) close() {
	_ = r.listener.Close()
	r.accepts.Wait()
	r.mu.Lock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.passes.Wait()
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		broker, err := net.DialTimeout("tcp", r.broker, wireTimeout)
		if err != nil {
			_ = client.Close() // The broker is gone: the test is over.
			continue
		}
		r.mu.Lock()
		r.conns = append(r.conns, client, broker)
		r.mu.Unlock()
		c := relayed{r, map[int32]*exchange{}}
		r.passes.Go(func() { pass(client, broker, c.asks) })
		r.passes.Go(func() { pass(broker, client, c.answers) })
	}
}

// pass passes on frames, each of which is heard before it goes on, until one side is
// gone.
func pass(from, to net.Conn, hear func(frame []byte)) {
	defer from.Close()
	defer to.Close()
	var size [4]byte
	for {
		if _, err := io.ReadFull(from, size[:]); err != nil {
			return
		}
		frame := make([]byte, 4+binary.BigEndian.Uint32(size[:]))
		copy(frame, size[:])
		if _, err := io.ReadFull(from, frame[4:]); err != nil {
			return
		}
		hear(frame[4:])
		if _, err := to.Write(frame); err != nil {
			return
		}
	}
}

// relayed is one connection.
type relayed struct {
	*relay
	pending map[int32]*exchange // by correlation id
}

// asks hears a request.
func (c relayed) asks(frame []byte) {
	const fixed = 2 + 2 + 4 + 2 // API key, version, correlation id, and how long the client id is
	if len(frame) < fixed {
		return
	}
	key, version := int16(binary.BigEndian.Uint16(frame)), int16(binary.BigEndian.Uint16(frame[2:]))
	id, rest := int32(binary.BigEndian.Uint32(frame[4:])), frame[fixed:]
	n := max(0, int(int16(binary.BigEndian.Uint16(frame[8:]))))
	if key != kmsg.JoinGroup.Int16() && key != kmsg.SyncGroup.Int16() || len(rest) <= n {
		return
	}
	e, body := &exchange{client: string(rest[:n]), req: kmsg.RequestForKey(key)}, rest[n:]
	e.req.SetVersion(version)
	if e.req.IsFlexible() {
		body = body[1:] // No client has tags in the header.
	}
	if err := e.req.ReadFrom(body); err != nil {
		c.t.Errorf("%s of %s: %v", kmsg.NameForKey(key), e.client, err)
		return
	}
	switch req := e.req.(type) {
	case *kmsg.JoinGroupRequest:
		e.group = req.Group
	case *kmsg.SyncGroupRequest:
		e.group = req.Group
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard, c.pending[id] = append(c.heard, e), e
}

// answers hears an answer.
func (c relayed) answers(frame []byte) {
	if len(frame) < 4 {
		return
	}
	id := int32(binary.BigEndian.Uint32(frame))
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.pending[id]
	if e == nil {
		return
	}
	delete(c.pending, id)
	resp := e.req.ResponseKind()
	body, err := openResponse(frame, id, resp)
	if err == nil {
		err = resp.ReadFrom(body)
	}
	if err != nil {
		c.t.Errorf("the answer to %s: %v", e, err)
		return
	}
	e.resp = resp
}

// of returns what a client has asked of a group so far, and what it was answered.
func (r *relay) of(group, client string) (out []exchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.heard {
		if e.group == group && e.client == client {
			out = append(out, *e)
		}
	}
	return out
}

func (e exchange) String() string {
	what := fmt.Sprintf("%s of %s", kmsg.NameForKey(e.req.Key()), e.client)
	switch resp := e.resp.(type) {
	case *kmsg.JoinGroupResponse:
		return fmt.Sprintf("%s: error code %d, generation %d, leader %q, %d members", what, resp.ErrorCode, resp.Generation, resp.LeaderID, len(resp.Members))
	case *kmsg.SyncGroupResponse:
		return fmt.Sprintf("%s: error code %d", what, resp.ErrorCode)
	}
	return what + ": no answer"
}
