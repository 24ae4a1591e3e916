package broker

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"sync/atomic"

	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/metadata"
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

// peerPassword is what brokers log in to each other with.
func peerPassword(secret string) string {
	return base64.StdEncoding.EncodeToString(derived(secret, "logins of brokers"))
}

// secret is what the brokers of the cluster have in common, empty before that is known.
func (b *Broker) secret() string {
	if image := b.image(); image != nil {
		return image.Secret
	}
	return ""
}

// peerUsers has one user, the brokers of the cluster.
type peerUsers struct {
	secret func() string
	last   atomic.Pointer[peerCredential]
}

type peerCredential struct {
	secret     string
	credential sasl.Credential
	ok         bool
}

func (u *peerUsers) Credential(h sasl.Hash, name string) (sasl.Credential, bool) {
	c, ok := u.credential(h)
	return c, ok && name == peerName
}

func (u *peerUsers) Shapes(h sasl.Hash) []sasl.Shape {
	if c, ok := u.credential(h); ok {
		return sasl.ShapesOf([]sasl.Credential{c})
	}
	return nil
}

// credential derives the credential when the secret is another than before, as it is when the
// store that keeps it is put back.
func (u *peerUsers) credential(h sasl.Hash) (sasl.Credential, bool) {
	secret := u.secret()
	last := u.last.Load()
	if last == nil || last.secret != secret {
		c, err := sasl.FromPassword(sasl.SHA256, peerPassword(secret), derived(secret, "salt of brokers"), sasl.MinIterations)
		last = &peerCredential{secret, c, err == nil && secret != ""}
		u.last.Store(last)
	}
	return last.credential, last.ok && h == sasl.SHA256
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
