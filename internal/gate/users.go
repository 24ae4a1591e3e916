package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"

	"muster/internal/auth/sasl"
	"muster/internal/metadata"
)

// imageUsers are the users of the newest metadata.
type imageUsers struct {
	users func() *metadata.Users
	last  atomic.Pointer[shapes]
}

// NewUsers returns the users of the newest metadata.
func NewUsers(image func() *metadata.Image) sasl.Users {
	return &imageUsers{users: func() *metadata.Users { return image().Users }}
}

// shapes are those of the credentials of all users, by their hash.
type shapes struct {
	of     *metadata.Users
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

// MakeFirstUser makes the user of muster.bootstrap.user while there is none. From then on it is
// one as all others, whose password can be changed, only that it may do everything.
func (b *Gates) MakeFirstUser(ctx context.Context, alter func(context.Context, []metadata.UserChange) []error) error {
	name, password, given := b.Certs.Config.BootstrapUser()
	if !given || b.Image().Users.Len() > 0 {
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
		if err := errors.Join(alter(ctx, []metadata.UserChange{change})...); err != nil {
			return fmt.Errorf("muster.bootstrap.user: %w", err)
		}
	}
	b.Certs.Logger.Info("the first user was made", "user", name)
	return nil
}
