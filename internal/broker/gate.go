package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/listener"
	"muster/internal/metadata/config"
)

// gate is a listener's way in: by SASL, or by the certificate of TLS. It is made when the
// listener is opened, and gets its mechanisms when the users are known, before anybody comes.
type gate struct {
	name       string
	mechanisms []string       // that clients may use; none without SASL
	mapping    *auth.Mapping  // of the names of certificates; nil if nobody has to show one
	limit      int            // sasl.server.max.receive.size
	delay      time.Duration  // connection.failed.authentication.delay.ms
	server     *sasl.Server   // nil without SASL
	peers      *sasl.Server   // of brokers, where clients have no SASL; nil if there are none
	logins     *peerLogins    // of brokers; nil if there are none
	tokens     *sasl.Verifier // of OAUTHBEARER; nil without
	// told hears of every login that ended. It must not block. Nil if nobody wants to know.
	told     func(attempt)
	outdated *outdated
}

// attempt is a login that succeeded or failed.
type attempt struct {
	host, listener, mechanism string
	principal                 auth.Principal // if it failed, who it said to be; empty if it said nothing
	again                     bool           // the connection had logged in before
	err                       error          // nil if it succeeded
}

// newGate returns the gate of a listener, nil if everybody may come in unknown, and brokers
// of the cluster do not come at all.
func (b *Broker) newGate(name, protocol string) (*gate, error) {
	of := b.cfg.Of(name, "")
	g := &gate{name: name, limit: int(of.Int("sasl.server.max.receive.size")), delay: b.cfg.Duration("connection.failed.authentication.delay.ms"), outdated: &outdated{logger: b.logger}}
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
func (b *Broker) peersComeBy(listener string) bool {
	only := b.cfg.Get("inter.broker.listener.name")
	return b.storeKind() == "redis" && (only == "" || only == listener)
}

// Enter implements listener.Gate.
func (g *gate) Enter(client *listener.Client, state *tls.ConnectionState) (listener.Session, error) {
	if g.server != nil {
		return &session{gate: g, client: client, conn: g.server.Connect()}, nil
	}
	s := &session{gate: g, client: client, attempted: byCertificate, principal: auth.Anonymous}
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
// somebody is.
const byCertificate = "TLS"

// Failed implements listener.Gate. Only where a certificate is the login, and was what
// failed, is it one that failed: others of TLS's failures are of networks, of programs that
// look for open ports, and of clients that do not trust this broker.
func (g *gate) Failed(client *listener.Client, err error) {
	var refused *tls.CertificateVerificationError
	if g.mapping != nil && (errors.As(err, &refused) || strings.Contains(err.Error(), noCertificate)) {
		(&session{gate: g, client: client, attempted: byCertificate}).tell(false, err)
	}
}

// noCertificate is in the error of package tls for a client that shows none. It has no type.
const noCertificate = "client didn't provide a certificate"

// certified returns who a client is by its certificate. TLS has found that to be of somebody
// whom we trust; it may have shown none only where that is allowed.
func (g *gate) certified(state *tls.ConnectionState) (auth.Principal, error) {
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
