// Package logintest has what logins need from outside of a broker, for tests of all modules
// here and for the client matrix: an authority that issues certificates, and an issuer of
// tokens. It returns errors, because not all who use it are tests of Go.
package logintest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// Authority issues certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority returns an authority that no one trusts yet.
func NewAuthority() (*Authority, error) {
	a := &Authority{}
	der, key, err := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	})
	if err != nil {
		return nil, err
	}
	a.key = key
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// sign makes a key and a certificate for it, which the authority signs; its own, if it has
// none yet.
func (a *Authority) sign(c *x509.Certificate) ([]byte, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	// The time of a client may be behind by a little.
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	if c.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62)); err != nil {
		return nil, nil, err
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	return der, key, err
}

// PEM is the authority's certificate, for those who trust it.
func (a *Authority) PEM() []byte { return encode("CERTIFICATE", a.cert.Raw) }

// Pool is the certificate for those who trust no one else.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Issue makes a key and a certificate that serves servers on this machine as well as clients
// of that name, which is CN=name,O=Muster.
func (a *Authority) Issue(name string) (tls.Certificate, error) {
	der, key, err := a.sign(&x509.Certificate{
		Subject:  pkix.Name{CommonName: name, Organization: []string{"Muster"}},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// IssuePEM issues a certificate as a key store: the key, and behind it the certificate.
func (a *Authority) IssuePEM(name string) ([]byte, error) {
	c, err := a.Issue(name)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return nil, err
	}
	return append(encode("PRIVATE KEY", private), encode("CERTIFICATE", c.Certificate[0])...), nil
}

// Revoke makes a list of certificates that count no more, in PEM.
func (a *Authority) Revoke(certificates ...tls.Certificate) ([]byte, error) {
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(24 * time.Hour)}
	for _, c := range certificates {
		cert, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			return nil, err
		}
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: cert.SerialNumber, RevocationTime: time.Now()})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	return encode("X509 CRL", der), err
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
