package peer

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
	"muster/internal/protocol"
)

func TestRequestsShareAConnectionAndAnswersComeInAnyOrder(t *testing.T) {
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
	if n := f.opened.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
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
	if n := f.opened.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
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
		if len(f.requests) > 0 {
			t.Fatal("more are under way")
		}
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

func TestARequestIsSentInAVersionThatTheOtherServesAndWithTheSecret(t *testing.T) {
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
	if got.Version != 1 || !protocol.HasSecret(&got.UnknownTags, "the secret") || machine.TxnStartOf(&got.Markers[0].UnknownTags) != 1234 {
		t.Errorf("sent %+v", got)
	}
	a.answer(got.ResponseKind())
	if o := <-out; o.err != nil || o.resp.GetVersion() != 1 {
		t.Errorf("%+v", o)
	}
	if req.Version != 2 || req.UnknownTags.Len() != 0 {
		t.Errorf("the request was changed: %+v", req)
	}
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
	w.opts.Timeout = short
	if o := <-w.send(described("x")); !errors.Is(o.err, errSilent) {
		t.Fatalf("%+v", o)
	}
	<-f.requests
	<-f.closed
	w.opts.Timeout = requestTimeout
	out := w.send(described("y"))
	describe(<-f.requests)
	wantDescribed(t, <-out, "y")
	if n := f.opened.Load(); n != 2 {
		t.Errorf("%d connections", n)
	}
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
	w.opts.Idle = short
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
	if l.pause != 4*firstPause {
		t.Errorf("the pause is %s", l.pause)
	}
}

func TestRequestsToThisBrokerTakeNoNetworkAndHaveALimitToo(t *testing.T) {
	w := newWorld(t)
	w.opts.Timeout = short
	for _, node := range []int32{1, machine.Self} {
		w.own = func(_ context.Context, req kmsg.Request) (kmsg.Response, error) { return req.ResponseKind(), nil }
		if _, err := w.Do(t.Context(), node, described("x")); err != nil {
			t.Error(err)
		}
		w.own = func(ctx context.Context, _ kmsg.Request) (kmsg.Response, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if _, err := w.Do(t.Context(), node, described("x")); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
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
