package sasl

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"

	client "github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
)

// A name that does not exist must not be told from one that does by what the
// broker sends, nor by what it does.
func TestScramUnknownNamesLookAndCostLikeWrongPasswords(t *testing.T) {
	for _, h := range []Hash{SHA256, SHA512} {
		for name, salts := range map[string]func() []byte{
			"Kafka's tools": func() []byte { return []byte("1omfro7zwmumr3umxudzyj6scf") },
			"kadm":          func() []byte { s := make([]byte, 24); _, _ = rand.Read(s); return s },
			"librdkafka":    func() []byte { s := make([]byte, 64); _, _ = rand.Read(s); return s },
		} {
			users := newUsers()
			users.setSalted(t, h, "alice", "pw", salts(), 8192)
			users.setSalted(t, h, "bobby", "pw", salts(), 8192)
			directory, work := counted(users)
			server := NewScram(h, directory, rand.Reader)
			attempt := func(user string) (sent int, cost [2]int64, err error) {
				work.take()
				_, sent, err = login(t, franz(h, client.Auth{User: user, Pass: "wrong"}), server)
				return sent, work.take(), err
			}
			sent, cost, err := attempt("alice")
			wantFailure(t, err, "", errInvalid)
			for _, unknown := range []string{"alicf", "bobbz", "carol", "admin"} {
				s, c, err := attempt(unknown)
				wantFailure(t, err, "", errInvalid)
				if !sameCost(c, cost) || s != sent && (name != "Kafka's tools" || max(s-sent, sent-s) > 4) {
					t.Errorf("%s, salts of %s: %d bytes, work %v; a wrong password: %d, %v", unknown, name, s, c, sent, cost)
				}
			}
		}
	}
}

func TestInventedSaltsStayTheSame(t *testing.T) {
	users := newUsers()
	one := NewDirectory(users, []byte("secret"))
	c, known := one.find(SHA256, "nobody")
	assert.MustFalse(t, known, "nobody is known")
	if again, _ := NewDirectory(users, []byte("secret")).find(SHA256, "nobody"); !bytes.Equal(again.Salt, c.Salt) {
		t.Error("the same name has another salt on another broker")
	}
	for what, other := range map[string]Credential{
		"another name":   one.invent(SHA256, "nobodz"),
		"another hash":   one.invent(SHA512, "nobody"),
		"another secret": NewDirectory(users, []byte("secreu")).invent(SHA256, "nobody"),
	} {
		assert.False(t, bytes.Equal(other.Salt, c.Salt), "%s has the same salt", what)
	}
	assert.True(t, isSaltText(c.Salt) && c.Iterations == MinIterations, "without users a salt is %q with %d iterations", c.Salt, c.Iterations)
	assert.NoError(t, c.Check())
}

// Who asks for a name before and after users come and go must not learn from its salt that
// it is invented.
func TestInventedSaltsStayTheSameWhenUsersComeAndGo(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	for _, h := range []Hash{SHA256, SHA512} {
		users := newUsers()
		users.set(t, h, "first", "pw")
		users.setSalted(t, h, "second", "pw", bytes.Repeat([]byte{0xfe}, 24), 8192)
		d := NewDirectory(users, []byte("secret"))
		challenges := func() (all [100]string) {
			for i := range all {
				c, known := d.find(h, fmt.Sprint("nobody", i))
				assert.MustFalse(t, known, "nobody is known")
				all[i] = fmt.Sprint(c.Salt, c.Iterations)
			}
			return all
		}
		before := challenges()
		changed := func() (n int) {
			for i, now := range challenges() {
				if now != before[i] {
					n++
				}
			}
			return n
		}
		for i := range 20 {
			users.set(t, h, fmt.Sprint("user", i), "pw")
			users.setSalted(t, h, fmt.Sprint("other", i), "pw", bytes.Repeat([]byte{0xf0, byte(i)}, 12), 8192)
			assert.MustEqual(t, changed(), 0, "of 100 invented salts changed with user %d", i)
		}
		users.set(t, h, "first", "another password")
		for i := range 20 {
			users.remove(h, fmt.Sprint("user", i))
			users.remove(h, fmt.Sprint("other", i))
		}
		assert.Equal(t, changed(), 0, "of 100 invented salts changed when users went")
		// A tool that was not used before leaves most names as they are, and all when it goes.
		users.setSalted(t, h, "third", "pw", bytes.Repeat([]byte{0xfe}, 64), 4096)
		if n := changed(); n < 10 || n > 60 {
			t.Errorf("%d of 100 invented salts changed with a shape of three", n)
		}
		users.remove(h, "third")
		assert.Equal(t, changed(), 0, "of 100 invented salts are others than before")
	}
}

func TestShapesAreFewAndOfUsableCredentials(t *testing.T) {
	var credentials []Credential
	for i := range 100 {
		c, err := FromSalted(SHA256, make([]byte, 1+i%50), []byte("x"), MinIterations)
		must(t, err)
		credentials = append(credentials, c)
	}
	assert.Equal(t, len(ShapesOf(credentials)), maxShapes, "shapes")
	credentials[0].Iterations = 1
	if shapes := ShapesOf(credentials[:1]); len(shapes) != 0 {
		t.Errorf("a credential out of bounds has the shape %v", shapes)
	}
}

