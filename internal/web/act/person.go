package act

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/handler"
	"muster/internal/web/problem"
)

// person is where the request of a person comes from. It stands for a connection.
type person struct{ wait time.Duration }

// Hold implements handler.Conn. What a request takes is bounded by its body.
func (*person) Hold(int) bool { return true }

// Release implements handler.Conn.
func (*person) Release() {}

// Park implements handler.Conn. The context ends with the request over HTTP.
func (*person) Park(ctx context.Context, _ int) (context.Context, func(), bool) {
	return ctx, func() {}, true
}

// Mute implements handler.Conn.
func (p *person) Mute(d time.Duration) { p.wait = max(p.wait, d) }

// Place implements handler.Conn.
func (*person) Place() *any { return nil }

// By has a handler do what people want, as if they had come by a listener. It is there once
// the broker has started; until then it is nil. Denied is told what they are denied.
func By(of func() *handler.Handler, listener string, denied func(auth.Request)) func(context.Context, Asker, kmsg.Request) (Answer, error) {
	return func(ctx context.Context, who Asker, req kmsg.Request) (out Answer, err error) {
		h := of()
		if h == nil {
			return out, errors.New("the broker is starting")
		}
		p := &person{}
		out.Response, err = h.Answer(ctx, handler.Origin{
			Listener: listener, Host: who.Host, Principal: who.Principal, Groups: who.Groups, Via: audit.ViaHTTP, Conn: p,
			Denied: func(q auth.Request) {
				if out.Denied == nil {
					out.Denied = &q
				}
				denied(q)
			},
		}, ClientID, req)
		if errors.Is(err, kerr.RequestTimedOut) {
			err = &problem.Refused{
				Code: kerr.RequestTimedOut.Code, Name: kerr.RequestTimedOut.Message,
				Message: "the answer took too long; it may have been done all the same, or may yet be",
			}
		}
		out.Wait = p.wait
		return out, err
	}
}
