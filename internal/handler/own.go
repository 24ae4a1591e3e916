package handler

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

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
	case *kmsg.AddPartitionsToTxnRequest, *kmsg.WriteTxnMarkersRequest:
	default:
		mine = kmsg.RequestForKey(req.Key())
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
	e := entryFor(req.Key())
	if e == nil || e.serve == nil {
		return nil, fmt.Errorf("%s is not for this broker itself", kmsg.NameForKey(req.Key()))
	}
	return e.serve(h, ctx, c)
}

// fromBroker says whether a broker of the cluster sent the request, or this one.
func (c *call) fromBroker() bool {
	if c.own || c.origin.Broker {
		return true
	}
	switch r := c.req.(type) {
	case *kmsg.AddPartitionsToTxnRequest:
		return protocol.HasSecret(&r.UnknownTags, c.image.Secret)
	case *kmsg.WriteTxnMarkersRequest:
		return protocol.HasSecret(&r.UnknownTags, c.image.Secret)
	case *kmsg.DescribeTransactionsRequest:
		return protocol.HasSecret(&r.UnknownTags, c.image.Secret)
	case *kmsg.ListTransactionsRequest:
		return protocol.HasSecret(&r.UnknownTags, c.image.Secret)
	case *kmsg.ListOffsetsRequest:
		return protocol.HasSecret(&r.UnknownTags, c.image.Secret)
	}
	return false
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
		body, err := e.serve(h, ctx, c)
		if err != nil {
			h.opts.Logger.Error("a request of another broker failed", "api", e.Name(), "error", err)
			body = c.req.ResponseKind()
		}
		resp.Complete(&c.Request, body)
	}()
	return resp
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
