// Package act does what people want done over HTTP. Each act is the request of the Kafka
// protocol that stands for it, answered by the handler that answers the Kafka listeners: so
// there is one place for rights, quotas, rules and the audit log.
package act

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/web/problem"
	"muster/internal/words"
)

// ClientID is the client id of what people do over HTTP.
const ClientID = "muster-http"

// Options say who does what is wanted.
type Options struct {
	// Do has the broker answer a request as someone: with their rights and quotas, and told
	// to the audit log. It returns how long they have to wait now, and the first right that
	// they lacked.
	Do func(ctx context.Context, who Asker, req kmsg.Request) (Answer, error)
	// Peer asks another broker, whatever rights someone has.
	Peer  func(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error)
	Image func() *metadata.Image
	Node  func() int32
	// Sees says whether someone may do something, and notes nothing.
	Sees func(auth.Request) bool
	// Audit is told of what the handler does not tell of.
	Audit func(audit.Entry)
	// GroupError says why nothing is known of a group: another broker may have it.
	GroupError func(group string, err error) error
	Logger     *slog.Logger
}

// Answer is that of the broker to a request.
type Answer struct {
	Response kmsg.Response
	Wait     time.Duration
	Denied   *auth.Request
}

// Acts does what people want.
type Acts struct {
	Options
	muted muted
}

// New returns what does what people want.
func New(opts Options) *Acts { return &Acts{Options: opts} }

// outcome is the answer to a request, with what the handler said beside it.
type outcome[R kmsg.Response] struct {
	answer R
	wait   time.Duration
	denied *auth.Request
	acts   *Acts
}

// request sends a request as someone, and waits for the answer.
func request[R kmsg.Response](ctx context.Context, a *Acts, who Asker, req kmsg.Request) (outcome[R], error) {
	out := outcome[R]{acts: a}
	if wait := a.muted.left(quiet{who.Principal, req.Key()}, time.Now()); wait > 0 {
		return out, &problem.Refused{
			Code: kerr.ThrottlingQuotaExceeded.Code, Name: kerr.ThrottlingQuotaExceeded.Message, Wait: wait,
			Message: fmt.Sprintf("%s has exceeded a quota; try again in %s", who.Principal, words.Duration(max(wait, time.Second))),
		}
	}
	got, err := a.Do(ctx, who, req)
	if err != nil {
		return out, err
	}
	if got.Wait > 0 {
		a.muted.add(quiet{who.Principal, req.Key()}, time.Now(), got.Wait)
	}
	out.answer, out.wait, out.denied = got.Response.(R), got.Wait, got.Denied
	return out, nil
}

// failed returns the error of a code in the answer, nil for none. What the message says
// comes first; where there is none, ours says more than Kafka's.
func (o *outcome[R]) failed(code int16, message *string, ours string) error {
	if code == 0 {
		return nil
	}
	e := &problem.Refused{Code: code, Message: ours, Wait: o.wait}
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
	if q := o.denied; q != nil && denies(code) {
		e.Lacks, e.Command = q, o.acts.Image().Rules.Why(*q).Fix
		e.Message = fmt.Sprintf("%s may not %s %s %s", q.Principal, q.Operation, strings.ToLower(q.Type.String()), q.Name)
	}
	return e
}

// denies says whether a code is that someone may not do something.
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

// quiet is what someone may not do for a while.
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
