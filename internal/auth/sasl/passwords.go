package sasl

import (
	"fmt"
	"io"
	"maps"
	"slices"
)

// passwordUsers are users whose passwords stand in settings.
type passwordUsers struct {
	credentials map[string]Credential
	shapes      []Shape
}

// UsersOf makes users of passwords by name, which are forgotten: each is derived
// once, so that the rest of the package knows one kind of user.
func UsersOf(passwords map[string]string, random io.Reader) (Users, error) {
	users := &passwordUsers{credentials: make(map[string]Credential, len(passwords))}
	for _, name := range slices.Sorted(maps.Keys(passwords)) {
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
	users.shapes = ShapesOf(slices.Collect(maps.Values(users.credentials)))
	return users, nil
}

func (u *passwordUsers) Credential(h Hash, name string) (Credential, bool) {
	c, ok := u.credentials[name]
	return c, ok && c.Hash == h
}

func (u *passwordUsers) Shapes(h Hash) []Shape {
	if h != SHA256 {
		return nil
	}
	return u.shapes
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

func (b both) Shapes(h Hash) []Shape {
	all := slices.Clone(b.first.Shapes(h))
	for _, shape := range b.second.Shapes(h) {
		if !slices.Contains(all, shape) {
			all = append(all, shape)
		}
	}
	return bounded(all)
}
