package handler

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/protocol"
)

// Answer answers a request that is no frame, as Serve answers one that is: with the rights,
// the quotas and the audit log of whoever sent it. The request is the handler's from then on.
func (h *Handler) Answer(ctx context.Context, origin Origin, clientID string, req kmsg.Request) (kmsg.Response, error) {
	if origin.Conn == nil {
		origin.Conn = nobody{}
	}
	e := entryFor(req.Key())
	if e == nil || req.GetVersion() < e.serveMin() || req.GetVersion() > e.Max {
		return nil, fmt.Errorf("%s request of version %d is not served", kmsg.NameForKey(req.Key()), req.GetVersion())
	}
	c := &call{
		Request: protocol.Request{Key: req.Key(), Version: req.GetVersion(), ClientID: clientID},
		origin:  origin, req: req, image: h.opts.Controller.Image(), h: h,
	}
	c.measure()
	if e.raw != nil {
		return h.answerRaw(ctx, e, c)
	}
	resp, err := e.serve(h, ctx, c)
	if err != nil {
		return nil, err
	}
	h.tellChanges(c, resp)
	c.chargeAnswer(resp)
	return resp, nil
}

// answerRaw is Answer for those handlers that read a body themselves, and write the answer
// when it is there: Produce.
func (h *Handler) answerRaw(ctx context.Context, e *Entry, c *call) (kmsg.Response, error) {
	c.Body = c.req.AppendTo(nil)
	c.Size = len(c.Body)
	resp, err := e.raw(h, ctx, c)
	if err != nil {
		return nil, err
	}
	if resp.Pending() {
		select {
		case <-resp.Ready():
		case <-ctx.Done():
			return nil, kerr.RequestTimedOut
		}
	}
	defer resp.Release()
	return readAnswer(c.req, resp)
}

// readAnswer reads the frame of an answer.
func readAnswer(req kmsg.Request, resp *protocol.Response) (kmsg.Response, error) {
	var frame []byte
	for i := range resp.Parts {
		frame = append(frame, resp.Parts[i].Bytes...)
	}
	answer := req.ResponseKind()
	answer.SetVersion(req.GetVersion())
	header := 8 // Length and correlation id.
	if answer.IsFlexible() {
		header++ // Tagged fields, of which there are none.
	}
	if len(frame) < header {
		return nil, errors.New("an answer without a header")
	}
	return answer, answer.ReadFrom(frame[header:])
}
