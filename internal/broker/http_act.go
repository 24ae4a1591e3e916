package broker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/handler"
	"muster/internal/protocol"
	"muster/internal/web"
	"muster/internal/words"
)

// httpClientID is the client id of what people do over HTTP.
const httpClientID = "muster-http"

// httpActs does what people want done over HTTP. Each act is the request of the Kafka
// protocol that stands for it, as a frame through the handler that answers the Kafka
// listeners: so there is one place for rights, quotas, rules and the audit log. It
// implements web.Actions.
type httpActs struct {
	b     *Broker
	muted muted
}

// person is where the request of a person comes from. It stands for a connection.
type person struct {
	denied *auth.Request // the first
	wait   time.Duration
}

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

// outcome is the answer to a request, with what the handler said beside it.
type outcome[R kmsg.Response] struct {
	answer R
	person *person
	b      *Broker
}

// request sends a request as somebody, and waits for the answer.
func request[R kmsg.Response](ctx context.Context, a *httpActs, who web.Asker, req kmsg.Request) (outcome[R], error) {
	out := outcome[R]{person: &person{}, b: a.b}
	if wait := a.muted.left(quiet{who.Principal, req.Key()}, time.Now()); wait > 0 {
		return out, &web.RefusedError{
			Code: kerr.ThrottlingQuotaExceeded.Code, Name: kerr.ThrottlingQuotaExceeded.Message, Wait: wait,
			Message: fmt.Sprintf("%s has exceeded a quota; try again in %s", who.Principal, words.Duration(max(wait, time.Second))),
		}
	}
	answer, err := a.serve(ctx, who, out.person, req)
	if err != nil {
		return out, err
	}
	if out.person.wait > 0 {
		a.muted.add(quiet{who.Principal, req.Key()}, time.Now(), out.person.wait)
	}
	out.answer = answer.(R)
	return out, nil
}

// serve has the handler answer a request.
func (a *httpActs) serve(ctx context.Context, who web.Asker, p *person, req kmsg.Request) (kmsg.Response, error) {
	h := a.b.front.handler.Load()
	if h == nil {
		return nil, errStarting
	}
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID(httpClientID)).AppendRequest(nil, req, 0)[4:]
	resp, err := h.Serve(ctx, handler.Origin{
		Listener: a.b.endpoints[0].Listener, Host: who.Host, Principal: who.Principal, Groups: who.Groups, Via: audit.ViaHTTP, Conn: p,
		Denied: func(q auth.Request) {
			if p.denied == nil {
				p.denied = &q
			}
			a.b.httpGate.tellDenied(q)
		},
	}, frame)
	if err != nil {
		return nil, err
	}
	if resp.Pending() {
		select {
		case <-resp.Ready():
		case <-ctx.Done():
			return nil, &web.RefusedError{
				Code: kerr.RequestTimedOut.Code, Name: kerr.RequestTimedOut.Message,
				Message: "the answer took too long; it may have been done all the same, or may yet be",
			}
		}
	}
	defer resp.Release()
	return readResponse(req, resp)
}

// readResponse reads the frame of an answer.
func readResponse(req kmsg.Request, resp *protocol.Response) (kmsg.Response, error) {
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

// failed returns the error of a code in the answer, nil for none. What the message says
// comes first; where there is none, ours says more than Kafka's.
func (o *outcome[R]) failed(code int16, message *string, ours string) error {
	if code == 0 {
		return nil
	}
	e := &web.RefusedError{Code: code, Message: ours, Wait: o.person.wait}
	wire := kerr.TypedErrorForCode(code)
	if wire != nil {
		e.Name = wire.Message
	}
	switch {
	case message != nil && *message != "":
		e.Message = *message
	case ours == "" && wire != nil:
		e.Message = strings.TrimSuffix(strings.ToLower(wire.Description[:1])+wire.Description[1:], ".")
	}
	if q := o.person.denied; q != nil && denies(code) {
		e.Lacks, e.Command = q, o.b.image().Rules.Why(*q).Fix
		e.Message = fmt.Sprintf("%s may not %s %s %s", q.Principal, q.Operation, strings.ToLower(q.Type.String()), q.Name)
	}
	return e
}

// denies says whether a code is that somebody may not do something.
func denies(code int16) bool {
	switch code {
	case kerr.TopicAuthorizationFailed.Code, kerr.GroupAuthorizationFailed.Code, kerr.ClusterAuthorizationFailed.Code, kerr.TransactionalIDAuthorizationFailed.Code:
		return true
	}
	return false
}

const (
	// maxMuted is how many are remembered who have to wait.
	maxMuted = 1000
	// longestMute is for how long. Whoever is far beyond a quota is told so again then;
	// and one that was raised does not keep people waiting for what it was before.
	longestMute = time.Minute
)

// muted remembers who has to wait because of a quota, as long as a connection of theirs
// would not be read (KIP-219): over HTTP a person has no connection that could be muted.
// They may do other things meanwhile, as they could by another connection: to change the
// quota, say.
type muted struct {
	mu    sync.Mutex
	until map[quiet]time.Time
}

// quiet is what somebody may not do for a while.
type quiet struct {
	who auth.Principal
	key int16
}

func (m *muted) left(who quiet, now time.Time) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return max(m.until[who].Sub(now), 0)
}

func (m *muted) add(who quiet, now time.Time, wait time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.until == nil {
		m.until = map[quiet]time.Time{}
	}
	if len(m.until) >= maxMuted {
		for p, t := range m.until {
			if !t.After(now) {
				delete(m.until, p)
			}
		}
	}
	if _, known := m.until[who]; known || len(m.until) < maxMuted {
		m.until[who] = now.Add(min(wait, longestMute))
	}
}
