package login

import (
	"context"
	"crypto/rand"
	"maps"
	"strings"
	"time"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/gate"
	"muster/internal/handler"
	"muster/internal/meter"
)

// Options of the login of a broker.
type Options struct {
	Gates *gate.Gates // of the Kafka listeners, whose users are the same
	// Handler knows what someone may do. It is there once the broker has started.
	Handler func() *handler.Handler
	Meters  *meter.Meters
	// Audit is told who logs in, and what they are denied.
	Audit func(audit.Entry)
}

// Gate says who people are that come over HTTP, and what they may do. Its users are
// those of the Kafka listeners. It implements web.Gate.
type Gate struct {
	Options
	plain sasl.Mechanism
	users *sasl.Directory
	// tokens accept those of issuers, of all listeners that do.
	tokens []*sasl.Verifier
	issuer *OIDC         // nil for none
	delay  time.Duration // connection.failed.authentication.delay.ms
	// always says that people log in though the cluster has no users: a setting names
	// some, or all who come by a Kafka listener have to log in.
	always bool
}

// New returns a gate that lets no one in before it is opened.
func New(opts Options) *Gate { return &Gate{Options: opts} }

// passwords bounds the logins over HTTP that need a password derived. That is done for one
// at a time, so that those who guess take no more than a processor.
var passwords = sasl.Limits{Turns: 1, Logins: 64, From: 24, As: 4, Known: 16}

// Open gives the gate its users, which are known by now. With ctx ends what asks the issuer.
func (g *Gate) Open(ctx context.Context) error {
	cfg := g.Gates.Certs.Config
	g.delay = cfg.Duration("connection.failed.authentication.delay.ms")
	var err error
	if g.issuer, err = g.openIssuer(ctx); err != nil {
		return err
	}
	g.always = g.issuer != nil
	named := map[string]string{}
	for _, l := range g.Gates.All() {
		g.always = g.always || l.SASL() || cfg.Of(l.Name(), "").Get("ssl.client.auth") == "required"
		own, err := g.Gates.Passwords(l.Name())
		if err != nil {
			return err
		}
		maps.Copy(named, own)
		if tokens := l.Tokens(); tokens != nil {
			g.tokens = append(g.tokens, tokens)
		}
	}
	users := gate.NewUsers(g.Gates.Image)
	if len(named) > 0 {
		own, err := sasl.UsersOf(named, rand.Reader)
		if err != nil {
			return err
		}
		users = sasl.Both(own, users)
	}
	g.users = sasl.NewDirectory(users, g.Gates.Invented())
	g.know()
	g.plain = sasl.NewPlain(g.users, sasl.NewLimiter(passwords), []byte(rand.Text()), gate.RememberPasswords)
	return nil
}

// Issuer implements web.Gate.
func (g *Gate) Issuer() Issuer {
	if g.issuer == nil {
		return nil
	}
	return g.issuer
}

// WantsLogin implements web.Gate.
func (g *Gate) WantsLogin() bool { return g.always || g.Gates.Image().Users.Len() > 0 }

// AlwaysWantsLogin implements web.Gate.
func (g *Gate) AlwaysWantsLogin() bool { return g.always }

// May implements web.Gate.
func (g *Gate) May(q auth.Request) (allowed bool, command string) {
	allowed, command = g.Handler().Allowed(q)
	if !allowed {
		g.TellDenied(q)
	}
	return allowed, command
}

// TellDenied tells of something that someone may not do.
func (g *Gate) TellDenied(q auth.Request) {
	g.Meters.CountDenial(q.Operation.String(), q.Type.String())
	g.Audit(audit.Entry{
		Kind: audit.Denied, Principal: string(q.Principal), Host: q.Host, Operation: q.Operation.String(),
		Resources: []audit.Resource{{Type: strings.ToLower(q.Type.String()), Name: q.Name}},
	})
}

// Sees implements web.Gate.
func (g *Gate) Sees(q auth.Request) bool { return g.Handler().Sees(q) }
