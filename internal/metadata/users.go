package metadata

import (
	"bytes"
	"maps"
	"slices"
	"sort"
	"strconv"
)

// Credential is what is kept of a user's password for one SCRAM mechanism. With it a
// broker can check a login, and no one can log in.
type Credential struct {
	Hash       int8 // 1 is SHA-256 and 2 SHA-512, as on the wire
	Salt       []byte
	Iterations int
	StoredKey  []byte
	ServerKey  []byte
}

// The hashes of credentials.
const (
	HashSHA256 int8 = 1
	HashSHA512 int8 = 2
)

// String leaves out what must not be seen.
func (Credential) String() string { return "[hidden]" }

// GoString does as well.
func (c Credential) GoString() string { return c.String() }

// Equal says whether two credentials are the same.
func (c Credential) Equal(d Credential) bool {
	return c.Hash == d.Hash && c.Iterations == d.Iterations && bytes.Equal(c.Salt, d.Salt) &&
		bytes.Equal(c.StoredKey, d.StoredKey) && bytes.Equal(c.ServerKey, d.ServerKey)
}

func (c Credential) clone() Credential {
	c.Salt, c.StoredKey, c.ServerKey = bytes.Clone(c.Salt), bytes.Clone(c.StoredKey), bytes.Clone(c.ServerKey)
	return c
}

// UserChange is a change of one credential of a user.
type UserChange struct {
	Name string
	Hash int8
	Set  *Credential // nil deletes it
}

// Users has the users that can log in by a password. It never changes. Nil has none.
type Users struct {
	of   map[string][]Credential // in the order of hashes
	size int
}

// Credential returns what is kept of a user's password for a hash.
func (u *Users) Credential(name string, hash int8) (Credential, bool) {
	for _, c := range u.Credentials(name) {
		if c.Hash == hash {
			return c, true
		}
	}
	return Credential{}, false
}

// Credentials returns all that is kept of a user's password, in the order of hashes. It
// must not be changed.
func (u *Users) Credentials(name string) []Credential {
	if u == nil {
		return nil
	}
	return u.of[name]
}

// Names returns the names of all users in order.
func (u *Users) Names() []string {
	if u == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(u.of))
}

// Len returns how many users there are.
func (u *Users) Len() int {
	if u == nil {
		return 0
	}
	return len(u.of)
}

// Size returns how many bytes the names and credentials take.
func (u *Users) Size() int {
	if u == nil {
		return 0
	}
	return u.size
}

// String says how many there are, so that no credential is printed by mistake.
func (u *Users) String() string { return strconv.Itoa(u.Len()) + " users" }

// GoString does as well.
func (u *Users) GoString() string { return u.String() }

// With returns how many users there would be, and what they would take, if one of them
// had these credentials.
func (u *Users) With(name string, credentials []Credential) (users, bytes int) {
	was := u.Credentials(name)
	users, bytes = u.Len(), u.Size()+sizeOfUser(name, credentials)-sizeOfUser(name, was)
	if len(was) > 0 {
		users--
	}
	if len(credentials) > 0 {
		users++
	}
	return users, bytes
}

// sizeOfUser is what a user adds to Size.
func sizeOfUser(name string, credentials []Credential) int {
	if len(credentials) == 0 {
		return 0
	}
	size := len(name)
	for _, c := range credentials {
		size += len(c.Salt) + len(c.StoredKey) + len(c.ServerKey)
	}
	return size
}

// SetUser replaces the credentials of a user. Without any it is forgotten.
func (e *Edit) SetUser(name string, credentials []Credential) {
	old := e.next.Users
	if len(credentials) == 0 && len(old.Credentials(name)) == 0 {
		return
	}
	_, size := old.With(name, credentials)
	if !e.ownUsers { // The image before has the same ones until now.
		next := &Users{of: map[string][]Credential{}}
		if old != nil {
			next.of = maps.Clone(old.of)
		}
		e.next.Users, e.ownUsers = next, true
	}
	u := e.next.Users
	u.size = size
	delete(u.of, name)
	if len(credentials) > 0 {
		u.of[name] = sortedCredentials(credentials)
	}
	if len(u.of) == 0 {
		e.next.Users, e.ownUsers = nil, false
	}
}

// sortedCredentials returns copies in the order of hashes.
func sortedCredentials(list []Credential) []Credential {
	out := make([]Credential, len(list))
	for i, c := range list {
		out[i] = c.clone()
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Hash < out[j].Hash })
	return out
}
