package peer

import (
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// arrived is a request that a fake broker got. It is answered by answer.
type arrived struct {
	kmsg.Request
	answer func(kmsg.Response)
}

// fake is a broker that answers as the test says.
type fake struct {
	t        *testing.T
	listener net.Listener
	versions map[int16][2]int16
	requests chan arrived
	opened   atomic.Int32  // connections
	inOrder  bool          // answers of a connection wait for those before them, as a broker's do
	limit    int32         // of connections, if it is not zero
	pause    chan struct{} // if it is not nil, nothing is read after ApiVersions until it is closed
	closed   chan struct{}
	running  sync.WaitGroup

	mu    sync.Mutex
	conns []net.Conn
}

func newFake(t *testing.T, set ...func(*fake)) *fake {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	assert.Must(t, err)
	f := &fake{
		t: t, listener: l, requests: make(chan arrived, 1000), closed: make(chan struct{}, 100),
		versions: map[int16][2]int16{18: {0, 4}, 24: {0, 5}, 27: {1, 2}, 65: {0, 0}, 66: {0, 2}},
	}
	for _, s := range set {
		s(f)
	}
	f.running.Go(f.accept)
	t.Cleanup(f.stop)
	return f
}

func (f *fake) stop() {
	f.listener.Close()
	f.hangUp()
	f.running.Wait()
}

// hangUp closes all connections.
func (f *fake) hangUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

func (f *fake) accept() {
	for {
		c, err := f.listener.Accept()
		if err != nil {
			return
		}
		if n := f.opened.Add(1); f.limit > 0 && n > f.limit {
			c.Close()
			continue
		}
		f.mu.Lock()
		f.conns = append(f.conns, c)
		f.mu.Unlock()
		f.running.Go(func() { f.serve(c) })
	}
}

func (f *fake) serve(c net.Conn) {
	defer func() { f.closed <- struct{}{} }()
	var writing sync.Mutex
	before := make(chan struct{})
	close(before)
	for {
		var size [4]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(size[:]))
		if _, err := io.ReadFull(c, frame); err != nil {
			return
		}
		r, err := protocol.ParseHeader(frame)
		if err == nil {
			err = r.Open()
		}
		if err != nil {
			f.t.Error(err)
			return
		}
		req, err := r.Decode()
		if err != nil {
			f.t.Error(err)
			return
		}
		answer := func(resp kmsg.Response) {
			resp.SetVersion(req.GetVersion())
			writing.Lock()
			defer writing.Unlock()
			_, _ = c.Write(r.Encode(resp).Parts[0].Bytes)
		}
		if r.Key == protocol.KeyApiVersions {
			answer(f.apiVersions())
			if f.pause != nil {
				<-f.pause
			}
			continue
		}
		if f.inOrder {
			answer, before = after(before, answer)
		}
		f.requests <- arrived{req, answer}
	}
}

// after has an answer wait for another, and tells when it is written.
func after(before chan struct{}, answer func(kmsg.Response)) (func(kmsg.Response), chan struct{}) {
	done := make(chan struct{})
	return func(resp kmsg.Response) {
		go func() {
			<-before
			answer(resp)
			close(done)
		}()
	}, done
}

func (f *fake) apiVersions() kmsg.Response {
	resp := kmsg.NewPtrApiVersionsResponse()
	for key, v := range f.versions {
		resp.ApiKeys = append(resp.ApiKeys, kmsg.ApiVersionsResponseApiKey{ApiKey: key, MinVersion: v[0], MaxVersion: v[1]})
	}
	return resp
}

// broker describes the fake as broker 2.
func (f *fake) broker() metadata.Broker {
	at := f.listener.Addr().(*net.TCPAddr)
	return metadata.Broker{ID: 2, Endpoints: []metadata.Endpoint{{Listener: "L", Host: at.IP.String(), Port: int32(at.Port)}}}
}

// world is a client, which is broker 1, and what it knows.
type world struct {
	*Client
	t     *testing.T
	image atomic.Pointer[metadata.Image]
	own   func(context.Context, kmsg.Request) (kmsg.Response, error)
}

func newWorld(t *testing.T, brokers ...metadata.Broker) *world {
	t.Helper()
	w := &world{t: t}
	w.knows(brokers...)
	w.Client = New(Options{
		Self: 1, Image: w.image.Load, Listener: "L", Logger: slog.New(slog.DiscardHandler),
		Own: func(ctx context.Context, req kmsg.Request) (kmsg.Response, error) { return w.own(ctx, req) },
	})
	t.Cleanup(w.Close)
	return w
}

// knows has the client know brokers, the last of which coordinates all
// transactions.
func (w *world) knows(brokers ...metadata.Broker) {
	w.t.Helper()
	edit := metadata.NewImage(&config.Broker{}).Edit()
	for _, b := range brokers {
		edit.PutBroker(b)
		edit.PutTopic(metadata.Topic{Name: metadata.TransactionsTopic, Partitions: []metadata.Partition{{Leader: b.ID}}})
	}
	w.image.Store(edit.Image())
}

type outcome struct {
	resp kmsg.Response
	err  error
}

// send sends a request to broker 2 and returns where its outcome will be.
func (w *world) send(req kmsg.Request) chan outcome {
	out := make(chan outcome, 1)
	go func() {
		resp, err := w.Do(context.Background(), 2, req)
		out <- outcome{resp, err}
	}()
	return out
}

func described(id string) *kmsg.DescribeTransactionsRequest {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = []string{id}
	return req
}

// describe answers a request with the id that it names.
func describe(a arrived) {
	resp := kmsg.NewPtrDescribeTransactionsResponse()
	resp.TransactionStates = []kmsg.DescribeTransactionsResponseTransactionState{{TransactionalID: a.Request.(*kmsg.DescribeTransactionsRequest).TransactionalIDs[0]}}
	a.answer(resp)
}

func wantDescribed(t *testing.T, o outcome, id string) {
	t.Helper()
	assert.Must(t, o.err)
	assert.Equal(t, o.resp.(*kmsg.DescribeTransactionsResponse).TransactionStates[0].TransactionalID, id, "the answer is about")
}

const short = 20 * time.Millisecond
