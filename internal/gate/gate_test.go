package gate

import (
	"crypto/tls"
	"crypto/x509"
	"testing"

	"muster/internal/auth"
	"muster/internal/logintest"
)

func TestThePrincipalOfACertificateIsMadeByTheRules(t *testing.T) {
	mapping, err := auth.ParseMapping("RULE:^CN=(.*?),.*$/$1/U,DEFAULT")
	if err != nil {
		t.Fatal(err)
	}
	authority, err := logintest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	issued, err := authority.Issue("ann")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(issued.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
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
