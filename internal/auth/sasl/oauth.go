package sasl

import (
	"context"
	"time"
)

// A TokenVerifier says whose token it is. *Verifier is one.
type TokenVerifier interface {
	Verify(ctx context.Context, token string) (Token, error)
}

// A Token is what counts of a token that was accepted.
type Token struct {
	Subject string // The name of the user, as the verifier makes it.
	Groups  string // That the user is in, as the verifier writes them.
	Scopes  []string
	// Ends is when the session of its owner must end.
	Ends time.Time
}

// oauthBearer is OAUTHBEARER (RFC 7628, KIP-255).
type oauthBearer struct{ verifier TokenVerifier }

// NewOAuthBearer makes the mechanism.
func NewOAuthBearer(verifier TokenVerifier) Mechanism { return &oauthBearer{verifier} }

func (o *oauthBearer) Name() string { return OAuthBearer }

func (o *oauthBearer) Start() Exchange { return &bearerExchange{verifier: o.verifier} }

// A bearerExchange is one login. A token that is not accepted is answered by an
// error in JSON as if the exchange went on; the client says with control A that
// it has read it, and only then the login fails.
type bearerExchange struct {
	verifier TokenVerifier
	over     bool
	refused  error // Why the token was not accepted.
}

func (e *bearerExchange) Next(ctx context.Context, message []byte) (Step, error) {
	if e.over {
		return refuse(errOver)
	}
	if e.refused != nil {
		// Whatever it says, a second token among that, this login has failed.
		e.over = true
		return Step{}, &Failure{Text: string(bearerError()), Reason: e.refused}
	}
	m, err := parseBearer(message)
	if err != nil {
		e.over = true
		return refuse(err)
	}
	token, err := e.verifier.Verify(ctx, m.token)
	if err != nil {
		e.refused = err
		return Step{Answer: bearerError()}, nil
	}
	e.over = true
	if m.authzid != "" && m.authzid != token.Subject {
		return Step{}, &Failure{
			Text:   "Authentication failed: Client requested an authorization id that is different from the token's principal name",
			Reason: errIdentity,
		}
	}
	return Step{Answer: []byte{}, Done: true, Principal: token.Subject, Groups: token.Groups, Expires: token.Ends}, nil
}
