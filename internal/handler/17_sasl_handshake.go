// SaslHandshake (key 17) begins a login: the client asks for a mechanism.
//
//	v0  what follows are bare tokens    v1  what follows is SaslAuthenticate
//
// Where no one logs in it is answered with ILLEGAL_SASL_STATE, as in Kafka.

package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func (h *Handler) saslHandshake(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.SASLHandshakeRequest)
	resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
	if c.origin.Session == nil {
		resp.ErrorCode = kerr.IllegalSaslState.Code
		return resp, nil
	}
	err, enabled := c.origin.Session.Handshake(req.Version, req.Mechanism)
	resp.ErrorCode, resp.SupportedMechanisms = errCode(err), enabled
	return resp, nil
}
