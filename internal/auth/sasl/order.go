package sasl

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// maxVersionRequests bounds the ApiVersions before the handshake. Kafka takes
	// one that succeeds; clients that try an older version after a refusal need
	// a second and third. Without a bound, one could keep a connection that
	// never logs in alive for ever.
	maxVersionRequests = 8

	// minReauthInterval is Kafka's: a connection logs in again at most once a
	// second.
	minReauthInterval = time.Second
)

// A Ruling says what becomes of a request, before anything but its key is read.
type Ruling int8

// The rulings.
const (
	// Proceed: handle it. SaslHandshake and SaslAuthenticate go to the
	// connection's methods of these names, all others to the handlers.
	Proceed Ruling = iota
	// Refuse: answer with ILLEGAL_SASL_STATE, and the connection stays.
	Refuse
	// RefuseAndClose: answer with ILLEGAL_SASL_STATE, then close.
	RefuseAndClose
	// Close: close without an answer.
	Close
)

func (r Ruling) String() string {
	return [...]string{"proceed", "refuse", "refuse and close", "close"}[r]
}

type phase int8

const (
	beforeHandshake phase = iota
	exchanging
	authenticated
	over
)

// Order is the state of a connection: what may come next, who it is, and until
// when. It is pure: it is told the time, and what an exchange said.
type Order struct {
	enabled   []string
	maxReauth map[string]time.Duration // connections.max.reauth.ms by mechanism.

	phase    phase
	versions int  // ApiVersions seen before the handshake.
	raw      bool // Tokens come without SaslAuthenticate: a handshake of version 0.

	mechanism string // Of the login that succeeded last.
	attempted string // Of the exchange under way.
	principal string // Empty until the first login.
	expires   time.Time
	reauthAt  time.Time // When the connection last began to log in again.
}

// NewOrder begins a connection on a listener with these mechanisms.
func NewOrder(enabled []string, maxReauth map[string]time.Duration) *Order {
	return &Order{enabled: enabled, maxReauth: maxReauth}
}

// Principal returns who the connection is, empty before the first login. During
// another login it is still the one before.
func (o *Order) Principal() string { return o.principal }

// Raw says that the next frame is a bare token, without a request header.
func (o *Order) Raw() bool { return o.phase == exchanging && o.raw }

// Expired says whether the session has ended; then only a SaslHandshake is
// heard.
func (o *Order) Expired(now time.Time) bool {
	return !o.expires.IsZero() && now.After(o.expires)
}

// Arrives rules on a request by its key.
func (o *Order) Arrives(now time.Time, key int16) Ruling {
	var ruling Ruling
	switch o.phase {
	case beforeHandshake:
		ruling = o.arrivesFirst(key)
	case exchanging:
		ruling = o.arrivesDuring(key)
	case authenticated:
		ruling = o.arrivesAfter(now, key)
	default:
		ruling = Close
	}
	if ruling == Close || ruling == RefuseAndClose {
		o.phase = over
	}
	return ruling
}

// arrivesFirst rules before the handshake. As in Kafka other requests are not
// parsed, let alone answered: whoever sends them has no right to make us work, and
// mostly is no client of a listener with SASL. One that does know SASL is told what
// it did wrong.
func (o *Order) arrivesFirst(key int16) Ruling {
	switch kmsg.Key(key) {
	case kmsg.SASLHandshake:
		return Proceed
	case kmsg.ApiVersions:
		o.versions++
		if o.versions > maxVersionRequests {
			return Close
		}
		return Proceed
	case kmsg.SASLAuthenticate:
		return RefuseAndClose
	default:
		return Close
	}
}

// arrivesDuring rules between the handshake and the end of the login. As in Kafka
// any other request is answered with the error, and then the connection closes.
func (o *Order) arrivesDuring(key int16) Ruling {
	if kmsg.Key(key) == kmsg.SASLAuthenticate {
		return Proceed
	}
	return RefuseAndClose
}

// arrivesAfter rules once the client has logged in. As in Kafka, a handshake
// begins another login (KIP-368), unless the last one was a moment ago, and that
// is also how a session that has ended goes on.
func (o *Order) arrivesAfter(now time.Time, key int16) Ruling {
	if kmsg.Key(key) == kmsg.SASLHandshake && (o.reauthAt.IsZero() || now.Sub(o.reauthAt) >= minReauthInterval) {
		return Proceed
	}
	switch {
	case o.Expired(now):
		return Close
	case kmsg.Key(key) == kmsg.SASLHandshake, kmsg.Key(key) == kmsg.SASLAuthenticate:
		return Refuse
	default:
		return Proceed
	}
}

