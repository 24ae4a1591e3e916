package logintest_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"muster/internal/logintest"
)

func TestACertificateIsTrustedByWhoTrustsItsAuthority(t *testing.T) {
	a, err := logintest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	other, err := logintest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	text, err := a.IssuePEM("ann")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		t.Fatal(err)
	}
	if got := pair.Leaf.Subject.String(); got != "CN=ann,O=Muster" {
		t.Errorf("the name is %s", got)
	}
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth} {
		for _, by := range []*logintest.Authority{a, other} {
			_, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: by.Pool(), DNSName: "127.0.0.1", KeyUsages: []x509.ExtKeyUsage{usage}})
			if (err == nil) != (by == a) {
				t.Errorf("usage %d: %v", usage, err)
			}
		}
	}
	fromPEM := x509.NewCertPool()
	if fromPEM.AppendCertsFromPEM(a.PEM()); !fromPEM.Equal(a.Pool()) {
		t.Error("the PEM text is of another authority")
	}
}

func TestATokenIsSignedByTheKeyThatIsPublished(t *testing.T) {
	i, err := logintest.NewIssuer()
	if err != nil {
		t.Fatal(err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(i.KeySet, &set); err != nil || len(set.Key(logintest.KeyID)) != 1 || !set.Keys[0].IsPublic() {
		t.Fatalf("%s: %v", i.KeySet, err)
	}
	ends := time.UnixMilli(1_900_000_000_500)
	token, err := i.Token(logintest.ClaimsOf("ann", "kafka", ends))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.Verify(set.Keys[0])
	if err != nil {
		t.Fatal(err)
	}
	var said struct {
		Sub, Aud string
		Exp      json.Number
	}
	if err := json.Unmarshal(text, &said); err != nil || said.Sub != "ann" || said.Aud != "kafka" || said.Exp != "1900000000.5" {
		t.Errorf("%s: %+v, %v", text, said, err)
	}
}
