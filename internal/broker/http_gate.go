package broker

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
	"muster/internal/web"
)

// httpGate says who people are that come over HTTP, and what they may do. Its users are
// those of the Kafka listeners. It implements web.Gate.
type httpGate struct {
	b     *Broker
	plain sasl.Mechanism
	users *sasl.Directory
	// tokens accept those of issuers, of all listeners that do.
	tokens []*sasl.Verifier
	issuer *oidcIssuer   // nil for none
	delay  time.Duration // connection.failed.authentication.delay.ms
	// always says that people log in though the cluster has no users: a setting names
	// some, or all who come by a Kafka listener have to log in.
	always bool
}

// httpLogins bounds the logins over HTTP that need a password derived. That is done for one
// at a time, so that those who guess take no more than a processor.
var httpLogins = sasl.Limits{Turns: 1, Logins: 64, From: 24, As: 4, Known: 16}

// openHTTPGate gives the gate its users, which are known by now.
func (b *Broker) openHTTPGate(ctx context.Context) error {
	g := b.httpGate
	if g == nil {
		return nil
	}
	g.delay = b.cfg.Duration("connection.failed.authentication.delay.ms")
	var err error
	if g.issuer, err = b.openOIDC(ctx); err != nil {
		return err
	}
	g.always = g.issuer != nil
	passwords := map[string]string{}
	for _, e := range b.endpoints {
		g.always = g.always || e.login || e.gate != nil && b.cfg.Of(e.Listener, "").Get("ssl.client.auth") == "required"
		if e.gate == nil {
			continue
		}
		own, err := b.gates.Passwords(e.Listener)
		if err != nil {
			return err
		}
		maps.Copy(passwords, own)
		if tokens := e.gate.Tokens(); tokens != nil {
			g.tokens = append(g.tokens, tokens)
		}
	}
	users := gate.NewUsers(b.image)
	if len(passwords) > 0 {
		own, err := sasl.UsersOf(passwords, rand.Reader)
		if err != nil {
			return err
		}
		users = sasl.Both(own, users)
	}
	g.users = sasl.NewDirectory(users, b.gates.Invented())
	g.know()
	g.plain = sasl.NewPlain(g.users, sasl.NewLimiter(httpLogins), []byte(rand.Text()), gate.RememberPasswords)
	return nil
}

// Issuer implements web.Gate.
func (g *httpGate) Issuer() web.Issuer {
	if g.issuer == nil {
		return nil
	}
	return g.issuer
}

// WantsLogin implements web.Gate.
func (g *httpGate) WantsLogin() bool { return g.always || g.b.image().Users.Len() > 0 }

// AlwaysWantsLogin implements web.Gate.
func (g *httpGate) AlwaysWantsLogin() bool { return g.always }

// May implements web.Gate.
func (g *httpGate) May(q auth.Request) (allowed bool, command string) {
	allowed, command = g.b.front.handler.Load().Allowed(q)
	if !allowed {
		g.tellDenied(q)
	}
	return allowed, command
}

func (g *httpGate) tellDenied(q auth.Request) {
	g.b.countDenial(q)
	g.tell(audit.Entry{
		Kind: audit.Denied, Principal: string(q.Principal), Host: q.Host, Operation: q.Operation.String(),
		Resources: []audit.Resource{{Type: strings.ToLower(q.Type.String()), Name: q.Name}},
	})
}

// Sees implements web.Gate.
func (g *httpGate) Sees(q auth.Request) bool { return g.b.front.handler.Load().Sees(q) }
