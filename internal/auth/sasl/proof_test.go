package sasl

import (
	"bytes"
	"context"
	"crypto/rand"
	"testing"

	"muster/internal/assert"
)

// Who changes a password may keep salt and iterations: the keys alone tell the two apart.
func TestAProofDependsOnTheKeys(t *testing.T) {
	users := newUsers()
	d := NewDirectory(users, []byte("secret"))
	salt := []byte("the same salt")
	users.setSalted(t, SHA256, "ann", "one", salt, MinIterations)
	first, _ := d.Proof("ann")
	users.setSalted(t, SHA256, "ann", "two", salt, MinIterations)
	if second, known := d.Proof("ann"); !known || second == first {
		t.Error("another password with the same salt has the same proof")
	}
	for what, spoil := range map[string]func(*Credential){
		"stored key": func(c *Credential) { c.StoredKey = bytes.Repeat([]byte{7}, 32) },
		"server key": func(c *Credential) { c.ServerKey = bytes.Repeat([]byte{7}, 32) },
	} {
		users.setSalted(t, SHA256, "ann", "one", salt, MinIterations)
		c := users.credentials[SHA256]["ann"]
		spoil(&c)
		users.credentials[SHA256]["ann"] = c
		if other, known := d.Proof("ann"); !known || other == first {
			t.Errorf("another %s has the same proof", what)
		}
	}
}

// A user without keys has no password: no login succeeds, and there is nothing to prove.
func TestAUserWithoutKeysHasNoProofAndNeverLogsIn(t *testing.T) {
	for what, spoil := range map[string]func(*Credential){
		"none":        func(c *Credential) { c.StoredKey, c.ServerKey = nil, nil },
		"empty":       func(c *Credential) { c.StoredKey, c.ServerKey = []byte{}, []byte{} },
		"stored":      func(c *Credential) { c.StoredKey = nil },
		"server":      func(c *Credential) { c.ServerKey = nil },
		"half a key":  func(c *Credential) { c.StoredKey = c.StoredKey[:16] },
		"a longer":    func(c *Credential) { c.ServerKey = append(bytes.Clone(c.ServerKey), 0) },
		"keys of 512": func(c *Credential) { c.StoredKey, c.ServerKey = make([]byte, 64), make([]byte, 64) },
	} {
		users := newUsers()
		users.set(t, SHA256, "ann", "pw")
		c := users.credentials[SHA256]["ann"]
		spoil(&c)
		users.credentials[SHA256]["ann"] = c
		d := NewDirectory(users, []byte("secret"))
		if proof, known := d.Proof("ann"); known || proof != "" {
			t.Errorf("%s: there is a proof", what)
		}
		assert.Error(t, honest("ann", "pw").login(t, NewScram(SHA256, d, rand.Reader)), "%s: SCRAM lets ann", what)
		plain := NewPlain(d, NewLimiter(Limits{Turns: 1}), []byte("s"), 10).Start()
		if step, err := plain.Next(context.Background(), []byte("\x00ann\x00pw")); err == nil || step.Done {
			t.Errorf("%s: PLAIN lets ann in", what)
		}
	}
}

func TestAProofIsOfOneUserWithOnePassword(t *testing.T) {
	users := newUsers()
	users.set(t, SHA256, "ann", "anns")
	users.set(t, SHA256, "bob", "anns")
	d := NewDirectory(users, []byte("secret"))
	proof := func(d *Directory, name string) string {
		t.Helper()
		p, known := d.Proof(name)
		assert.MustTrue(t, known && p != "", "%s has no proof", name)
		return p
	}
	first := proof(d, "ann")
	assert.Equal(t, proof(d, "ann"), first, "it is another at each look")
	assert.True(t, proof(d, "bob") != first, "two users have the same")
	assert.True(t, proof(NewDirectory(users, []byte("other")), "ann") != first, "it does not depend on the secret")
	if p, known := d.Proof("nobody"); known || p != "" {
		t.Errorf("nobody has %q", p)
	}
	users.set(t, SHA512, "ann", "more")
	assert.Equal(t, proof(d, "ann"), first, "a password that PLAIN does not look at changes it")
	users.set(t, SHA256, "ann", "anns") // With another salt.
	second := proof(d, "ann")
	assert.True(t, second != first, "a user who was made anew has the old one")
	users.remove(SHA256, "ann")
	if third := proof(d, "ann"); third == first || third == second {
		t.Error("another password has an old one")
	}
	users.remove(SHA512, "ann")
	if _, known := d.Proof("ann"); known {
		t.Error("who is gone has one")
	}
}
