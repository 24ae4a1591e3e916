package sasl

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// passwordUsers are users whose passwords stand in settings.
type passwordUsers struct {
	names       []string // Sorted.
	credentials map[string]Credential
}

// UsersOf makes users of passwords by name, which are forgotten: each is derived
// once, so that the rest of the package knows one kind of user.
func UsersOf(passwords map[string]string, random io.Reader) (Users, error) {
	users := &passwordUsers{
		names:       slices.Sorted(maps.Keys(passwords)),
		credentials: make(map[string]Credential, len(passwords)),
	}
	for _, name := range users.names {
		salt, err := NewSalt(random)
		if err != nil {
			return nil, err
		}
		credential, err := FromPassword(SHA256, passwords[name], salt, MinIterations)
		if err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		users.credentials[name] = credential
	}
	return users, nil
}

func (u *passwordUsers) Credential(h Hash, name string) (Credential, bool) {
	c, ok := u.credentials[name]
	return c, ok && c.Hash == h
}

func (u *passwordUsers) Model(h Hash, number uint64) (Credential, bool) {
	if h != SHA256 || len(u.names) == 0 {
		return Credential{}, false
	}
	return u.credentials[u.names[number%uint64(len(u.names))]], true
}

// Both joins users of two kinds. Where both know a name, the first is right.
func Both(first, second Users) Users { return both{first, second} }

type both struct{ first, second Users }

func (b both) Credential(h Hash, name string) (Credential, bool) {
	first, ok := b.first.Credential(h, name)
	second, okSecond := b.second.Credential(h, name)
	if ok {
		return first, true
	}
	return second, okSecond
}

func (b both) Model(h Hash, number uint64) (Credential, bool) {
	first, ok := b.first.Model(h, number>>1)
	second, okSecond := b.second.Model(h, number>>1)
	if ok && (!okSecond || number&1 == 0) {
		return first, true
	}
	return second, okSecond
}