func TestInventedSaltsLookLikeThoseOfUsers(t *testing.T) {
	users := newUsers()
	users.set(t, SHA512, "a", "pw")
	if salt := NewDirectory(users, nil).invent(SHA512, "nobody").Salt; !isSaltText(salt) {
		t.Errorf("%q, where a user has one as Kafka's tools make them", salt)
	}
	users.setSalted(t, SHA256, "a", "pw", bytes.Repeat([]byte{0xfe}, 24), 8192)
	users.setSalted(t, SHA256, "b", "pw", bytes.Repeat([]byte{0xfe}, 64), 4096)
	d := NewDirectory(users, []byte("secret"))
	seen := make(map[[2]int]int)
	for i := range 200 {
		c := d.invent(SHA256, strings.Repeat("n", i+1))
		seen[[2]int{len(c.Salt), c.Iterations}]++
	}
	assert.True(t, len(seen) == 2 && seen[[2]int{24, 8192}] >= 50 && seen[[2]int{64, 4096}] >= 50, "salt length and iterations: %v", seen)
}

// No one logs in with an invented credential, even if its keys became known.
func TestInventedCredentialsLogNobodyIn(t *testing.T) {
	users := newUsers()
	d := NewDirectory(users, []byte("secret"))
	invented, err := FromPassword(SHA256, "pw", []byte("salt"), MinIterations)
	must(t, err)
	c := honest("nobody", "pw")
	e := &scramExchange{scram: &scram{hash: SHA256, directory: d, random: rand.Reader}}
	if _, err := e.Next(context.Background(), []byte(c.header+c.bare)); err != nil {
		t.Fatal(err)
	}
	e.credential = invented
	e.challenge = "r=" + e.nonce + ",s=c2FsdA==,i=4096"
	_, err = e.Next(context.Background(), c.final(t, []byte(e.challenge)))
	wantFailure(t, err, "", errInvalid)
}

// A stored credential that no request of ours could have made is no credential.
func TestStoredCredentialsOutOfBoundsLogNobodyIn(t *testing.T) {
	for what, spoil := range map[string]func(*Credential){
		"few iterations":  func(c *Credential) { c.Iterations = MinIterations - 1 },
		"many iterations": func(c *Credential) { c.Iterations = MaxIterations + 1 },
		"another hash":    func(c *Credential) { c.Hash = SHA512; c.StoredKey = make([]byte, 64); c.ServerKey = make([]byte, 64) },
		"no stored key":   func(c *Credential) { c.StoredKey = nil },
		"no server key":   func(c *Credential) { c.ServerKey = nil },
		"no salt":         func(c *Credential) { c.Salt = nil },
	} {
		users := newUsers()
		users.set(t, SHA256, "alice", "pw")
		c := users.credentials[SHA256]["alice"]
		spoil(&c)
		users.credentials[SHA256]["alice"] = c
		found, known := NewDirectory(users, []byte("secret")).find(SHA256, "alice")
		assert.False(t, known, "%s: found", what)
		assert.NoError(t, found.Check(), "%s", what)
	}
}

func TestCredentialBounds(t *testing.T) {
	salted := make([]byte, 32)
	salt := []byte("salt")
	for _, c := range []struct {
		hash       Hash
		salt       []byte
		salted     []byte
		iterations int
		want       error
	}{
		{SHA256, salt, salted, 4096, nil},
		{SHA256, salt, salted, 16384, nil},
		{SHA256, salt, salted, 4095, ErrIterations},
		{SHA256, salt, salted, 16385, ErrIterations},
		{SHA256, salt, salted, -1, ErrIterations},
		{SHA512, salt, make([]byte, 64), 4096, nil},
		{SHA512, salt, salted, 4096, nil},
		{SHA256, salt, salted[:1], 4096, nil},
		{SHA256, salt, nil, 4096, ErrSalted},
		{SHA512, salt, []byte{}, 4096, ErrSalted},
		{SHA256, nil, salted, 4096, ErrSalt},
		{SHA256, make([]byte, 256), salted, 4096, nil},
		{SHA256, make([]byte, 257), salted, 4096, ErrSalt},
		{0, salt, salted, 4096, ErrHash},
		{3, salt, salted, 4096, ErrHash},
	} {
		if _, err := FromSalted(c.hash, c.salt, c.salted, c.iterations); err != c.want {
			t.Errorf("hash %d, salt of %d, key of %d, %d iterations: %v, not %v", c.hash, len(c.salt), len(c.salted), c.iterations, err, c.want)
		}
	}
	if _, err := FromPassword(SHA256, "pw", salt, 1<<30); err != ErrIterations {
		t.Error("a password is derived with too many iterations:", err)
	}
}

// What AlterUserScramCredentials carries gives the same credential as the
// password itself.
func TestSaltedPasswordsMakeTheCredentialOfThePassword(t *testing.T) {
	salt := []byte("0123456789")
	salted, err := derive(standard, SHA512, "pw", salt, 5000)
	must(t, err)
	one, err := FromSalted(SHA512, salt, salted, 5000)
	must(t, err)
	users := newUsers()
	users.credentials[SHA512] = map[string]Credential{"alice": one}
	users.names[SHA512] = []string{"alice"}
	server := NewScram(SHA512, NewDirectory(users, nil), rand.Reader)
	wantLogin(t, franz(SHA512, client.Auth{User: "alice", Pass: "pw"}), server, "alice")
	salt[0] = 'x'
	assert.True(t, one.Salt[0] != 'x', "the credential shares its salt with the request")
}

func TestNewSaltsAreAsKafkasToolsMakeThem(t *testing.T) {
	salt, err := NewSalt(bytes.NewReader(bytes.Repeat([]byte{0xff}, saltBytes)))
	assert.True(t, err == nil && string(salt) == "1omfro7zwmumr3umxudzyj6scf", "130 bits that are set: %q, %v", salt, err)
	seen := make(map[string]bool)
	for range 100 {
		salt, err := NewSalt(rand.Reader)
		must(t, err)
		assert.MustTrue(t, isSaltText(salt) && !seen[string(salt)], "salt %q", salt)
		seen[string(salt)] = true
	}
	if _, err := NewSalt(bytes.NewReader(nil)); err == nil {
		t.Error("a salt without randomness")
	}
}
