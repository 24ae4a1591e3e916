package gate

import (
	"bytes"
	"testing"
	"time"

	"muster/internal/auth/sasl"
	"muster/internal/metadata"
)

// After a rotation brokers log in by the old secret until all have heard of the new one, then
// by that; for a while both are believed, then only the new one. Over HTTP it is the same.
func TestBrokersKnowEachOtherByTheSecretOfTheCluster(t *testing.T) {
	first := metadata.Secrets{Current: metadata.Secret{Text: "one"}}
	began := time.Unix(1000, 0)
	secrets, now := first, began
	p := &PeerLogins{Image: func() *metadata.Image { return &metadata.Image{Secrets: secrets} }, Now: func() time.Time { return now }}
	old, next := PeerLogin(first.Current), metadata.Secret{Text: "two", Number: 1}
	check := func(step string, login string, accepts map[string]bool, keys ...metadata.Secret) {
		t.Helper()
		if got := p.Login().Name; got != login {
			t.Errorf("%s: it logs in as %s", step, got)
		}
		for name, want := range accepts {
			if _, ok := p.Credential(sasl.SHA256, name); ok != want {
				t.Errorf("%s: %s is accepted: %t", step, name, ok)
			}
		}
		got := p.HTTPKeys()
		if len(got) != len(keys) {
			t.Fatalf("%s: %d keys", step, len(got))
		}
		for i, k := range keys {
			if !bytes.Equal(got[i], HTTPKey(k)) {
				t.Errorf("%s: key %d is another", step, i)
			}
		}
	}
	check("at first", old.Name, map[string]bool{old.Name: true, PeerLogin(next).Name: false}, first.Current)
	secrets = first.Rotate("two", now)
	check("after the rotation", old.Name, map[string]bool{old.Name: true, PeerLogin(next).Name: true}, first.Current, next)
	now = began.Add(metadata.SecretSwitch)
	check("after the switch", PeerLogin(next).Name, map[string]bool{old.Name: true, PeerLogin(next).Name: true}, next, first.Current)
	now = began.Add(metadata.SecretOverlap)
	check("at the end", PeerLogin(next).Name, map[string]bool{old.Name: false, PeerLogin(next).Name: true}, next)
	if _, ok := p.Credential(sasl.SHA512, PeerLogin(next).Name); ok {
		t.Error("another hash is accepted")
	}
	secrets = metadata.Secrets{}
	if p.HTTPKeys() != nil {
		t.Error("there are keys without a secret")
	}
}
