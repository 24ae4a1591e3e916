package peer

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/machine"
	"muster/internal/metadata"
)

func TestRequestsShareSomeConnectionsAndAnswersComeInAnyOrder(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	var outcomes []chan outcome
	var requests []arrived
	for i := range 50 {
		outcomes = append(outcomes, w.send(described(fmt.Sprint(i))))
	}
	for range 50 {
		requests = append(requests, <-f.requests) // All of them, before any is answered.
	}
	for i := len(requests) - 1; i >= 0; i-- {
		describe(requests[i])
	}
	for i, o := range outcomes {
		wantDescribed(t, <-o, fmt.Sprint(i))
	}
	assert.Equal(t, f.opened.Load(), maxConns, "connections")
}

// A broker answers the requests of a connection in their order. One of them may be
// parked, or wait for a disk.
func TestASlowRequestHoldsUpNoOther(t *testing.T) {
	f := newFake(t, func(f *fake) { f.inOrder = true })
	w := newWorld(t, f.broker())
	var slow []arrived
	var outcomes []chan outcome
	for i := range maxConns - 1 {
		outcomes = append(outcomes, w.send(described(fmt.Sprint("slow ", i))))
		slow = append(slow, <-f.requests)
	}
	for i := range 100 {
		out := w.send(described(fmt.Sprint(i)))
		describe(<-f.requests)
		wantDescribed(t, <-out, fmt.Sprint(i))
	}
	for i, a := range slow {
		describe(a)
		wantDescribed(t, <-outcomes[i], fmt.Sprint("slow ", i))
	}
	for range 100 {
		out := w.send(described("x"))
		describe(<-f.requests)
		wantDescribed(t, <-out, "x")
	}
	assert.Equal(t, f.opened.Load(), maxConns, "connections")
}

// The other may allow no more connections from here (max.connections.per.ip).
func TestWhereNoMoreConnectionsAreAllowedThoseThatThereAreMustDo(t *testing.T) {
	f := newFake(t, func(f *fake) { f.limit = 2 })
	w := newWorld(t, f.broker())
	var outcomes []chan outcome
	var open []arrived
	for i := range 10 {
		outcomes = append(outcomes, w.send(described(fmt.Sprint(i))))
		open = append(open, <-f.requests)
	}
	for i, a := range open {
		describe(a)
		wantDescribed(t, <-outcomes[i], fmt.Sprint(i))
	}
}

// largest is a request that no socket takes if no one reads from it.
func largest() *kmsg.DescribeTransactionsRequest {
	req := described("")
	for range 1500 {
		req.TransactionalIDs = append(req.TransactionalIDs, strings.Repeat("x", 16<<10))
	}
	return req
}

func TestARequestIsWrittenWithinItsTime(t *testing.T) {
	reads := make(chan struct{})
	f := newFake(t, func(f *fake) { f.pause = reads })
	defer close(reads)
	w := newWorld(t, f.broker())
	w.opts.Timeout = time.Hour // So that it is the caller who ends it.
	ctx, cancel := context.WithCancel(t.Context())
	out := make(chan error, 1)
	go func() {
		_, err := w.Do(ctx, 2, largest())
		out <- err
	}()
	link, err := w.link(lane{2, 65})
	assert.Must(t, err)
	conn := link.writer(t)
	if _, err := conn.roundTrip(canceled(t), described("behind it")); !errors.Is(err, context.Canceled) || conn.ended() {
		t.Errorf("what waits behind it: %v", err)
	}
	cancel()
	assert.ErrorIs(t, <-out, context.Canceled, "what is being written")
	assert.True(t, conn.ended(), "half a request is written, and the connection goes on")
}

