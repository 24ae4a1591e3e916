package sasl

import (
	"context"
	"errors"
	"time"
)

// The names of the mechanisms, as in sasl.enabled.mechanisms.
const (
	ScramSHA256 = "SCRAM-SHA-256"
	ScramSHA512 = "SCRAM-SHA-512"
	Plain       = "PLAIN"
	OAuthBearer = "OAUTHBEARER"
)

// A Mechanism makes exchanges. One is shared by all connections of a listener.
type Mechanism interface {
	Name() string
	Start() Exchange
}

// An Exchange is one login. After an error or a step that is done it is over
// and refuses every further message.
type Exchange interface {
	// Next takes a message of the client. It may wait, for processor time or for
	// the keys of an issuer, as long as ctx lasts. It keeps nothing of message.
	Next(ctx context.Context, message []byte) (Step, error)
}

// A Step is what a message of the client led to.
type Step struct {
	Answer []byte
	// Done says that the client is who it says; the rest is valid only then.
	Done      bool
	Principal string    // The name alone, without "User:".
	Groups    string    // As in Token.
	Expires   time.Time // When the credential ends; zero if it does not.
	// RepeatedNonce says that a SCRAM client put its nonce before ours, as librdkafka
	// before 2.6.1 does and other brokers refuse.
	RepeatedNonce bool
}

// A Failure is a login that did not succeed. Text goes to the client and so
// never depends on whether the user exists; without one the client is told what
// Kafka says of invalid credentials. Reason and Name are for our own logs, and hold
// no secret either.
type Failure struct {
	Text   string
	Reason error
	Name   string // Of the user that the client said to be; empty if it did not.
}

func (f *Failure) Error() string { return f.Reason.Error() }

func (f *Failure) Unwrap() error { return f.Reason }

var (
	errOver     = errors.New("a message after the end of the exchange")
	errTooLong  = errors.New("the message is too long")
	errMessage  = errors.New("the message is malformed")
	errIdentity = errors.New("the authorization id is not the user")
	errInvalid  = errors.New("invalid credentials")
)

// refuse is a failure of which the client is told no more than that it failed.
func refuse(reason error) (Step, error) { return Step{}, &Failure{Reason: reason} }

// by returns an error with the name of the user that the client said to be.
func by(name string, err error) error {
	if failure := (*Failure)(nil); errors.As(err, &failure) {
		failure.Name = name
	}
	return err
}

// otherIdentity is the failure of a client that wants to act for someone else,
// in Kafka's words. It is told before any user is looked up.
func otherIdentity() error {
	return &Failure{
		Text:   "Authentication failed: Client requested an authorization id that is different from username",
		Reason: errIdentity,
	}
}
