package peer

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxAnswer is the largest answer that is read. No one answers a broker with
// more, and a length may be anything if it is not a broker that answers.
const maxAnswer = 64 << 20

var (
	errMoved  = errors.New("the broker has moved")
	errSilent = errors.New("the broker does not answer")
	errIdle   = errors.New("the connection is idle")
	// errStranger says that the other has another secret, as it may while the store
	// that keeps it is put back. Clients must not be told, who would give up.
	errStranger = errors.New("the broker takes us for a stranger to its cluster")
	// errImpostor says that what listens at a broker's address is none of the cluster.
	errImpostor = errors.New("what listens there does not know the secret of the cluster")
)

// conn is a connection to a broker. Answers come in any order.
type conn struct {
	opts     *Options
	to       address
	login    Login
	socket   net.Conn
	format   *kmsg.RequestFormatter
	versions map[int16][2]int16 // least and highest of each API key

	users   atomic.Int32  // requests that are under way on it, or about to be
	writing chan struct{} // held while a request is written

	mu      sync.Mutex
	last    int32 // correlation id
	pending map[int32]chan answer
	err     error // why it has ended, nil as long as it has not
}

// answer is the body of an answer with its header, or why there is none.
type answer struct {
	body []byte
	err  error
}

// newConn returns a connection for requests of a key, which knows which versions the broker serves.
func newConn(ctx context.Context, socket net.Conn, to address, key int16, login Login, opts *Options) (*conn, error) {
	c := &conn{opts: opts, to: to, login: login, socket: socket, format: kmsg.NewRequestFormatter(kmsg.FormatterClientID("muster-peer")), pending: map[int32]chan answer{}, writing: make(chan struct{}, 1)}
	go c.read()
	if err := c.learnVersions(ctx); err != nil {
		c.end(err)
		return nil, err
	}
	if login == (Login{}) {
		return c, nil
	}
	if err := c.logIn(ctx); err != nil {
		c.end(err)
		return nil, fmt.Errorf("log in: %w", err)
	}
	if _, ok := c.versions[key]; !ok { // Brokers are told more than others.
		if err := c.learnVersions(ctx); err != nil {
			c.end(err)
			return nil, err
		}
	}
	return c, nil
}

// learnVersions asks which versions the broker serves.
func (c *conn) learnVersions(ctx context.Context) error {
	resp, err := c.roundTrip(ctx, kmsg.NewPtrApiVersionsRequest())
	if err != nil {
		return err
	}
	served := resp.(*kmsg.ApiVersionsResponse)
	if err := kerr.ErrorForCode(served.ErrorCode); err != nil {
		return err
	}
	c.versions = map[int16][2]int16{}
	for _, k := range served.ApiKeys {
		c.versions[k.ApiKey] = [2]int16{k.MinVersion, k.MaxVersion}
	}
	return nil
}

// do sends a request in a version that the broker serves.
func (c *conn) do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	v, ok := c.versions[req.Key()]
	if !ok || req.GetVersion() < v[0] {
		return nil, fmt.Errorf("it does not serve version %d", req.GetVersion())
	}
	out, err := prepare(req, min(req.GetVersion(), v[1]))
	if err != nil {
		return nil, err
	}
	resp, err := c.roundTrip(ctx, out)
	if a, ok := resp.(*kmsg.AddPartitionsToTxnResponse); ok && a.ErrorCode == kerr.ClusterAuthorizationFailed.Code {
		return nil, errStranger
	}
	return resp, err
}

func (c *conn) roundTrip(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	id, reply, err := c.begin()
	if err != nil {
		return nil, err
	}
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		return nil, c.giveUp(ctx, id)
	}
	err = c.write(ctx, req, id)
	<-c.writing
	if err != nil {
		c.end(err) // Who knows how much of it is written.
		if ctx.Err() != nil {
			err = c.giveUp(ctx, id)
		}
		return nil, err
	}
	select {
	case a := <-reply:
		if a.err != nil {
			return nil, a.err
		}
		return decode(req, a.body)
	case <-ctx.Done():
		return nil, c.giveUp(ctx, id)
	}
}

// giveUp ends a request whose time is over, or that no one wants any more.
func (c *conn) giveUp(ctx context.Context, id int32) error {
	c.forget(id)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		// The broker may be stopped, or gone without a word. What follows would
		// wait behind this one.
		c.end(errSilent)
		return errSilent
	}
	return ctx.Err()
}

// begin makes room for an answer.
func (c *conn) begin() (id int32, reply chan answer, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, nil, c.err
	}
	c.last++
	reply = make(chan answer, 1)
	c.pending[c.last] = reply
	return c.last, reply, nil
}

func (c *conn) forget(id int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.pending, id)
}

// write writes a request, within the time that it has. Its caller holds writing.
func (c *conn) write(ctx context.Context, req kmsg.Request, id int32) error {
	frame := c.format.AppendRequest(nil, req, id)
	now := time.Now()
	// One who has nothing to read from the broker until then has sent nothing.
	if err := c.socket.SetReadDeadline(now.Add(c.opts.Idle)); err != nil {
		return err
	}
	if err := c.socket.SetWriteDeadline(now.Add(c.opts.Timeout)); err != nil {
		return err
	}
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(late)
		_ = c.socket.SetWriteDeadline(now)
	})
	_, err := c.socket.Write(frame)
	if !stop() {
		<-late // Or it would cut short whoever writes next.
	}
	return err
}

// read passes answers on until the connection ends.
func (c *conn) read() {
	in := bufio.NewReader(c.socket)
	for {
		var head [8]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			c.end(ended(err))
			return
		}
		size := int32(binary.BigEndian.Uint32(head[:]))
		if size < 4 || size > maxAnswer {
			c.end(fmt.Errorf("an answer of %d bytes", size))
			return
		}
		body := make([]byte, size-4)
		if _, err := io.ReadFull(in, body); err != nil {
			c.end(ended(err))
			return
		}
		c.deliver(int32(binary.BigEndian.Uint32(head[4:])), body)
	}
}

// ended says why nothing more can be read.
func ended(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return errIdle
	}
	return err
}

func (c *conn) deliver(id int32, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if reply := c.pending[id]; reply != nil {
		delete(c.pending, id)
		reply <- answer{body: body}
	}
}

func (c *conn) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

// end closes the connection and tells everyone who waits for an answer.
func (c *conn) end(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = why
	_ = c.socket.Close()
	for id, reply := range c.pending {
		delete(c.pending, id)
		reply <- answer{err: why}
	}
}

// decode reads the answer to a request.
func decode(req kmsg.Request, body []byte) (kmsg.Response, error) {
	resp := req.ResponseKind()
	if resp.IsFlexible() && req.Key() != kmsg.ApiVersions.Int16() {
		if len(body) == 0 || body[0] != 0 {
			return nil, errors.New("a response with an unknown header")
		}
		body = body[1:]
	}
	return resp, resp.ReadFrom(body)
}
