package keystore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"
)

type issuer struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// issue makes a certificate; by no one it signs itself.
func issue(t *testing.T, by *issuer, name string, number int64) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCRLSign | x509.KeyUsageCertSign}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{t, cert, key}
}

// revokes makes a list.
func (i *issuer) revokes(numbers ...int64) []byte {
	i.t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour)}
	for _, n := range numbers {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(n), RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, i.cert, i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	return der
}

func TestRevokedCertificatesAreThoseOnTheListsOfTheirIssuers(t *testing.T) {
	root := issue(t, nil, "root", 1)
	middle := issue(t, root, "middle", 2)
	ann, bob := issue(t, middle, "ann", 7), issue(t, middle, "bob", 8)
	namesake := issue(t, nil, "middle", 2)
	chain := func(of *issuer) [][]*x509.Certificate {
		return [][]*x509.Certificate{{of.cert, middle.cert, root.cert}}
	}
	for what, c := range map[string]struct {
		lists        [][]byte
		annIs, bobIs error
	}{
		"a list":                 {[][]byte{middle.revokes(7, 9)}, ErrRevoked, nil},
		"an empty list":          {[][]byte{middle.revokes()}, nil, nil},
		"two lists":              {[][]byte{root.revokes(5), middle.revokes(8)}, nil, ErrRevoked},
		"the one in the middle":  {[][]byte{root.revokes(2)}, ErrRevoked, ErrRevoked},
		"a number of another":    {[][]byte{root.revokes(7)}, nil, nil},
		"a list by a namesake":   {[][]byte{namesake.revokes(7, 8)}, nil, nil},
		"a namesake and its own": {[][]byte{namesake.revokes(8), middle.revokes(7)}, ErrRevoked, nil},
	} {
		var text []byte
		for _, der := range c.lists {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})...)
		}
		r, err := ParseRevoked(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Check(chain(ann)); !errors.Is(err, c.annIs) {
			t.Errorf("%s: ann: %v", what, err)
		}
		if err := r.Check(chain(bob)); !errors.Is(err, c.bobIs) {
			t.Errorf("%s: bob: %v", what, err)
		}
	}
	r, err := ParseRevoked(middle.revokes(7))
	if err != nil || r.Check(chain(ann)) == nil {
		t.Errorf("in DER: %v", err)
	}
	other := issue(t, nil, "other", 1)
	if err := r.Check(append(chain(ann), []*x509.Certificate{ann.cert, other.cert})); err != nil {
		t.Errorf("another chain is good: %v", err)
	}
	if got := r.Overdue(time.Now()); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if got := r.Overdue(time.Now().Add(2 * time.Hour)); len(got) != 1 || got[0] != "CN=middle" {
		t.Errorf("%v", got)
	}
	for _, text := range []string{"", "no list", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"} {
		if _, err := ParseRevoked([]byte(text)); err == nil {
			t.Errorf("%q is a list", text)
		}
	}
}

// A list with a signature that Go does not check any more says what it says: who relies on it
// must not find that it counts for nothing.
func TestAListWithAnOldSignatureCounts(t *testing.T) {
	root := issue(t, nil, "root", 1)
	ann := issue(t, root, "ann", 7)
	r, err := ParseRevoked(root.revokes(7))
	if err != nil {
		t.Fatal(err)
	}
	r.lists[0].list.SignatureAlgorithm = x509.MD5WithRSA // Go does not make them either.
	if err := r.Check([][]*x509.Certificate{{ann.cert, root.cert}}); !errors.Is(err, ErrRevoked) {
		t.Error(err)
	}
}
