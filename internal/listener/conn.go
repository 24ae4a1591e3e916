package listener

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/protocol"
)

// maxPending is how many responses of one connection may be outstanding before
// its next request is read.
const maxPending = 256

// maxPendingBytes is how many bytes of them may lie in memory before that. A
// client that does not read keeps them there.
const maxPendingBytes = 1 << 20

// conn is one connection.
type conn struct {
	server *Server
	client Client
	gate   Gate // nil where no one says who they are
	tcp    *net.TCPConn
	net    net.Conn // tcp, or TLS on top of it
	in     input
	idle   atomic.Bool   // waiting for a frame to begin
	gone   atomic.Bool   // the client hung up while its request waited
	told   atomic.Bool   // an answer that counts has been written
	frame  frame         // of the request that is being handled
	mute   time.Duration // for how long not to read on after it

	unread  unread    // its part in the server's answers
	arrival arrival   // of the frame that is being read
	largest int       // frame that was read
	now     time.Time // when the last answer was written, if this goroutine did
	reading deadline  // of the goroutine that serves
	sending deadline  // of the goroutine that writes

	mu      sync.Mutex
	queue   []queued  // not yet written, in order
	bytes   int       // of the queue, as far as they lie in memory
	room    sync.Cond // the queue got shorter, or ended
	writing bool      // a goroutine writes the queue
	broken  bool      // a write failed
}

// queued is a response in the queue, and how much of it is in memory.
type queued struct {
	*protocol.Response
	bytes  int
	asked  asked
	counts bool // not only the broker's versions
}

// serve reads and handles frames until the connection ends.
func (c *conn) serve() {
	c.room.L = &c.mu
	c.in.init(c.net, c.tcp)
	c.arrival.giveWay = func() { _ = c.tcp.SetReadDeadline(time.Unix(1, 0)) }
	defer c.tellEnd()
	defer c.tcp.Close()
	if err := c.enter(); err != nil {
		c.logEnd(err)
		return
	}
	away := false
	for {
		var err error
		if c.frame, err = c.readFrame(); err != nil {
			c.logEnd(err)
			break
		}
		counts, asked := !asksVersions(c.frame.bytes), c.begin(c.frame.bytes)
		resp, err := c.handle()
		c.frame.release()
		if c.gone.Load() && err == nil {
			if resp != nil {
				abandon(resp)
			}
			break
		}
		if err != nil {
			away = errors.Is(err, protocol.ErrAway)
			if !c.server.draining.Load() {
				c.server.refused.warn("connection closed", "host", c.client.Host, "reason", err)
			}
			break
		}
		if resp == nil {
			c.answered(asked)
		} else if !c.send(resp, asked, counts) {
			break
		}
		if resp != nil && c.ends(resp) {
			c.finish()
			c.linger()
			return
		}
		if resp == nil && counts {
			c.told.Store(true) // A request without an answer has been taken.
		}
		if c.mute > 0 && !c.stayMute() {
			break
		}
	}
	c.finish()
	if away || c.server.draining.Load() {
		c.resetIfNew()
	}
}

func (c *conn) resetIfNew() {
	if !c.told.Load() {
		resetOnClose(c.tcp)
	}
}

// errPanic ends a connection whose request met a defect of ours.
var errPanic = errors.New("the broker has a defect: see the log for where")

// handle has the request handled. A panic ends this connection, and no other.
func (c *conn) handle() (resp *protocol.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			c.server.opts.Logger.Error("a request made the broker panic; its connection is closed", "host", c.client.Host, "listener", c.client.Listener,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			if told := c.server.opts.Panicked; told != nil {
				told()
			}
			resp, err = nil, errPanic
		}
	}()
	return c.server.opts.Handler.Handle(c.server.ctx, &c.client, c.frame.bytes)
}

// resetOnClose has a connection end with a reset. Clients that see the end of a
// connection before any answer (franz-go) take it for a broker that wants them to log
// in, and give up what they wanted to send; after a reset they try again. That the
// broker told its versions does not count as an answer for them.
func resetOnClose(c *net.TCPConn) { _ = c.SetLinger(0) }

// asksVersions says whether a request is an ApiVersions request.
func asksVersions(request []byte) bool {
	return len(request) >= 2 && binary.BigEndian.Uint16(request) == uint16(kmsg.ApiVersions)
}

// errDraining ends a connection because the server shuts down.
var errDraining = errors.New("broker is shutting down")

// readFrame reads one frame. The first bytes may take as long as a connection
// may be idle, the rest must follow promptly.
func (c *conn) readFrame() (frame, error) {
	var head [4]byte
	c.idle.Store(true)
	c.setReadDeadline(c.mayRest(), c.clock())
	if c.server.draining.Load() {
		return frame{}, errDraining
	}
	_, err := io.ReadFull(&c.in, head[:])
	c.idle.Store(false)
	if err != nil {
		return frame{}, err
	}
	n := int32(binary.BigEndian.Uint32(head[:]))
	if limit := c.limit(); n < 0 || int(n) > limit {
		return frame{}, badLength(head, limit)
	}
	if c.in.Buffered() < int(n) {
		c.setReadDeadline(c.server.rest, time.Now())
	}
	f, err := c.memory().read(&c.in, int(n), c.largest, c.arriving())
	if err != nil && c.arrival.cut {
		err = errGaveWay
	}
	if err == nil {
		c.largest = max(c.largest, int(n))
	}
	return f, err
}

// errGaveWay ends a connection for the sake of others.
var errGaveWay = errors.New("its request was half sent for long, and others wait for the memory")

