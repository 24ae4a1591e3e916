package gate

import (
	"context"
	"errors"
	"testing"
	"time"

	"muster/internal/auth/sasl"
	"muster/internal/listener"
	"muster/internal/metadata"
)

// letsIn is a mechanism that lets everyone in as one user.
type letsIn struct {
	name string
	who  sasl.Step
}

func (m letsIn) Name() string                                    { return m.name }
func (m letsIn) Start() sasl.Exchange                            { return m }
func (m letsIn) Next(context.Context, []byte) (sasl.Step, error) { return m.who, nil }

// loggedIn is a session that has logged in at a gate by a mechanism.
func loggedIn(t *testing.T, g *Gate, m letsIn) *Session {
	t.Helper()
	server := &sasl.Server{Mechanisms: []sasl.Mechanism{m}, Now: time.Now}
	s := &Session{gate: g, client: &listener.Client{}, conn: server.Connect()}
	if err, _ := s.Handshake(1, m.name); err != nil {
		t.Fatal(err)
	}
	if login := s.Authenticate(t.Context(), nil); login.Error != nil {
		t.Fatal(login.Error)
	}
	return s
}

// Rules may name a group instead of a user.
func TestASessionIsInTheGroupsOfItsLogin(t *testing.T) {
	s := loggedIn(t, &Gate{}, letsIn{"TOKENS", sasl.Step{Done: true, Principal: "ann", Groups: "Group:ops"}})
	if s.User() != "User:ann" || s.groups != "Group:ops" || s.broker {
		t.Errorf("it is %s, in %q, a broker: %t", s.User(), s.groups, s.broker)
	}
}

// Sessions of brokers do not outlive the secret by which they began.
func TestTheSessionOfABrokerEndsWithItsSecret(t *testing.T) {
	first := metadata.Secrets{Current: metadata.Secret{Text: "one"}}
	secrets, now := first, time.Unix(1000, 0)
	logins := &PeerLogins{Image: func() *metadata.Image { return &metadata.Image{Secrets: secrets} }, Now: func() time.Time { return now }}
	s := loggedIn(t, &Gate{logins: logins}, letsIn{PeerMechanism, sasl.Step{Done: true, Principal: PeerLogin(first.Current).Name}})
	ends := func() bool {
		_, err := s.Handle(t.Context(), nil, s.client, nil) // A request without a header goes no further than that.
		return errors.Is(err, errRotated)
	}
	if s.User() != string(peerPrincipal) || ends() {
		t.Errorf("%s may not ask for anything", s.User())
	}
	if secrets = first.Rotate("two", now); ends() {
		t.Error("the session ends while both secrets count")
	}
	if now = now.Add(metadata.SecretOverlap); !ends() {
		t.Error("the session goes on when the secret counts no more")
	}
}
