package sasl

import "testing"

func TestAProofIsOfOneUserWithOnePassword(t *testing.T) {
	users := newUsers()
	users.set(t, SHA256, "ann", "anns")
	users.set(t, SHA256, "bob", "anns")
	d := NewDirectory(users, []byte("secret"))
	proof := func(d *Directory, name string) string {
		t.Helper()
		p, known := d.Proof(name)
		if !known || p == "" {
			t.Fatalf("%s has no proof", name)
		}
		return p
	}
	first := proof(d, "ann")
	if again := proof(d, "ann"); again != first {
		t.Error("it is another at each look")
	}
	if proof(d, "bob") == first {
		t.Error("two users have the same")
	}
	if proof(NewDirectory(users, []byte("other")), "ann") == first {
		t.Error("it does not depend on the secret")
	}
	if p, known := d.Proof("nobody"); known || p != "" {
		t.Errorf("nobody has %q", p)
	}
	users.set(t, SHA512, "ann", "more")
	if proof(d, "ann") != first {
		t.Error("a password that PLAIN does not look at changes it")
	}
	users.set(t, SHA256, "ann", "anns") // With another salt.
	second := proof(d, "ann")
	if second == first {
		t.Error("a user who was made anew has the old one")
	}
	users.remove(SHA256, "ann")
	if third := proof(d, "ann"); third == first || third == second {
		t.Error("another password has an old one")
	}
	users.remove(SHA512, "ann")
	if _, known := d.Proof("ann"); known {
		t.Error("who is gone has one")
	}
}
