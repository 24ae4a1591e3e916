package sasl

import (
	"crypto/rand"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sasl"
	franzscram "github.com/twmb/franz-go/pkg/sasl/scram"
)

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
