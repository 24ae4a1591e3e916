// Package login says who people are that come over HTTP: by the name and password of a user,
// by a token of an issuer, or by a login at one (OpenID Connect). The users are those of
// the Kafka listeners. Sessions, which a browser's cookie names, are in memory: after a
// restart people log in again.
//
//	gate.go      who people are and what they may do
//	check.go     passwords and tokens, told to the audit log and counted
//	oidc.go      logins at an issuer
//	sessions.go  who has logged in at the console
package login

import (
	"context"
	"errors"
	"time"

	"muster/internal/auth"
)

// How someone has logged in.
const (
	None      = "none"
	WayBasic  = "basic"  // The name and the password come with every request.
	WayCookie = "cookie" // They came once, by the form.
	WayBearer = "bearer" // A token of an issuer comes with every request.
	WayOIDC   = "oidc"   // They logged in at an issuer.
)

// ErrLogin is that a name and a password do not belong together.
var ErrLogin = errors.New("no user has this name and password")

// ErrLoginBusy is that too many are logging in.
var ErrLoginBusy = errors.New("too many are logging in")

// ErrToken is that a token is not accepted.
var ErrToken = errors.New("the token is not accepted")

// Attempt is someone who says who they are.
type Attempt struct {
	Way            string // As in Session.Login.
	Name, Password string
	Token          string // Instead of these, of an issuer.
	Host           string // That they come from.
}

// Identity is who someone has shown to be.
type Identity struct {
	Principal auth.Principal
	Groups    auth.Groups // That they are in.
	// Proof is a mark of what they have shown it by, empty for what holds until it ends.
	Proof string
	// Ends is when it counts no more; zero for never.
	Ends time.Time
}

// Issuer lets people log in elsewhere, by OpenID Connect's authorization code.
type Issuer interface {
	// Address is where to send a browser that comes back to redirect.
	Address(ctx context.Context, redirect, state, nonce, challenge string) (string, error)
	// Redeem says for whom a code is that someone came back with. The verifier is that of
	// the challenge (PKCE).
	Redeem(ctx context.Context, redirect, code, verifier, nonce, host string) (Identity, error)
}
