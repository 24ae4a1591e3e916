package sasl

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

const (
	produce      = int16(kmsg.Produce)
	metadata     = int16(kmsg.Metadata)
	handshake    = int16(kmsg.SASLHandshake)
	authenticate = int16(kmsg.SASLAuthenticate)
	versions     = int16(kmsg.ApiVersions)
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newTestOrder() *Order {
	return NewOrder([]string{Plain, ScramSHA256}, map[string]time.Duration{ScramSHA256: time.Hour})
}

// begun returns an order in the middle of its first login.
func begun(t *testing.T, mechanism string) *Order {
	t.Helper()
	o := newTestOrder()
	assert.MustEqual(t, o.Arrives(start, handshake), Proceed)
	assert.MustEqual(t, o.Handshake(start, 1, mechanism), nil)
	return o
}

func loggedIn(t *testing.T, mechanism string) *Order {
	t.Helper()
	o := begun(t, mechanism)
	if outcome := o.Stepped(start, Step{Done: true, Principal: "alice"}, nil); !outcome.Done || outcome.Error != nil {
		t.Fatal(outcome)
	}
	return o
}

func TestRequestsInEveryPhase(t *testing.T) {
	fresh := func(*testing.T) *Order { return newTestOrder() }
	during := func(t *testing.T) *Order { return begun(t, Plain) }
	after := func(t *testing.T) *Order { return loggedIn(t, Plain) }
	for _, c := range []struct {
		phase  string
		order  func(*testing.T) *Order
		key    int16
		ruling Ruling
	}{
		{"before", fresh, versions, Proceed},
		{"before", fresh, handshake, Proceed},
		{"before", fresh, authenticate, RefuseAndClose},
		{"before", fresh, metadata, Close},
		{"before", fresh, produce, Close},
		{"before", fresh, -1, Close},
		{"before", fresh, 9999, Close},
		{"during", during, authenticate, Proceed},
		{"during", during, handshake, RefuseAndClose},
		{"during", during, versions, RefuseAndClose},
		{"during", during, metadata, RefuseAndClose},
		{"during", during, produce, RefuseAndClose},
		{"during", during, 9999, RefuseAndClose},
		{"after", after, produce, Proceed},
		{"after", after, metadata, Proceed},
		{"after", after, versions, Proceed},
		{"after", after, handshake, Proceed},
		{"after", after, authenticate, Refuse},
	} {
		o := c.order(t)
		assert.Equal(t, o.Arrives(start, c.key), c.ruling, "%s the login, key %d", c.phase, c.key)
		closed := c.ruling == Close || c.ruling == RefuseAndClose
		if again := o.Arrives(start, handshake); closed && again != Close {
			t.Errorf("%s the login, after key %d: %s, though the connection closes", c.phase, c.key, again)
		}
	}
}

func TestVersionRequestsBeforeTheHandshakeAreBounded(t *testing.T) {
	o := newTestOrder()
	for range maxVersionRequests {
		assert.MustEqual(t, o.Arrives(start, versions), Proceed)
	}
	assert.Equal(t, o.Arrives(start, versions), Close, "one more")
}

func TestHandshakeNamesAMechanismThatIsEnabled(t *testing.T) {
	for _, mechanism := range []string{"", "GSSAPI", "plain", ScramSHA512} {
		o := newTestOrder()
		assert.Equal(t, o.Handshake(start, 1, mechanism), kerr.UnsupportedSaslMechanism, "%q", mechanism)
		assert.Equal(t, o.Arrives(start, handshake), Close, "%q: then", mechanism)
	}
	o := begun(t, Plain)
	assert.Equal(t, o.Handshake(start, 1, Plain), kerr.IllegalSaslState, "a second handshake")
}

func TestTokensWithoutAHandshakeAreIllegal(t *testing.T) {
	for what, o := range map[string]*Order{"before": newTestOrder(), "after": loggedIn(t, Plain)} {
		outcome, ready := o.Ready()
		assert.True(t, !ready && outcome.Error == kerr.IllegalSaslState, "%s: %v", what, outcome.Error)
	}
}

// Kafka still serves version 0 of the handshake: its tokens have no header.
func TestHandshakeOfVersion0MakesTokensRaw(t *testing.T) {
	for version, raw := range map[int16]bool{0: true, 1: false} {
		o := newTestOrder()
		assert.False(t, o.Raw(), "raw before the handshake")
		assert.MustEqual(t, o.Handshake(start, version, Plain), nil)
		assert.Equal(t, o.Raw(), raw, "version %d: raw", version)
		o.Stepped(start, Step{Done: true, Principal: "alice"}, nil)
		assert.False(t, o.Raw(), "version %d: raw after the login", version)
	}
}

func TestFailuresTellTheClientOnlyWhatTheyMay(t *testing.T) {
	for _, c := range []struct {
		order *Order
		err   error
		want  string
	}{
		{begun(t, Plain), &Failure{Text: "as it is", Reason: errInvalid}, "as it is"},
		{begun(t, Plain), &Failure{Reason: errors.New("no such user")}, "Authentication failed during authentication due to invalid credentials with SASL mechanism PLAIN"},
		{begun(t, ScramSHA256), errors.New("disk on fire"), "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"},
	} {
		outcome := c.order.Stepped(start, Step{}, c.err)
		assert.True(t, outcome.Error == kerr.SaslAuthenticationFailed && outcome.Message == c.want && !outcome.Done && outcome.Reason != nil, "%+v", outcome)
		assert.Equal(t, c.order.Arrives(start, authenticate), Close, "another try")
		assert.Equal(t, c.order.Principal(), "", "a principal without a login")
	}
	o := begun(t, Plain)
	if outcome := o.Stepped(start, Step{Done: true}, nil); outcome.Error == nil || outcome.Done {
		t.Error("a login without a name")
	}
}

func TestSessionsEndWithTheCredentialOrAsTheListenerSays(t *testing.T) {
	for _, c := range []struct {
		mechanism string
		expires   time.Duration // Of the credential; 0: never.
		want      time.Duration // 0: no end.
		ended     bool          // At once.
	}{
		{Plain, 0, 0, false},
		{Plain, time.Minute, time.Minute, false},
		{ScramSHA256, 0, time.Hour, false},
		{ScramSHA256, time.Minute, time.Minute, false},
		{ScramSHA256, 2 * time.Hour, time.Hour, false},
		{Plain, -time.Minute, 0, true},
	} {
		o := begun(t, c.mechanism)
		step := Step{Done: true, Principal: "alice"}
		if c.expires != 0 {
			step.Expires = start.Add(c.expires)
		}
		outcome := o.Stepped(start, step, nil)
		assert.Equal(t, outcome.Lifetime, c.want, "%+v", c)
		if o.Expired(start) != c.ended {
			t.Errorf("%+v: ended at once: %t", c, !c.ended)
		}
		if c.want == 0 {
			continue
		}
		assert.Equal(t, o.Arrives(start.Add(c.want), produce), Proceed, "%+v: at the end", c)
		late := start.Add(c.want + 1)
		assert.True(t, o.Expired(late), "%+v: does not end", c)
		assert.Equal(t, o.Arrives(late, produce), Close, "%+v: after the end", c)
	}
}

// KIP-368: the same mechanism and the same principal, and no more than once a
// second; then the session begins anew.
func TestLoggingInAgain(t *testing.T) {
	o := loggedIn(t, ScramSHA256)
	late := start.Add(2 * time.Hour)
	assert.MustEqual(t, o.Arrives(late, handshake), Proceed, "a session that ended may not go on")
	assert.MustEqual(t, o.Handshake(late, 1, ScramSHA256), nil)
	assert.MustEqual(t, o.Arrives(late, authenticate), Proceed)
	assert.Equal(t, o.Principal(), "alice", "requests under way lose their principal")
	if _, ready := o.Ready(); !ready {
		t.Fatal("not ready")
	}
	if outcome := o.Stepped(late, Step{Done: true, Principal: "alice"}, nil); !outcome.Done || outcome.Lifetime != time.Hour {
		t.Fatalf("%+v", outcome)
	}
	assert.Equal(t, o.Arrives(late.Add(time.Hour), produce), Proceed, "in the new session")
	assert.Equal(t, o.Arrives(late.Add(time.Second-1), handshake), Refuse, "a second login within a second")
	assert.Equal(t, o.Arrives(late.Add(time.Second), handshake), Proceed, "a second login after a second")
}

// The end of one session is not that of the next.
func TestLoggingInAgainWithACredentialThatDoesNotEnd(t *testing.T) {
	o := begun(t, Plain)
	o.Stepped(start, Step{Done: true, Principal: "alice", Expires: start.Add(time.Minute)}, nil)
	assert.MustEqual(t, o.Handshake(start, 1, Plain), nil)
	assert.Equal(t, o.Stepped(start, Step{Done: true, Principal: "alice"}, nil).Lifetime, 0, "the session lasts")
	assert.Equal(t, o.Arrives(start.Add(time.Hour), produce), Proceed, "after the end of the first session")
}

func TestLoggingInAgainRequestsOfOthersWait(t *testing.T) {
	o := loggedIn(t, Plain)
	o.Arrives(start, handshake)
	assert.MustEqual(t, o.Handshake(start, 1, Plain), nil)
	assert.Equal(t, o.Arrives(start, produce), RefuseAndClose, "a Produce between handshake and token")
}

func TestLoggingInAgainAsAnotherFails(t *testing.T) {
	again := func(mechanism string) *Order {
		o := loggedIn(t, Plain)
		o.Arrives(start, handshake)
		assert.MustEqual(t, o.Handshake(start, 1, mechanism), nil)
		return o
	}
	o := again(ScramSHA256)
	outcome, ready := o.Ready()
	if ready || outcome.Error != kerr.SaslAuthenticationFailed || outcome.Message != "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for re-authentication of mechanism 'PLAIN'" {
		t.Errorf("another mechanism: %+v", outcome)
	}
	assert.Equal(t, o.Arrives(start, produce), Close, "afterwards")

	o = again(Plain)
	outcome = o.Stepped(start, Step{Done: true, Principal: "bob"}, nil)
	if outcome.Error != kerr.SaslAuthenticationFailed || outcome.Message != "Cannot change principals during re-authentication from User.alice: User.bob" || outcome.Done {
		t.Errorf("another principal: %+v", outcome)
	}
	assert.True(t, o.Principal() == "alice" && o.Arrives(start, produce) == Close, "the connection goes on")

	outcome = again(Plain).Stepped(start, Step{}, &Failure{Reason: errInvalid})
	if outcome.Message != "Authentication failed during re-authentication due to invalid credentials with SASL mechanism PLAIN" {
		t.Errorf("a wrong password: %+v", outcome)
	}

	o = loggedIn(t, Plain)
	assert.Equal(t, o.Handshake(start, 1, "GSSAPI"), kerr.UnsupportedSaslMechanism)
	assert.Equal(t, o.Arrives(start, produce), Close, "after a mechanism that is not supported")
}
