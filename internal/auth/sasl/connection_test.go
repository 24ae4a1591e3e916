package sasl

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sasl"
	franzoauth "github.com/twmb/franz-go/pkg/sasl/oauth"
	franzplain "github.com/twmb/franz-go/pkg/sasl/plain"
	franzscram "github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
)

// allMechanisms is a server with every mechanism, and alice in all of them.
func allMechanisms(t *testing.T, clock *testClock) (*Server, string) {
	users := newUsers()
	for _, h := range []Hash{SHA256, SHA512} {
		users.set(t, h, "alice", "pw")
		users.set(t, h, "bob", "pw")
	}
	directory := NewDirectory(users, []byte("s"))
	i := newIssuer(t, public("rsa", rsaKey()))
	server := &Server{
		Mechanisms: []Mechanism{
			NewScram(SHA256, directory, rand.Reader), NewScram(SHA512, directory, rand.Reader),
			NewPlain(directory, NewLimiter(Limits{Turns: 1}), []byte("m"), 10), NewOAuthBearer(i.verifier(t, clock)),
		},
		MaxReauth: map[string]time.Duration{ScramSHA512: time.Minute, OAuthBearer: time.Hour},
		Now:       clock.now,
	}
	return server, sign(t, jose.RS256, "rsa", rsaKey(), goodClaims(clock))
}

// through lets a client log in on a connection and returns the last outcome.
func through(t *testing.T, c *Connection, version int16, client sasl.Mechanism) Outcome {
	t.Helper()
	assert.MustEqual(t, c.Arrives(handshake), Proceed)
	if err, _ := c.Handshake(version, client.Name()); err != nil {
		t.Fatal(err)
	}
	session, message, err := client.Authenticate(context.Background(), "host:9092")
	must(t, err)
	for {
		assert.MustEqual(t, c.Raw(), version == 0, "raw")
		if version > 0 {
			assert.MustEqual(t, c.Arrives(authenticate), Proceed)
		}
		outcome := c.Authenticate(context.Background(), message)
		if outcome.Error != nil {
			return outcome
		}
		_, message, err = session.Challenge(outcome.Answer)
		must(t, err)
		if outcome.Done {
			return outcome
		}
	}
}

func TestConnectionsLogInAndAgain(t *testing.T) {
	clock := newClock()
	server, token := allMechanisms(t, clock)
	for version := range int16(2) {
		for _, c := range []struct {
			client   sasl.Mechanism
			lifetime time.Duration
		}{
			{franzscram.Auth{User: "alice", Pass: "pw"}.AsSha256Mechanism(), 0},
			{franzscram.Auth{User: "alice", Pass: "pw"}.AsSha512Mechanism(), time.Minute},
			{franzplain.Auth{User: "alice", Pass: "pw"}.AsMechanism(), 0},
			{franzoauth.Auth{Token: token}.AsMechanism(), 10 * time.Minute},
		} {
			connection := server.Connect()
			assert.MustEqual(t, connection.Arrives(versions), Proceed)
			for range 2 {
				outcome := through(t, connection, version, c.client)
				if !outcome.Done || connection.Principal() != "alice" || outcome.Lifetime != c.lifetime {
					t.Fatalf("%s, version %d: %+v", c.client.Name(), version, outcome)
				}
				assert.True(t, connection.exchange == nil, "the exchange is kept after the login")
				assert.MustEqual(t, connection.Arrives(produce), Proceed)
			}
		}
	}
}

func TestConnectionsEnd(t *testing.T) {
	clock := newClock()
	server, token := allMechanisms(t, clock)
	connection := server.Connect()
	if err, names := connection.Handshake(1, "GSSAPI"); err != kerr.UnsupportedSaslMechanism || !slices.Equal(names, []string{ScramSHA256, ScramSHA512, Plain, OAuthBearer}) {
		t.Errorf("%v, %v", err, names)
	}

	connection = server.Connect()
	outcome := connection.Authenticate(context.Background(), []byte("\x00alice\x00pw"))
	assert.True(t, outcome.Error == kerr.IllegalSaslState && connection.Principal() == "", "a token without a handshake: %+v", outcome)

	connection = server.Connect()
	outcome = through(t, connection, 1, franzplain.Auth{User: "alice", Pass: "no"}.AsMechanism())
	if outcome.Error != kerr.SaslAuthenticationFailed || outcome.Message != "Authentication failed: Invalid username or password" || connection.Principal() != "" {
		t.Errorf("a wrong password: %+v", outcome)
	}
	assert.Equal(t, connection.Arrives(produce), Close, "after a wrong password")
	if outcome = connection.Authenticate(context.Background(), []byte("\x00alice\x00pw")); outcome.Error == nil || outcome.Done {
		t.Errorf("a second try: %+v", outcome)
	}

	connection = server.Connect()
	through(t, connection, 1, franzoauth.Auth{Token: token}.AsMechanism())
	clock.move(11 * time.Minute)
	assert.True(t, connection.Expired(), "the session outlives the token")
	assert.Equal(t, connection.Arrives(produce), Close, "after the end of the token")

	connection = server.Connect()
	through(t, connection, 1, franzplain.Auth{User: "alice", Pass: "pw"}.AsMechanism())
	outcome = through(t, connection, 1, franzplain.Auth{User: "bob", Pass: "pw"}.AsMechanism())
	assert.True(t, outcome.Error == kerr.SaslAuthenticationFailed && connection.Principal() == "alice", "another user: %+v", outcome)
	connection = server.Connect()
	through(t, connection, 1, franzplain.Auth{User: "alice", Pass: "pw"}.AsMechanism())
	outcome = through(t, connection, 1, franzscram.Auth{User: "alice", Pass: "pw"}.AsSha256Mechanism())
	assert.Equal(t, outcome.Error, kerr.SaslAuthenticationFailed, "another mechanism: %+v", outcome)
}

// renamed is a client's mechanism under another name.
type renamed struct {
	sasl.Mechanism
	name string
}

func (r renamed) Name() string { return r.name }

func TestAnUnlistedMechanismIsForThoseWhoKnowOfIt(t *testing.T) {
	clock := newClock()
	users := newUsers()
	users.set(t, SHA256, "broker", "secret")
	server, _ := allMechanisms(t, clock)
	listed := server.Names()
	server.Unlisted = []Mechanism{NewScramNamed("OURS", SHA256, NewDirectory(users, []byte("d")), rand.Reader)}
	c := server.Connect()
	outcome := through(t, c, 1, renamed{franzscram.Auth{User: "broker", Pass: "secret"}.AsSha256Mechanism(), "OURS"})
	if !outcome.Done || c.Principal() != "broker" {
		t.Errorf("%+v, %s", outcome, c.Principal())
	}
	// Its users are none of the others'.
	for _, m := range []sasl.Mechanism{franzscram.Auth{User: "broker", Pass: "secret"}.AsSha256Mechanism(), renamed{franzscram.Auth{User: "alice", Pass: "pw"}.AsSha256Mechanism(), "OURS"}} {
		if outcome := through(t, server.Connect(), 1, m); outcome.Error != kerr.SaslAuthenticationFailed {
			t.Errorf("%s: %+v", m.Name(), outcome)
		}
	}
	if err, names := server.Connect().Handshake(1, "OTHERS"); err != kerr.UnsupportedSaslMechanism || !slices.Equal(names, listed) {
		t.Errorf("%v, %v", err, names)
	}
}
