package broker

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
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
// nobody has to keep it and it is never sent. The principal is of a type that no user is of.
const (
	peerMechanism                = "MUSTER-SCRAM-SHA-256"
	peerName                     = "broker"
	peerPrincipal auth.Principal = "Broker:muster"
)

// derived makes of the cluster's secret one for a purpose.
func derived(secret, purpose string) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte("muster: " + purpose))
	return m.Sum(nil)
}

// peerLogin is how brokers log in to each other with a secret. The name says which one it
// is, since for a while after a rotation there are two.
func peerLogin(s metadata.Secret) peer.Login {
	name := peerName
	if s.Number > 0 {
		name += "-" + strconv.Itoa(s.Number)
	}
	return peer.Login{Mechanism: peerMechanism, Name: name, Password: base64.StdEncoding.EncodeToString(derived(s.Text, "logins of brokers"))}
}

// secrets are what the brokers of the cluster have in common, empty before that is known.
func (b *Broker) secrets() metadata.Secrets {
	if image := b.image(); image != nil {
		return image.Secrets
	}
	return metadata.Secrets{}
}

// lasting is the secret that does not change with rotations. It lets nobody in.
func (b *Broker) lasting() string {
	s := b.secrets()
	return s.Lasting()
}

// peerLogins are how the brokers of the cluster log in to each other: the side of the
// client, and that of the server, for which they are the only users.
type peerLogins struct {
	secrets func() metadata.Secrets
	now     func() time.Time
	made    atomic.Pointer[[]peerCredential] // of the secrets of late
}

type peerCredential struct {
	secret     metadata.Secret
	login      peer.Login
	credential sasl.Credential
}

// of returns what follows from a secret, which is made once.
func (p *peerLogins) of(s metadata.Secret) (peerCredential, bool) {
	var made []peerCredential
	if all := p.made.Load(); all != nil {
		made = *all
	}
	for _, c := range made {
		if c.secret == s {
			return c, true
		}
	}
	login := peerLogin(s)
	c, err := sasl.FromPassword(sasl.SHA256, login.Password, derived(s.Text, "salt of brokers"), sasl.MinIterations)
	if err != nil || s.Text == "" {
		return peerCredential{}, false
	}
	next := []peerCredential{{s, login, c}}
	if len(made) > 0 {
		next = append(next, made[0]) // More than two are never of use.
	}
	p.made.Store(&next)
	return next[0], true
}

// login is that of this broker.
func (p *peerLogins) login() peer.Login {
	secrets := p.secrets()
	c, _ := p.of(secrets.Use(p.now()))
	return c.login
}

// accepts says whether brokers may log in by a name now, or stay if they have.
func (p *peerLogins) accepts(name string) (peerCredential, bool) {
	secrets := p.secrets()
	if c, ok := p.of(secrets.Current); ok && c.login.Name == name {
		return c, true
	}
	if !secrets.Overlaps(p.now()) {
		return peerCredential{}, false
	}
	c, ok := p.of(secrets.Previous)
	return c, ok && c.login.Name == name
}

// Credential implements sasl.Users.
func (p *peerLogins) Credential(h sasl.Hash, name string) (sasl.Credential, bool) {
	c, ok := p.accepts(name)
	return c.credential, ok && h == sasl.SHA256
}

// Shapes implements sasl.Users.
func (p *peerLogins) Shapes(h sasl.Hash) []sasl.Shape {
	secrets := p.secrets()
	if c, ok := p.of(secrets.Current); ok && h == sasl.SHA256 {
		return sasl.ShapesOf([]sasl.Credential{c.credential})
	}
	return nil
}

// users are those of an image.
type users = *metadata.Users

// imageUsers are the users of the newest metadata.
type imageUsers struct {
	users func() users
	last  atomic.Pointer[shapes]
}

// shapes are those of the credentials of all users, by their hash.
type shapes struct {
	of     users
	byHash map[sasl.Hash][]sasl.Shape
}

func (u *imageUsers) Credential(h sasl.Hash, name string) (sasl.Credential, bool) {
	c, ok := u.users().Credential(name, int8(h))
	return credential(c), ok
}

// Shapes looks through all users only after they have changed.
func (u *imageUsers) Shapes(h sasl.Hash) []sasl.Shape {
	now := u.users()
	last := u.last.Load()
	if last == nil || last.of != now {
		all := map[sasl.Hash][]sasl.Credential{}
		for _, name := range now.Names() {
			for _, c := range now.Credentials(name) {
				all[sasl.Hash(c.Hash)] = append(all[sasl.Hash(c.Hash)], credential(c))
			}
		}
		last = &shapes{now, map[sasl.Hash][]sasl.Shape{}}
		for hash, credentials := range all {
			last.byHash[hash] = sasl.ShapesOf(credentials)
		}
		u.last.Store(last)
	}
	return last.byHash[h]
}

func credential(c metadata.Credential) sasl.Credential {
	return sasl.Credential{Hash: sasl.Hash(c.Hash), Salt: c.Salt, Iterations: c.Iterations, StoredKey: c.StoredKey, ServerKey: c.ServerKey}
}

// makeFirstUser makes the user of muster.bootstrap.user while there is none. From then on it is
// one as all others, whose password can be changed, only that it may do everything.
func (b *Broker) makeFirstUser(ctx context.Context) error {
	name, password, given := b.cfg.BootstrapUser()
	if !given || b.image().Users.Len() > 0 {
		return nil
	}
	for _, h := range []sasl.Hash{sasl.SHA256, sasl.SHA512} {
		salt, err := sasl.NewSalt(rand.Reader)
		if err != nil {
			return err
		}
		c, err := sasl.FromPassword(h, password, salt, sasl.MinIterations)
		if err != nil {
			return err
		}
		change := metadata.UserChange{Name: name, Hash: int8(h), Set: &metadata.Credential{Hash: int8(h), Salt: c.Salt, Iterations: c.Iterations, StoredKey: c.StoredKey, ServerKey: c.ServerKey}}
		if err := errors.Join(b.controller.AlterUsers(ctx, []metadata.UserChange{change})...); err != nil {
			return fmt.Errorf("muster.bootstrap.user: %w", err)
		}
	}
	b.logger.Info("the first user was made", "user", name)
	return nil
}
