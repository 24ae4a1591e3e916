package handler

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/protocol"
)

// betweenTimeout bounds a request of another broker. That one waits for 10 s, and takes
// us for dead then, with all that it has asked on the connection: what can be said
// by then must be on its way before.
const betweenTimeout = 8 * time.Second

// Do answers a request of this broker's own, as those of its coordinators are. What
// coordinators and leaders ask each other all the time, and make anew for each time,
// is the handler's from then on; other requests are neither changed nor kept.
func (h *Handler) Do(ctx context.Context, req kmsg.Request) (kmsg.Response, error) {
	mine := req
	switch req.(type) {
	case *kmsg.AddPartitionsToTxnRequest, *kmsg.WriteTxnMarkersRequest,
		*kmsg.ReadShareGroupStateRequest, *kmsg.WriteShareGroupStateRequest:
	default:
		if mine = protocol.NewRequest(req.Key()); mine == nil {
			return nil, fmt.Errorf("%s is not for this broker itself", kmsg.NameForKey(req.Key()))
		}
		mine.SetVersion(req.GetVersion())
		if err := mine.ReadFrom(req.AppendTo(nil)); err != nil {
			return nil, fmt.Errorf("a request of our own: %w", err)
		}
	}
	c := &call{
		Request: protocol.Request{Key: req.Key(), Version: req.GetVersion(), ClientID: "muster"},
		origin:  Origin{Conn: nobody{}}, req: mine, image: h.opts.Controller.Image(), own: true, h: h,
	}
	if req.Key() == kmsg.AllocateProducerIDs.Int16() {
		return h.allocateProducerIDs(ctx, c)
	}
	e := entryForBroker(req.Key())
	if e == nil || e.serve == nil {
		return nil, fmt.Errorf("%s is not for this broker itself", kmsg.NameForKey(req.Key()))
	}
	return e.serve(h, ctx, c)
}

// fromBroker says whether a broker of the cluster sent the request, or this one.
func (c *call) fromBroker() bool { return c.own || c.origin.Broker }

// betweenBrokers are the requests that brokers of the cluster send to each other, with
// their first versions. No rule holds for a broker, so it may send nothing else.
var betweenBrokers = map[kmsg.Key]int16{
	kmsg.ListOffsets:          0,
	kmsg.SASLHandshake:        0,
	kmsg.ApiVersions:          0,
	kmsg.AddPartitionsToTxn:   4, // Those before are of producers.
	kmsg.WriteTxnMarkers:      0,
	kmsg.SASLAuthenticate:     0,
	kmsg.DescribeTransactions: 0,
	kmsg.ListTransactions:     0,

	kmsg.InitializeShareGroupState:  0,
	kmsg.ReadShareGroupState:        0,
	kmsg.WriteShareGroupState:       0,
	kmsg.DeleteShareGroupState:      0,
	kmsg.ReadShareGroupStateSummary: 0,
}

// checkBetween refuses a request that no broker sends, from a connection that has logged
// in as one. That ends the connection: whoever it is knows the cluster's secret, and is
// no broker.
func (c *call) checkBetween() error {
	if !c.origin.Broker {
		return nil
	}
	if least, ok := betweenBrokers[kmsg.Key(c.Key)]; ok && c.Version >= least {
		return nil
	}
	name := kmsg.NameForKey(c.Key)
	c.h.tell(c, audit.Entry{Kind: audit.Denied, Resources: []audit.Resource{{Type: audit.TypeRequest, Name: name}}, Reason: "brokers do not send it to each other"})
	return fmt.Errorf("%s request of version %d from a connection that has logged in as a broker", name, c.Version)
}

// answerLater answers a request of another broker beside its connection, so that
// the next one need not wait for it. Nothing in the request may still lie in the
// frame.
func (h *Handler) answerLater(ctx context.Context, e *Entry, c *call) *protocol.Response {
	resp := protocol.NewPending()
	resp.Weigh(c.Size)
	c.own, c.Body, c.Memory = true, nil, nil // It was found to be a broker's.
	c.origin.Conn = nobody{}                 // The frame is gone, and with it what was counted.
	keepTags(c.req)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, betweenTimeout)
		defer cancel()
		body, err := h.serveSafely(ctx, e, c)
		if err != nil {
			h.opts.Logger.Error("a request of another broker failed", "api", e.Name(), "error", err)
			body = c.req.ResponseKind()
		}
		resp.Complete(&c.Request, body)
	}()
	return resp
}

// serveSafely serves a request beside its connection. A panic is an error of this request alone.
func (h *Handler) serveSafely(ctx context.Context, e *Entry, c *call) (body kmsg.Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			h.opts.Panicked()
			body, err = nil, fmt.Errorf("panic: %v, in %s", p, debug.Stack())
		}
	}()
	return e.serve(h, ctx, c)
}

// keepTags has the tagged fields of a request that are read later lie outside of
// its frame, and drops the others.
func keepTags(req kmsg.Request) {
	switch r := req.(type) {
	case *kmsg.AddPartitionsToTxnRequest:
		r.UnknownTags = kmsg.Tags{}
		for i := range r.Transactions {
			t := &r.Transactions[i]
			t.UnknownTags = kmsg.Tags{}
			for j := range t.Topics {
				t.Topics[j].UnknownTags = kmsg.Tags{}
			}
		}
	case *kmsg.WriteTxnMarkersRequest:
		r.UnknownTags = kmsg.Tags{}
		for i := range r.Markers {
			keepStart(&r.Markers[i].UnknownTags)
		}
	}
}
