package login

import (
	"context"
	"errors"
	"strings"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/fair"
	"muster/internal/gate"
	"muster/internal/meter"
)

// Login implements web.Gate.
func (g *Gate) Login(ctx context.Context, a Attempt) (Identity, error) {
	if a.Token != "" {
		return g.byToken(ctx, a)
	}
	return g.byPassword(ctx, a)
}

// byPassword says who someone is by a password. Those who send it with every request are
// told of only if it had to be derived: others are remembered, and come all the time.
func (g *Gate) byPassword(ctx context.Context, a Attempt) (Identity, error) {
	// Taken before the password is looked at: if that changes meanwhile, the proof is
	// worth nothing, and not one of a password that no one has shown.
	proof, known := g.users.Proof(a.Name)
	if !known {
		proof = "of nobody"
	}
	waits := &sasl.Login{From: fair.Neighbourhood(a.Host)}
	defer waits.End() // After the wait of a wrong one: that is how fast an address can guess.
	step, err := g.plain.Start().Next(waits.With(ctx), []byte("\x00"+a.Name+"\x00"+a.Password))
	var failure *sasl.Failure
	switch {
	case errors.As(err, &failure):
		return Identity{}, g.refuse(ctx, a, failure, ErrLogin)
	case errors.Is(err, sasl.ErrBusy):
		return Identity{}, ErrLoginBusy
	case err != nil:
		return Identity{}, err
	}
	who := auth.User(step.Principal)
	if waits.Derived || a.Way != WayBasic {
		g.tellLogin(audit.Login, who, a)
	}
	return Identity{Principal: who, Proof: proof}, nil
}

// byToken says who someone is by a token, if an issuer of one of the Kafka listeners has
// made it.
func (g *Gate) byToken(ctx context.Context, a Attempt) (Identity, error) {
	err := errors.New("no listener accepts tokens")
	for _, v := range g.tokens {
		var token sasl.Token
		if token, err = v.Verify(ctx, a.Token); err == nil {
			who := auth.User(token.Subject)
			g.tellLogin(audit.Login, who, a)
			return Identity{Principal: who, Groups: auth.Groups(token.Groups), Ends: token.Ends}, nil
		}
		if ctx.Err() != nil {
			return Identity{}, ctx.Err()
		}
	}
	return Identity{}, g.refuse(ctx, a, err, ErrToken)
}

// refuse tells of a login that failed, and has whoever tried wait.
func (g *Gate) refuse(ctx context.Context, a Attempt, why, answer error) error {
	e := audit.Entry{Kind: audit.LoginFailed, Host: a.Host, Reason: why.Error(), Mechanism: mechanismOf(a.Way)}
	if a.Name != "" {
		e.Principal = string(auth.User(a.Name))
	}
	g.Audit(e)
	g.count(a, gate.LoginFailed)
	gate.Wait(ctx, g.delay)
	return answer
}

// Holds implements web.Gate.
func (g *Gate) Holds(id Identity) bool {
	if id.Proof == "" {
		return true // It is of an issuer, whose word counts until it ends.
	}
	proof, known := g.users.Proof(strings.TrimPrefix(string(id.Principal), string(auth.User(""))))
	return known && proof == id.Proof
}

// LoggedOut implements web.Gate.
func (g *Gate) LoggedOut(id Identity, host string) {
	g.tellLogin(audit.Logout, id.Principal, Attempt{Way: WayCookie, Host: host})
}

// mechanismOf is what the audit log has for the mechanism of logins over HTTP.
func mechanismOf(way string) string { return strings.ToUpper(way) }

// listenerHTTP stands for the listener of logins over HTTP.
const listenerHTTP = "HTTP"

func (g *Gate) count(a Attempt, result string) {
	g.Meters.Logins.Add(meter.Labels{listenerHTTP, mechanismOf(a.Way), result}, 1)
}

// know makes all ways of logging in known, so that the first login is seen as a change.
func (g *Gate) know() {
	for _, way := range []string{WayBasic, WayCookie, WayBearer, WayOIDC} {
		for _, result := range []string{gate.Succeeded, gate.LoginFailed} {
			g.Meters.Logins.Add(meter.Labels{listenerHTTP, mechanismOf(way), result}, 0)
		}
	}
}

func (g *Gate) tellLogin(kind audit.Kind, who auth.Principal, a Attempt) {
	if kind == audit.Login {
		g.count(a, gate.Succeeded)
	}
	g.Audit(audit.Entry{Kind: kind, Principal: string(who), Host: a.Host, Mechanism: mechanismOf(a.Way)})
}
