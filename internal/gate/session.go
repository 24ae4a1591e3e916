package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/fair"
	"muster/internal/handler"
	"muster/internal/listener"
	"muster/internal/protocol"
)

// Session is who a connection is. The goroutine that serves the connection has it alone, so
// it needs no lock; a request that goes on beside it took the principal along.
type Session struct {
	gate      *Gate
	client    *listener.Client
	software  string           // the client's library and its version, if it said them
	conn      *sasl.Connection // nil where no one need log in, until a broker of the cluster does
	attempted string           // the mechanism of the login under way
	principal auth.Principal   // empty before the first login
	groups    auth.Groups      // that it is in
	claimed   auth.Principal   // who it said to be at a login that failed
	broker    bool             // another broker of the cluster
	ended     error            // why the connection ends after the next answer
}

// Limit implements listener.Session.
func (s *Session) Limit() int {
	if s.principal == "" {
		return s.gate.limit
	}
	return 0
}

// User implements listener.Session.
func (s *Session) User() string { return string(s.principal) }

// errRotated ends the session of a broker some time after the secret was rotated by which
// it had logged in. Brokers log in by the new one long before.
var errRotated = errors.New("the session of a broker has ended: the secret of the cluster was rotated")

var errIllegal = errors.New("a request that does not belong into a login")

// maxBareToken is how much of a bare token is kept: more than any mechanism takes.
const maxBareToken = 128 << 10

// Handle lets a request through to the handler, if it may come now.
func (s *Session) Handle(ctx context.Context, h *handler.Handler, c *listener.Client, frame []byte) (*protocol.Response, error) {
	origin := handler.Origin{Listener: c.Listener, Host: c.Host, Principal: s.principal, Groups: s.groups, Broker: s.broker, Conn: c, Number: c.Number, LastID: &c.LastID}
	origin.Session = s
	if s.conn == nil {
		return h.Serve(ctx, origin, frame)
	}
	if s.broker {
		if _, ok := s.gate.logins.accepts(s.conn.Principal()); !ok {
			return nil, errRotated
		}
	}
	if s.conn.Raw() {
		return s.bare(ctx, c, frame)
	}
	r, err := protocol.ParseHeader(frame)
	if err != nil {
		return nil, err
	}
	switch s.conn.Arrives(r.Key) {
	case sasl.Close:
		return nil, s.refuse(r.Key)
	case sasl.Refuse:
		origin.Illegal = true
	case sasl.RefuseAndClose:
		origin.Illegal, s.ended = true, errIllegal
	}
	resp, err := h.Serve(ctx, origin, frame)
	if resp != nil && s.ended != nil {
		resp.EndAfter(s.ended)
	}
	return resp, err
}

// refuse says why a request ends the connection.
func (s *Session) refuse(key int16) error {
	if s.principal != "" && s.conn.Expired() {
		return errors.New("the session has ended, and the client has not logged in again")
	}
	return fmt.Errorf("%s before the login is over", kmsg.NameForKey(key))
}

// bare takes a step of a login that comes without a request. One that fails has no answer.
func (s *Session) bare(ctx context.Context, c *listener.Client, frame []byte) (*protocol.Response, error) {
	token := bytes.Clone(frame[:min(len(frame), maxBareToken)])
	c.Release()
	ctx, done, ok := c.Park(ctx, 0)
	if !ok {
		return nil, errors.New("no room to wait for a login")
	}
	defer done()
	outcome := s.step(ctx, token)
	if outcome.Error != nil {
		return nil, s.ended
	}
	return protocol.Bare(outcome.Answer), nil
}

// Handshake implements handler.Session.
func (s *Session) Handshake(version int16, mechanism string) (*kerr.Error, []string) {
	if s.conn == nil {
		if s.gate.peers == nil || mechanism != PeerMechanism {
			return kerr.IllegalSaslState, nil // As in Kafka, where no one logs in.
		}
		s.conn = s.gate.peers.Connect()
	}
	s.attempted = mechanism
	err, enabled := s.conn.Handshake(version, mechanism)
	if err != nil {
		s.ended = fmt.Errorf("a login by a mechanism that is not enabled: %w", err)
	}
	return err, enabled
}

// longestSoftware is how much of the name of a library is kept.
const longestSoftware = 100

// Software implements handler.Session.
func (s *Session) Software(name, version string) {
	text := name + " " + version
	s.software = strings.Clone(text[:min(len(text), longestSoftware)])
}

// Authenticate implements handler.Session.
func (s *Session) Authenticate(ctx context.Context, token []byte) handler.Login {
	if s.conn == nil {
		return handler.Login{Error: kerr.IllegalSaslState, Message: "SaslAuthenticate request received where no login is under way"}
	}
	outcome := s.step(ctx, token)
	return handler.Login{Error: outcome.Error, Message: outcome.Message, Answer: outcome.Answer, Lifetime: outcome.Lifetime}
}

// step takes a step of a login. A failure is told only after a while, so that passwords
// cannot be tried as fast as a client can send them. Only this connection waits.
func (s *Session) step(ctx context.Context, token []byte) sasl.Outcome {
	again := s.conn.Principal() != ""
	waits := &sasl.Login{From: fair.Neighbourhood(s.client.Host)}
	outcome := s.conn.Authenticate(waits.With(ctx), token)
	waits.End()
	switch {
	case errors.Is(outcome.Reason, context.Canceled):
		s.ended = outcome.Reason // It hung up, or the broker stops: its password was not looked at.
	case outcome.Error != nil:
		s.ended = fmt.Errorf("a login by %s failed: %w", s.attempted, outcome.Reason)
		s.claimed = ""
		if outcome.Name != "" {
			s.claimed = auth.User(outcome.Name)
		}
		if s.attempted == PeerMechanism {
			s.claimed = peerPrincipal
		}
		s.tell(again, outcome.Reason)
		Wait(ctx, s.gate.delay)
	case outcome.Done:
		s.principal, s.groups, s.broker = auth.User(s.conn.Principal()), auth.Groups(outcome.Groups), s.attempted == PeerMechanism
		if s.broker {
			s.principal = peerPrincipal
		}
		s.tell(again, nil)
		if outcome.RepeatedNonce {
			s.gate.outdated.tell(s.client, s.software)
		}
	}
	return outcome
}

// tell tells of a login whoever wants to know.
func (s *Session) tell(again bool, err error) {
	a := Attempt{Host: s.client.Host, Listener: s.gate.name, Mechanism: s.attempted, Principal: s.claimed, Again: again, Err: err}
	if err == nil {
		a.Principal = s.principal
	}
	for _, told := range s.gate.told {
		told(a)
	}
}

// Wait waits, unless the broker closes.
func Wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
