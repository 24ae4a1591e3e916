package gate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/logintest"
	"muster/internal/metadata"
	"muster/internal/meter"
)

func TestThePrincipalOfACertificateIsMadeByTheRules(t *testing.T) {
	mapping, err := auth.ParseMapping("RULE:^CN=(.*?),.*$/$1/U,DEFAULT")
	assert.Must(t, err)
	authority, err := logintest.NewAuthority()
	assert.Must(t, err)
	issued, err := authority.Issue("ann")
	assert.Must(t, err)
	cert, err := x509.ParseCertificate(issued.Certificate[0])
	assert.Must(t, err)
	g := &Gate{mapping: mapping}
	for _, c := range []struct {
		state *tls.ConnectionState
		want  auth.Principal
	}{
		{nil, auth.Anonymous},
		{&tls.ConnectionState{}, auth.Anonymous},
		{&tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}, "User:ANN"},
	} {
		if got, err := g.certified(c.state); err != nil || got != c.want {
			t.Errorf("%v (%v), want %v", got, err, c.want)
		}
	}
	cert.RawSubject = []byte("no name")
	if got, err := g.certified(&tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}); err == nil {
		t.Errorf("a name that cannot be read is %v", got)
	}
}

func TestLoginsAreCounted(t *testing.T) {
	meters := meter.New()
	sasl, ssl := &Gate{name: "SASL", mechanisms: []string{"PLAIN"}}, &Gate{name: "SSL", mapping: &auth.Mapping{}}
	all := &Gates{all: []*Gate{sasl, ssl}}
	told := 0
	sasl.OnLogin(func(Attempt) { told++ })
	all.Count(&meters.Logins)
	assert.Equal(t, len(meters.Logins.Read()), 4, "kinds are known before there is any")
	bad := errors.New("wrong password")
	tell := func(g *Gate, a Attempt) {
		for _, told := range g.told {
			told(a)
		}
	}
	tell(sasl, Attempt{Listener: "SASL", Mechanism: "PLAIN", Principal: "User:ann"})
	tell(sasl, Attempt{Listener: "SASL", Mechanism: "PLAIN", Err: bad})
	tell(sasl, Attempt{Listener: "SASL", Mechanism: "made up", Err: bad})
	tell(sasl, Attempt{Listener: "SASL", Mechanism: PeerMechanism, Principal: peerPrincipal})
	tell(ssl, Attempt{Listener: "SSL", Mechanism: byCertificate, Err: bad})
	want := map[meter.Labels]float64{
		{"SASL", "PLAIN", "success"}: 1, {"SASL", "PLAIN", "failure"}: 1, {"SASL", "other", "failure"}: 1,
		{"SSL", "TLS", "success"}: 0, {"SSL", "TLS", "failure"}: 1,
	}
	if got := meters.Logins.Read(); fmt.Sprint(got) != fmt.Sprint(want) || told != 4 {
		t.Errorf("%v, told of %d", got, told)
	}
}

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
		assert.Equal(t, p.Login().Name, login, "%s: it logs in as", step)
		for name, want := range accepts {
			if _, ok := p.Credential(sasl.SHA256, name); ok != want {
				t.Errorf("%s: %s is accepted: %t", step, name, ok)
			}
		}
		got := p.HTTPKeys()
		assert.MustEqual(t, len(got), len(keys), "%s: keys", step)
		for i, k := range keys {
			assert.True(t, bytes.Equal(got[i], HTTPKey(k)), "%s: key %d is another", step, i)
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
	assert.True(t, p.HTTPKeys() == nil, "there are keys without a secret")
}

// Two secrets are good after a rotation, not any number: the name of an older one is none.
func TestAfterTwoRotationsTheFirstSecretIsNoMore(t *testing.T) {
	now := time.Unix(1000, 0)
	first := metadata.Secrets{Current: metadata.Secret{Text: "one"}}
	second := first.Rotate("two", now)
	third := second.Rotate("three", now)
	p := &PeerLogins{Image: func() *metadata.Image { return &metadata.Image{Secrets: third} }, Now: func() time.Time { return now }}
	for name, want := range map[string]bool{
		PeerLogin(first.Current).Name: false, PeerLogin(second.Current).Name: true, PeerLogin(third.Current).Name: true, "": false, "broker-4": false,
	} {
		_, ok := p.Credential(sasl.SHA256, name)
		assert.Equal(t, ok, want, "%q is accepted", name)
	}
}