// Handshake takes the mechanism a client asks for and returns the error of the
// answer, which always lists the enabled mechanisms. After an error the
// connection closes.
func (o *Order) Handshake(now time.Time, version int16, mechanism string) *kerr.Error {
	switch {
	case o.phase != beforeHandshake && o.phase != authenticated:
		o.phase = over
		return kerr.IllegalSaslState
	case !slices.Contains(o.enabled, mechanism):
		o.phase = over
		return kerr.UnsupportedSaslMechanism
	}
	if o.phase == authenticated {
		o.reauthAt = now
	}
	o.phase, o.raw, o.attempted = exchanging, version == 0, mechanism
	return nil
}

// An Outcome is the answer to a token. With an Error the connection closes, and
// if tokens come raw, it does so without an answer.
type Outcome struct {
	Error    *kerr.Error
	Message  string // For the client, if there is an error.
	Answer   []byte
	Lifetime time.Duration // How long the session lasts, as the answer says it; 0 for ever.
	Done     bool
	Reason   error  // For our log, if there is an error.
	Name     string // Of the user that the client said to be, if there is an error.

	RepeatedNonce bool   // As in Step.
	Groups        string // As in Step.
}

// Ready says whether a token may go to the exchange. Another login must use the
// mechanism of the first one (KIP-368). Kafka closes without a word in that
// case; we say why.
func (o *Order) Ready() (Outcome, bool) {
	switch {
	case o.phase != exchanging:
		o.phase = over
		return Outcome{Error: kerr.IllegalSaslState, Message: kerr.IllegalSaslState.Description, Reason: errOver}, false
	case o.principal != "" && o.attempted != o.mechanism:
		text := fmt.Sprintf("SASL mechanism '%s' requested by client is not supported for re-authentication of mechanism '%s'", o.attempted, o.mechanism)
		return o.fail(&Failure{Text: text, Reason: errors.New("another mechanism at re-authentication")}), false
	default:
		return Outcome{}, true
	}
}

// Stepped takes what the exchange said to a token.
func (o *Order) Stepped(now time.Time, step Step, err error) Outcome {
	switch {
	case err != nil:
		return o.fail(err)
	case !step.Done:
		return Outcome{Answer: step.Answer}
	case step.Principal == "":
		return o.fail(errors.New("a login without a name"))
	case o.principal != "" && step.Principal != o.principal:
		// Both names are the client's own: it has logged in as each of them.
		text := fmt.Sprintf("Cannot change principals during re-authentication from User.%s: User.%s", o.principal, step.Principal)
		return o.fail(&Failure{Text: text, Reason: errors.New("another principal at re-authentication")})
	}
	o.phase, o.principal, o.mechanism = authenticated, step.Principal, o.attempted
	lifetime := o.begin(now, step.Expires)
	return Outcome{Answer: step.Answer, Lifetime: lifetime, Done: true, RepeatedNonce: step.RepeatedNonce, Groups: step.Groups}
}

// begin starts a session, which lasts as long as the credential does and as the
// listener allows, whichever is shorter.
func (o *Order) begin(now, credential time.Time) time.Duration {
	o.expires = credential
	if most := o.maxReauth[o.mechanism]; most > 0 && (credential.IsZero() || now.Add(most).Before(credential)) {
		o.expires = now.Add(most)
	}
	if o.expires.IsZero() {
		return 0
	}
	return max(o.expires.Sub(now), 0)
}

func (o *Order) fail(err error) Outcome {
	o.phase = over
	outcome := Outcome{Error: kerr.SaslAuthenticationFailed, Reason: err}
	if failure := (*Failure)(nil); errors.As(err, &failure) {
		outcome.Message, outcome.Name = failure.Text, failure.Name
	}
	if outcome.Message == "" {
		attempt := "authentication"
		if o.principal != "" {
			attempt = "re-authentication"
		}
		outcome.Message = fmt.Sprintf("Authentication failed during %s due to invalid credentials with SASL mechanism %s", attempt, o.attempted)
	}
	return outcome
}
