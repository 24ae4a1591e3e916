// SaslAuthenticate (key 36) carries the steps of a login.
//
//	v1  how long the session lasts (KIP-368)    v2  flexible
//
// Where no one logs in it is answered with ILLEGAL_SASL_STATE, as in Kafka.

package handler

import (
	"bytes"
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxToken is how much of a token is kept. It is more than any mechanism takes, so one
// that is cut is refused for its length.
const maxToken = 128 << 10

func (h *Handler) saslAuthenticate(ctx context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.SASLAuthenticateRequest)
	resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
	if c.origin.Session == nil {
		resp.ErrorCode = kerr.IllegalSaslState.Code
		resp.ErrorMessage = kmsg.StringPtr("SaslAuthenticate request received where no login is under way")
		return resp, nil
	}
	// A login may wait for its turn. Whoever has not logged in keeps no large frame meanwhile.
	token := bytes.Clone(req.SASLAuthBytes[:min(len(req.SASLAuthBytes), maxToken)])
	c.origin.Conn.Release()
	if waits, done, ok := c.origin.Conn.Park(ctx, 0); ok { // It always is, for nothing.
		ctx = waits
		defer done()
	}
	login := c.origin.Session.Authenticate(ctx, token)
	resp.ErrorCode, resp.SASLAuthBytes, resp.SessionLifetimeMillis = errCode(login.Error), login.Answer, login.Lifetime.Milliseconds()
	if login.Error != nil {
		resp.ErrorMessage = &login.Message
	}
	if resp.SASLAuthBytes == nil {
		resp.SASLAuthBytes = []byte{} // The field is never null.
	}
	return resp, nil
}
