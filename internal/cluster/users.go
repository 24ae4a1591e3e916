package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/record"
)

// Limits of users. Iterations are Kafka's: each login costs the client that many
// hashes, and a login by PLAIN costs us as many.
const (
	maxUsers      = 10_000
	maxUserBytes  = 4 << 20 // of names and credentials together
	maxUserName   = math.MaxInt16
	maxSalt       = 256
	minIterations = 4096
	maxIterations = 16384
)

// keyLengths are those of the keys of a credential, by its hash.
var keyLengths = map[int8]int{metadata.HashSHA256: 32, metadata.HashSHA512: 64}

// AlterUsers sets and deletes credentials, for each user on its own. A user that is named
// twice is not changed, as in Kafka.
func (c *Controller) AlterUsers(ctx context.Context, changes []metadata.UserChange) (errs []error) {
	err := c.durably(ctx, func() error {
		image := c.image.Load()
		errs = checkUsers(image.Users, changes)
		edit := image.Edit()
		var recs []record.Record
		for i, ch := range changes {
			if errs[i] != nil {
				continue
			}
			old := edit.Image().Users.Credentials(ch.Name)
			next := withCredential(old, ch)
			if errs[i] = checkUserRoom(edit.Image().Users, ch.Name, next); errs[i] != nil || slices.EqualFunc(old, next, metadata.Credential.Equal) {
				continue
			}
			edit.SetUser(ch.Name, next)
			recs = append(recs, userRecord(ch.Name, next))
		}
		if len(recs) == 0 {
			return nil
		}
		return c.change(ctx, edit, recs...)
	})
	return fill(errs, err)
}

// checkUsers returns what is wrong with changes. All changes of a user have one error:
// that of the first that has one, or that there is more than one.
func checkUsers(users *metadata.Users, changes []metadata.UserChange) []error {
	wrong := make(map[string]error, len(changes))
	for _, ch := range changes {
		was, again := wrong[ch.Name]
		switch {
		case was != nil: // The first error stays.
		case again:
			wrong[ch.Name] = metadata.Refuse(kerr.DuplicateResource, "A user credential cannot be altered twice in the same request")
		default:
			wrong[ch.Name] = checkUser(users, ch)
		}
	}
	errs := make([]error, len(changes))
	for i, ch := range changes {
		errs[i] = wrong[ch.Name]
	}
	return errs
}

// checkUser has Kafka's order and words where Kafka checks.
func checkUser(users *metadata.Users, ch metadata.UserChange) error {
	length, known := keyLengths[ch.Hash]
	switch {
	case ch.Name == "":
		return unacceptable("Username must not be empty")
	case !known:
		return metadata.Refuse(kerr.UnsupportedSaslMechanism, "Unknown SCRAM mechanism")
	case ch.Set == nil:
		if _, ok := users.Credential(ch.Name, ch.Hash); !ok {
			return metadata.Refuse(kerr.ResourceNotFound, "Attempt to delete a user credential that does not exist")
		}
		return nil
	case len(ch.Name) > maxUserName || !utf8.ValidString(ch.Name):
		return unacceptable("the name of a user has at most %d bytes and is valid UTF-8", maxUserName)
	case ch.Set.Iterations < minIterations:
		return unacceptable("Too few iterations")
	case ch.Set.Iterations > maxIterations:
		return unacceptable("Too many iterations")
	case len(ch.Set.Salt) == 0 || len(ch.Set.Salt) > maxSalt:
		return unacceptable("the salt must have 1 to %d bytes", maxSalt)
	case ch.Set.Hash != ch.Hash || len(ch.Set.StoredKey) != length || len(ch.Set.ServerKey) != length:
		return unacceptable("the salted password must not be empty")
	}
	return nil
}

func unacceptable(format string, args ...any) error {
	return metadata.Refuse(kerr.UnacceptableCredential, format, args...)
}

// withCredential returns the credentials of a user after a change.
func withCredential(old []metadata.Credential, ch metadata.UserChange) []metadata.Credential {
	next := slices.DeleteFunc(slices.Clone(old), func(c metadata.Credential) bool { return c.Hash == ch.Hash })
	if ch.Set == nil {
		return next
	}
	i, _ := slices.BinarySearchFunc(next, ch.Hash, func(c metadata.Credential, hash int8) int { return int(c.Hash) - int(hash) })
	return slices.Insert(next, i, *ch.Set)
}

// checkUserRoom refuses what would take more room than there is. What takes less than
// before is never refused.
func checkUserRoom(u *metadata.Users, name string, next []metadata.Credential) error {
	switch users, bytes := u.With(name, next); {
	case users > max(maxUsers, u.Len()):
		return metadata.Refuse(kerr.PolicyViolation, "there are %d users already, which is the limit", u.Len())
	case bytes > max(maxUserBytes, u.Size()):
		return metadata.Refuse(kerr.PolicyViolation, "the users would take %d bytes, which is more than %d", bytes, maxUserBytes)
	}
	return nil
}

// userValue is the value of a user's record.
type userValue struct {
	Credentials []credentialValue `json:"credentials"`
}

type credentialValue struct {
	Hash       int8   `json:"hash"`
	Salt       []byte `json:"salt"`
	Iterations int    `json:"iterations"`
	StoredKey  []byte `json:"storedKey"`
	ServerKey  []byte `json:"serverKey"`
}

func userRecord(name string, credentials []metadata.Credential) record.Record {
	if len(credentials) == 0 {
		return tombstone(keyUserPrefix + name)
	}
	var v userValue
	for _, c := range credentials {
		v.Credentials = append(v.Credentials, credentialValue(c))
	}
	return keyed(keyUserPrefix+name, v)
}

func applyUser(edit *metadata.Edit, name string, r *record.Record) error {
	var v userValue
	if !r.Tombstone() {
		if err := json.Unmarshal(r.Value, &v); err != nil {
			return fmt.Errorf("metadata record of user %q: %w", name, err)
		}
	}
	var credentials []metadata.Credential
	for _, c := range v.Credentials {
		credentials = append(credentials, metadata.Credential(c))
	}
	edit.SetUser(name, credentials)
	return nil
}
