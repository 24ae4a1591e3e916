package gate

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/metadata"
	"muster/internal/peer"
)

// Brokers of a cluster log in to each other by a mechanism of their own, which is SCRAM under
// another name. Its only user's password follows from the secret of the cluster, so that
// no one has to keep it and it is never sent. The principal is of a type that no user is of.
const (
	PeerMechanism                = "MUSTER-SCRAM-SHA-256"
	peerName                     = "broker"
	peerPrincipal auth.Principal = "Broker:muster"
)

// Derived makes of the cluster's secret one for a purpose.
func Derived(secret, purpose string) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte("muster: " + purpose))
	return m.Sum(nil)
}

// PeerLogin is how brokers log in to each other with a secret. The name says which one it
// is, since for a while after a rotation there are two.
func PeerLogin(s metadata.Secret) peer.Login {
	name := peerName
	if s.Number > 0 {
		name += "-" + strconv.Itoa(s.Number)
	}
	return peer.Login{Mechanism: PeerMechanism, Name: name, Password: base64.StdEncoding.EncodeToString(Derived(s.Text, "logins of brokers"))}
}

// Secrets are what the brokers of the cluster have in common, empty before that is known.
func Secrets(image *metadata.Image) metadata.Secrets {
	if image != nil {
		return image.Secrets
	}
	return metadata.Secrets{}
}

// PeerLogins are how the brokers of the cluster log in to each other: the side of the
// client, and that of the server, for which they are the only users.
type PeerLogins struct {
	Image func() *metadata.Image
	Now   func() time.Time
	made  atomic.Pointer[[]PeerCredential] // of the secrets of late
}

// PeerCredential is what brokers log in with that have a secret, on both sides.
type PeerCredential struct {
	secret     metadata.Secret
	Login      peer.Login
	Credential sasl.Credential
}

// Credentials returns what follows from a secret; zero for none.
func (p *PeerLogins) Credentials(s metadata.Secret) PeerCredential {
	c, _ := p.of(s)
	return c
}

// of returns what follows from a secret, which is made once.
func (p *PeerLogins) of(s metadata.Secret) (PeerCredential, bool) {
	var made []PeerCredential
	if all := p.made.Load(); all != nil {
		made = *all
	}
	for _, c := range made {
		if c.secret == s {
			return c, true
		}
	}
	login := PeerLogin(s)
	c, err := sasl.FromPassword(sasl.SHA256, login.Password, Derived(s.Text, "salt of brokers"), sasl.MinIterations)
	if err != nil || s.Text == "" {
		return PeerCredential{}, false
	}
	next := []PeerCredential{{s, login, c}}
	if len(made) > 0 {
		next = append(next, made[0]) // More than two are never of use.
	}
	p.made.Store(&next)
	return next[0], true
}

// Login is that of this broker.
func (p *PeerLogins) Login() peer.Login {
	secrets := Secrets(p.Image())
	c, _ := p.of(secrets.Use(p.Now()))
	return c.Login
}

// accepts says whether brokers may log in by a name now, or stay if they have.
func (p *PeerLogins) accepts(name string) (PeerCredential, bool) {
	secrets := Secrets(p.Image())
	if c, ok := p.of(secrets.Current); ok && c.Login.Name == name {
		return c, true
	}
	if !secrets.Overlaps(p.Now()) {
		return PeerCredential{}, false
	}
	c, ok := p.of(secrets.Previous)
	return c, ok && c.Login.Name == name
}

// Credential implements sasl.Users.
func (p *PeerLogins) Credential(h sasl.Hash, name string) (sasl.Credential, bool) {
	c, ok := p.accepts(name)
	return c.Credential, ok && h == sasl.SHA256
}

// Shapes implements sasl.Users.
func (p *PeerLogins) Shapes(h sasl.Hash) []sasl.Shape {
	secrets := Secrets(p.Image())
	if c, ok := p.of(secrets.Current); ok && h == sasl.SHA256 {
		return sasl.ShapesOf([]sasl.Credential{c.Credential})
	}
	return nil
}

// HTTPKeys are by which brokers know each other over HTTP. They follow from the secrets of the cluster as the newest metadata has them: if the
// store has lost those, another one is made when the brokers join again, and all go on
// with the new one.
func (p *PeerLogins) HTTPKeys() [][]byte {
	secrets := Secrets(p.Image())
	if secrets.Current.Text == "" {
		return nil
	}
	now := p.Now()
	keys := [][]byte{HTTPKey(secrets.Current)}
	if secrets.Overlaps(now) {
		keys = append(keys, HTTPKey(secrets.Previous))
		if secrets.Use(now) == secrets.Previous {
			slices.Reverse(keys)
		}
	}
	return keys
}

// HTTPKey is the key of a secret.
func HTTPKey(s metadata.Secret) []byte { return Derived(s.Text, "questions of brokers over HTTP") }