// writer returns the connection to which someone writes.
func (l *link) writer(t *testing.T) *conn {
	t.Helper()
	for t.Context().Err() == nil {
		l.turn <- struct{}{}
		conns := slices.Clone(l.conns)
		<-l.turn
		for _, c := range conns {
			if len(c.writing) > 0 {
				return c
			}
		}
		runtime.Gosched()
	}
	return nil
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestMarkersDoNotShareAConnectionWithQuestions(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	a, b := w.send(described("x")), w.send(&kmsg.WriteTxnMarkersRequest{Version: 1})
	for range 2 {
		r := <-f.requests
		r.answer(r.ResponseKind())
	}
	<-a
	<-b
	assert.Equal(t, f.opened.Load(), 2, "connections")
}

func TestNoMoreRequestsAreUnderWayThanTheOtherIsToBear(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	var outcomes []chan outcome
	for i := range 2 * maxInFlight {
		outcomes = append(outcomes, w.send(described(fmt.Sprint(i))))
	}
	var open []arrived
	for range maxInFlight {
		open = append(open, <-f.requests)
	}
	for range maxInFlight {
		assert.MustTrue(t, len(f.requests) == 0, "more are under way")
		describe(open[0])
		open = append(open[1:], <-f.requests)
	}
	for _, a := range open {
		describe(a)
	}
	for i, o := range outcomes {
		wantDescribed(t, <-o, fmt.Sprint(i))
	}
}

func TestARequestIsSentInAVersionThatTheOtherServes(t *testing.T) {
	f := newFake(t)
	f.versions[27] = [2]int16{1, 1}
	w := newWorld(t, f.broker())
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version = 2
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.TransactionVersion = 7, 2
	machine.TxnStart(1234).Set(&m.UnknownTags)
	req.Markers = append(req.Markers, m)
	out := w.send(req)
	a := <-f.requests
	got := a.Request.(*kmsg.WriteTxnMarkersRequest)
	assert.True(t, got.Version == 1 && got.UnknownTags.Len() == 0 && machine.TxnStartOf(&got.Markers[0].UnknownTags) == 1234, "sent %+v", got)
	a.answer(got.ResponseKind())
	if o := <-out; o.err != nil || o.resp.GetVersion() != 1 {
		t.Errorf("%+v", o)
	}
	assert.True(t, req.Version == 2 && req.UnknownTags.Len() == 0, "the request was changed: %+v", req)
}

func TestWhatAnotherBrokerDoesNotServeIsNotSent(t *testing.T) {
	f := newFake(t)
	f.versions[24] = [2]int16{0, 3}
	delete(f.versions, 65)
	w := newWorld(t, f.broker())
	question := kmsg.NewPtrAddPartitionsToTxnRequest()
	question.Version = 5
	for _, req := range []kmsg.Request{question, described("x"), kmsg.NewPtrAllocateProducerIDsRequest()} {
		if o := <-w.send(req); o.err == nil {
			t.Errorf("%s was answered", kmsg.NameForKey(req.Key()))
		}
	}
	if len(f.requests) > 0 {
		t.Errorf("%s was sent", kmsg.NameForKey((<-f.requests).Key()))
	}
}

func TestASilentBrokerIsGivenUpAndConnectedToAgain(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	w.opts.Timeout = 3 * time.Second // In which the request itself must arrive.
	if o := <-w.send(described("x")); !errors.Is(o.err, errSilent) {
		t.Fatalf("%+v", o)
	}
	<-f.requests
	<-f.closed
	w.opts.Timeout = requestTimeout
	out := w.send(described("y"))
	describe(<-f.requests)
	wantDescribed(t, <-out, "y")
	assert.Equal(t, f.opened.Load(), 2, "connections")
}

func TestAConnectionThatEndsFailsWhatIsUnderWay(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	out := w.send(described("x"))
	<-f.requests
	f.hangUp()
	if o := <-out; o.err == nil {
		t.Error("it was answered")
	}
	out = w.send(described("y"))
	describe(<-f.requests)
	wantDescribed(t, <-out, "y")
}

func TestAConnectionThatNobodyUsesIsClosed(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	w.opts.Idle = 2 * time.Second // In which requests must be answered.
	for range 2 {
		out := w.send(described("x"))
		describe(<-f.requests)
		wantDescribed(t, <-out, "x")
		<-f.closed
	}
}

func TestABrokerThatMovedIsFoundAgain(t *testing.T) {
	before, after := newFake(t), newFake(t)
	w := newWorld(t, before.broker())
	out := w.send(described("x"))
	describe(<-before.requests)
	wantDescribed(t, <-out, "x")
	w.knows(after.broker())
	out = w.send(described("y"))
	describe(<-after.requests)
	wantDescribed(t, <-out, "y")
	<-before.closed
	w.knows()
	if o := <-w.send(described("z")); !errors.Is(o.err, errUnknown) {
		t.Errorf("%+v", o)
	}
}

func TestABrokerThatCannotBeReachedIsTriedAgainAfterAPause(t *testing.T) {
	f := newFake(t)
	f.listener.Close()
	w := newWorld(t, f.broker())
	for range 3 {
		if o := <-w.send(described("x")); o.err == nil {
			t.Fatal("it was answered")
		}
	}
	l, _ := w.link(lane{2, 65})
	assert.Equal(t, l.pause, 4*firstPause, "the pause")
}

func TestRequestsToThisBrokerTakeNoNetworkAndHaveALimitToo(t *testing.T) {
	w := newWorld(t)
	w.own = func(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
		if req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs[0] == "silent" {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return req.ResponseKind(), nil
	}
	for _, node := range []int32{1, machine.Self} {
		w.opts.Timeout = requestTimeout
		if _, err := w.Do(t.Context(), node, described("x")); err != nil {
			t.Error(err)
		}
		w.opts.Timeout = short
		if _, err := w.Do(t.Context(), node, described("silent")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	}
}

func TestWhoAsksThisBrokerDoesNotWaitForAHandlerThatHearsNothing(t *testing.T) {
	w := newWorld(t)
	entered, locked := make(chan struct{}), make(chan struct{})
	w.own = func(context.Context, kmsg.Request) (kmsg.Response, error) {
		close(entered)
		<-locked // As a lock does, whatever becomes of the context.
		return nil, nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := make(chan error, 1)
	go func() {
		_, err := w.Do(ctx, machine.Self, kmsg.NewPtrAllocateProducerIDsRequest())
		out <- err
	}()
	<-entered
	cancel()
	assert.ErrorIs(t, <-out, context.Canceled)
	close(locked)
	w.Close()
	if _, err := w.Do(t.Context(), machine.Self, described("x")); !errors.Is(err, errClosed) {
		t.Errorf("after the end: %v", err)
	}
}

func TestAClientIsClosedWhileItWaitsForASilentBroker(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	assert.Must(t, err)
	defer silent.Close()
	port := int32(silent.Addr().(*net.TCPAddr).Port)
	w := newWorld(t, metadata.Broker{ID: 2, Endpoints: []metadata.Endpoint{{Listener: "L", Host: "127.0.0.1", Port: port}}})
	out := w.send(described("x"))
	c, err := silent.Accept()
	assert.Must(t, err)
	defer c.Close()
	w.Close()
	if o := <-out; !errors.Is(o.err, errClosed) {
		t.Errorf("%+v", o)
	}
}

func TestAClosedClientSendsNothing(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	out := w.send(described("x"))
	<-f.requests
	w.Close()
	if o := <-out; !errors.Is(o.err, errClosed) {
		t.Errorf("%+v", o)
	}
	if o := <-w.send(described("y")); !errors.Is(o.err, errClosed) {
		t.Errorf("%+v", o)
	}
}