// arriving begins to count a frame.
func (c *conn) arriving() *arrival {
	c.arrival = arrival{owner: c.client.Host, giveWay: c.arrival.giveWay}
	if c.client.Session != nil {
		if name := c.client.Session.User(); name != "" {
			c.arrival.owner = name
		}
	}
	return &c.arrival
}

// deadline is a deadline as it was last set; zero is none.
type deadline struct{ at time.Time }

// extend makes the deadline d from now or up to a sixteenth later, none if d is not
// positive, and says whether it changed. One that is still far enough away is left
// alone, since setting it has a cost.
func (l *deadline) extend(d time.Duration, now time.Time) bool {
	if d <= 0 {
		changed := !l.at.IsZero()
		l.at = time.Time{}
		return changed
	}
	latest := d + d/16
	if left := l.at.Sub(now); left >= d && left <= latest {
		return false
	}
	l.at = now.Add(latest)
	return true
}

// clock returns the time, which may be known from the answer just written.
func (c *conn) clock() time.Time {
	now := c.now
	if c.now = (time.Time{}); now.IsZero() {
		return time.Now()
	}
	return now
}

func (c *conn) setReadDeadline(d time.Duration, now time.Time) {
	if c.reading.extend(d, now) {
		_ = c.net.SetReadDeadline(c.reading.at)
	}
}

func (c *conn) setWriteDeadline() {
	if c.sending.extend(c.server.opts.IdleTimeout, time.Now()) {
		_ = c.net.SetWriteDeadline(c.sending.at)
	}
}

// interruptIdle wakes the connection if it waits for a frame to begin.
func (c *conn) interruptIdle() {
	if c.idle.Load() {
		_ = c.tcp.SetReadDeadline(time.Unix(1, 0))
	}
}

// badLength explains an impossible frame length, which often is another
// protocol's greeting.
func badLength(head [4]byte, limit int) error {
	n := int32(binary.BigEndian.Uint32(head[:]))
	switch {
	case head[0] == 0x16 && head[1] == 3:
		return fmt.Errorf("the client speaks TLS, but this listener does not")
	case string(head[:]) == "GET " || string(head[:]) == "POST":
		return fmt.Errorf("the client speaks HTTP, but this is a Kafka listener")
	}
	return fmt.Errorf("request of %d bytes; %d are read at most (socket.request.max.bytes and, before a login, sasl.server.max.receive.size)", n, limit)
}

// logEnd logs why a connection ended, unless that is normal.
func (c *conn) logEnd(err error) {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, errDraining), errors.Is(err, net.ErrClosed), errors.Is(err, os.ErrDeadlineExceeded):
		return
	}
	var netErr *net.OpError
	if errors.As(err, &netErr) {
		return
	}
	c.server.refused.warn("connection closed", "host", c.client.Host, "listener", c.client.Listener, "reason", err)
}

// send writes a response after all that came before it; false says that the
// connection is no use any more.
func (c *conn) send(resp *protocol.Response, a asked, counts bool) bool {
	q := queued{resp, resp.Memory(), a, counts}
	c.count(q.bytes)
	c.mu.Lock()
	for (len(c.queue) >= maxPending || c.bytes >= maxPendingBytes) && !c.broken {
		c.room.Wait()
	}
	if c.broken {
		c.mu.Unlock()
		c.uncount(q.bytes)
		abandon(resp)
		return false
	}
	if !c.writing && !resp.Pending() {
		c.mu.Unlock()
		err := c.write(q)
		c.now = c.answered(q.asked)
		return err == nil
	}
	c.queue = append(c.queue, q)
	c.bytes += q.bytes
	start := !c.writing
	c.writing = true
	c.mu.Unlock()
	if start {
		go c.writeQueue()
	}
	return true
}

// writeQueue writes responses as they become ready, until the queue is empty.
func (c *conn) writeQueue() {
	c.mu.Lock()
	for len(c.queue) > 0 {
		resp := c.queue[0]
		broken := c.broken
		c.mu.Unlock()
		if resp.Pending() {
			<-resp.Ready()
		}
		var err error
		if broken {
			c.release(resp)
		} else {
			err = c.write(resp)
			c.answered(resp.asked)
		}
		c.mu.Lock()
		c.queue = c.queue[1:]
		c.bytes -= resp.bytes
		if err != nil {
			c.broken = true
			c.tcp.Close() // The reader notices.
		}
		c.room.Signal()
	}
	c.queue = nil
	c.writing = false
	c.room.Signal()
	c.mu.Unlock()
}

// count counts an answer among those of all connections, and cuts off those whose
// answers have lain for too long if there are too many.
func (c *conn) count(bytes int) {
	if bytes <= freeFrame {
		return
	}
	for _, slow := range c.server.answers.add(&c.unread, bytes, time.Now()) {
		c.server.refused.warn("connection closed: too many answers are unread", "host", slow.client.Host, "listener", slow.client.Listener)
		slow.tcp.Close()
	}
}

func (c *conn) uncount(bytes int) {
	if bytes > freeFrame {
		c.server.answers.remove(&c.unread, bytes, time.Now())
	}
}

// release gives up a response that was counted.
func (c *conn) release(resp queued) {
	resp.Release()
	c.uncount(resp.bytes)
}

// finish waits until what is outstanding has been written.
func (c *conn) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.writing {
		c.room.Wait()
	}
}

// abandon releases a response that will not be written.
func abandon(resp *protocol.Response) {
	if resp.Pending() {
		go func() {
			<-resp.Ready()
			resp.Release()
		}()
		return
	}
	resp.Release()
}
