// Package gate says who the clients of Kafka listeners are: by SASL, or by the certificate of
// TLS. A listener has a gate, a connection a session, which lets requests through to the
// handler if they may come now.
//
//	gate.go        the way in of a listener
//	session.go     who a connection is; the steps of its logins
//	mechanisms.go  the mechanisms of listeners, by their settings
//	users.go       users of the metadata, and the first one
//	peers.go       logins of the brokers of a cluster to each other
//	count.go       logins in the metrics
//	outdated.go    clients whose logins Kafka 4 rejects
//
// What a mechanism is package sasl knows, and what someone may do package auth. Logins over
// HTTP are those of package web/login, with the same users.
package gate

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/certs"
	"muster/internal/listener"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// Options of the gates of a broker.
type Options struct {
	Certs certs.Settings // with the settings, and the log
	// Image returns the newest metadata, nil before there is any.
	Image func() *metadata.Image
	// Shared says that there may be other brokers of the cluster.
	Shared bool
}

// Gates are those of a broker.
type Gates struct {
	Options
	all []*Gate
}

// New returns no gates yet.
func New(opts Options) *Gates { return &Gates{Options: opts} }

// All returns the gates that were made.
func (b *Gates) All() []*Gate { return b.all }

// Gate is a listener's way in: by SASL, or by the certificate of TLS. It is made when the
// listener is opened, and gets its mechanisms when the users are known, before anyone comes.
type Gate struct {
	name       string
	mechanisms []string       // that clients may use; none without SASL
	mapping    *auth.Mapping  // of the names of certificates; nil if no one has to show one
	limit      int            // sasl.server.max.receive.size
	delay      time.Duration  // connection.failed.authentication.delay.ms
	server     *sasl.Server   // nil without SASL
	peers      *sasl.Server   // of brokers, where clients have no SASL; nil if there are none
	logins     *PeerLogins    // of brokers; nil if there are none
	tokens     *sasl.Verifier // of OAUTHBEARER; nil without
	told       []func(Attempt)
	outdated   *outdated
}

// Attempt is a login that succeeded or failed.
type Attempt struct {
	Host, Listener, Mechanism string
	Principal                 auth.Principal // if it failed, who it said to be; empty if it said nothing
	Again                     bool           // the connection had logged in before
	Err                       error          // nil if it succeeded
}

// OnLogin has f be told of every login that ended. It must not block. It is called before
// the listener serves.
func (g *Gate) OnLogin(f func(Attempt)) { g.told = append(g.told, f) }

// Name is that of the listener.
func (g *Gate) Name() string { return g.name }

// SASL says whether clients log in by SASL.
func (g *Gate) SASL() bool { return len(g.mechanisms) > 0 }

// Tokens accepts the tokens of OAUTHBEARER; nil if the listener does not.
func (g *Gate) Tokens() *sasl.Verifier { return g.tokens }

// For makes the gate of a listener, nil if everyone may come in unknown, and brokers of the
// cluster do not come at all.
func (b *Gates) For(name, protocol string) (*Gate, error) {
	g, err := b.make(name, protocol)
	if g != nil && err == nil {
		b.all = append(b.all, g)
	}
	return g, err
}

func (b *Gates) make(name, protocol string) (*Gate, error) {
	of := b.Certs.Config.Of(name, "")
	g := &Gate{name: name, limit: int(of.Int("sasl.server.max.receive.size")), delay: b.Certs.Config.Duration("connection.failed.authentication.delay.ms"), outdated: &outdated{logger: b.Certs.Logger}}
	switch protocol {
	case "SASL_PLAINTEXT", "SASL_SSL":
		g.mechanisms = config.SplitList(of.Get("sasl.enabled.mechanisms"))
		if len(g.mechanisms) == 0 {
			return nil, fmt.Errorf("listener %q: sasl.enabled.mechanisms names none", name)
		}
		return g, b.checkMechanisms(g)
	case "SSL":
		if of.Get("ssl.client.auth") == "none" {
			break
		}
		var err error
		if g.mapping, err = auth.ParseMapping(of.Get("ssl.principal.mapping.rules")); err != nil {
			return nil, fmt.Errorf("listener %q: ssl.principal.mapping.rules: %w", name, err)
		}
		return g, nil
	}
	if !b.peersComeBy(name) {
		return nil, nil
	}
	return g, nil
}

// peersComeBy says whether other brokers of the cluster log in at a listener. Where the
// store is this broker's alone there are no others.
func (b *Gates) peersComeBy(listener string) bool {
	only := b.Certs.Config.Get("inter.broker.listener.name")
	return b.Shared && (only == "" || only == listener)
}

// Enter implements listener.Gate.
func (g *Gate) Enter(client *listener.Client, state *tls.ConnectionState) (listener.Session, error) {
	if g.server != nil {
		return &Session{gate: g, client: client, conn: g.server.Connect()}, nil
	}
	s := &Session{gate: g, client: client, attempted: byCertificate, principal: auth.Anonymous}
	if g.mapping == nil {
		return s, nil
	}
	principal, err := g.certified(state)
	if err != nil {
		s.tell(false, err)
		return nil, err
	}
	if s.principal = principal; principal != auth.Anonymous {
		s.tell(false, nil)
	}
	return s, nil
}

// byCertificate is what the audit log has for a mechanism where a certificate says who
// someone is.
const byCertificate = "TLS"

// Failed implements listener.Gate. Only where a certificate is the login, and was what
// failed, is it one that failed: others of TLS's failures are of networks, of programs that
// look for open ports, and of clients that do not trust this broker.
func (g *Gate) Failed(client *listener.Client, err error) {
	var refused *tls.CertificateVerificationError
	if g.mapping != nil && (errors.As(err, &refused) || strings.Contains(err.Error(), noCertificate)) {
		(&Session{gate: g, client: client, attempted: byCertificate}).tell(false, err)
	}
}

// noCertificate is in the error of package tls for a client that shows none. It has no type.
const noCertificate = "client didn't provide a certificate"

// certified returns who a client is by its certificate. TLS has found that to be of someone
// whom we trust; it may have shown none only where that is allowed.
func (g *Gate) certified(state *tls.ConnectionState) (auth.Principal, error) {
	if state == nil || len(state.PeerCertificates) == 0 {
		return auth.Anonymous, nil
	}
	name, err := auth.SubjectName(state.PeerCertificates[0].RawSubject)
	if err != nil {
		return "", fmt.Errorf("the name in a client's certificate: %w", err)
	}
	principal, err := g.mapping.Principal(name)
	if err != nil {
		return "", fmt.Errorf("ssl.principal.mapping.rules: %w", err)
	}
	return principal, nil
}
