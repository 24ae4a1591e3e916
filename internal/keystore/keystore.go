// Package keystore reads what TLS needs from files: key stores, trust stores, lists of revoked
// certificates, and the names that Kafka's settings have for protocols and cipher suites. It
// holds no state and knows no settings.
//
//	keystore.go  PEM, PKCS#12 and JKS; the content says which it is
//	pkcs8.go     private keys in PEM that a password protects
//	revoked.go   certificates that their issuers took back
//	protocol.go  ssl.enabled.protocols, ssl.protocol and ssl.cipher.suites
package keystore

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	jks "github.com/pavlo-v-chernykh/keystore-go/v4"
	"software.sslmate.com/src/go-pkcs12"
)

// Passwords open a store. Key protects a private key; if it is empty, Store does, as in Kafka.
type Passwords struct {
	Store, Key string
}

func (p Passwords) key() string {
	if p.Key != "" {
		return p.Key
	}
	return p.Store
}

var (
	errNoKey  = errors.New("there is no private key")
	errNoCert = errors.New("there is no certificate")
)

// jksMagic and jceksMagic are how the files of Java's own stores begin.
const (
	jksMagic   = 0xfeedfeed
	jceksMagic = 0xcececece
	sequence   = 0x30 // how DER, and so PKCS#12, begins
)

// Certificate reads the private key of a store, and the chain of its certificate.
func Certificate(content []byte, p Passwords) (*tls.Certificate, error) {
	switch {
	case startsWith(content, jksMagic):
		return certificateOfJKS(content, p)
	case startsWith(content, jceksMagic):
		return nil, errJCEKS
	case isDER(content):
		return certificateOfPKCS12(content, p)
	}
	content, err := decryptPEM(content, p.key())
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(content, content)
	return &cert, err
}

// Certificates reads all certificates of a store, those of private keys among them.
func Certificates(content []byte, p Passwords) (all []*x509.Certificate, err error) {
	switch {
	case startsWith(content, jksMagic):
		all, err = certificatesOfJKS(content, p)
	case startsWith(content, jceksMagic):
		err = errJCEKS
	case isDER(content):
		all, err = certificatesOfPKCS12(content, p)
	default:
		all, err = certificatesOfPEM(content)
	}
	if err == nil && len(all) == 0 {
		err = errNoCert
	}
	return all, err
}

var errJCEKS = errors.New("stores of the type JCEKS are not supported; convert it with keytool -importkeystore to PKCS12")

func startsWith(content []byte, magic uint32) bool {
	return len(content) >= 4 && binary.BigEndian.Uint32(content) == magic
}

// isDER looks at the length too, which is of the long form: a text may begin with a zero.
func isDER(content []byte) bool {
	return len(content) > 1 && content[0] == sequence && content[1]&0x80 != 0
}

// certificatesOfPEM reads what can be read: a bundle may hold one that Go does not take.
func certificatesOfPEM(content []byte) (all []*x509.Certificate, err error) {
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, parseErr := x509.ParseCertificate(block.Bytes)
		if parseErr != nil {
			err = parseErr
			continue
		}
		all = append(all, cert)
	}
	if len(all) > 0 {
		err = nil
	}
	return all, err
}

func certificateOfPKCS12(content []byte, p Passwords) (*tls.Certificate, error) {
	if p.Key != "" && p.Key != p.Store {
		return nil, errors.New("in a PKCS12 store the password of the key is that of the store")
	}
	key, cert, chain, err := pkcs12.DecodeChain(content, p.Store)
	if err != nil {
		return nil, opened(err, errors.Is(err, pkcs12.ErrIncorrectPassword))
	}
	return joined(key, append([]*x509.Certificate{cert}, chain...))
}

func certificatesOfPKCS12(content []byte, p Passwords) ([]*x509.Certificate, error) {
	all, err := pkcs12.DecodeTrustStore(content, p.Store)
	if err == nil {
		return all, nil
	}
	// It may be the store of a key, whose certificates are trusted too.
	_, cert, chain, keyErr := pkcs12.DecodeChain(content, p.Store)
	if keyErr != nil {
		return nil, opened(err, errors.Is(err, pkcs12.ErrIncorrectPassword))
	}
	return append([]*x509.Certificate{cert}, chain...), nil
}

func certificateOfJKS(content []byte, p Passwords) (*tls.Certificate, error) {
	store, err := openJKS(content, p)
	if err != nil {
		return nil, err
	}
	for _, alias := range aliases(store) {
		if !store.IsPrivateKeyEntry(alias) {
			continue
		}
		entry, err := store.GetPrivateKeyEntry(alias, []byte(p.key()))
		if err != nil {
			return nil, fmt.Errorf("the private key %q cannot be opened; is its password right? %w", alias, err)
		}
		key, err := x509.ParsePKCS8PrivateKey(entry.PrivateKey)
		if err != nil {
			return nil, err
		}
		chain, err := parseAll(entry.CertificateChain)
		if err != nil {
			return nil, err
		}
		return joined(key, chain)
	}
	return nil, errNoKey
}

func certificatesOfJKS(content []byte, p Passwords) (all []*x509.Certificate, err error) {
	store, err := openJKS(content, p)
	if err != nil {
		return nil, err
	}
	for _, alias := range aliases(store) {
		var found []jks.Certificate
		if store.IsPrivateKeyEntry(alias) {
			found, err = store.GetPrivateKeyEntryCertificateChain(alias)
		} else {
			var entry jks.TrustedCertificateEntry
			entry, err = store.GetTrustedCertificateEntry(alias)
			found = []jks.Certificate{entry.Certificate}
		}
		if err != nil {
			return nil, err
		}
		certs, err := parseAll(found)
		if err != nil {
			return nil, err
		}
		all = append(all, certs...)
	}
	return all, nil
}

// openJKS reads a store, whose password is what proves that it is whole.
func openJKS(content []byte, p Passwords) (jks.KeyStore, error) {
	store := jks.New()
	err := store.Load(bytes.NewReader(content), []byte(p.Store))
	return store, opened(err, err != nil)
}

// aliases returns the names of entries, always in the same order.
func aliases(store jks.KeyStore) []string {
	all := store.Aliases()
	slices.Sort(all)
	return all
}

func parseAll(certificates []jks.Certificate) (all []*x509.Certificate, err error) {
	for _, c := range certificates {
		cert, err := x509.ParseCertificate(c.Content)
		if err != nil {
			return nil, err
		}
		all = append(all, cert)
	}
	return all, nil
}

// opened says of an error that the password may be wrong.
func opened(err error, wrong bool) error {
	if err == nil || !wrong {
		return err
	}
	return fmt.Errorf("the store cannot be opened; is its password right? %w", err)
}

// joined makes of a key and a chain what TLS takes, and checks that they belong together.
func joined(key any, chain []*x509.Certificate) (*tls.Certificate, error) {
	signer, ok := key.(crypto.Signer)
	switch {
	case !ok:
		return nil, errNoKey
	case len(chain) == 0:
		return nil, errNoCert
	}
	public, ok := signer.Public().(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !public.Equal(chain[0].PublicKey) {
		return nil, errors.New("the private key is not that of the certificate")
	}
	out := &tls.Certificate{PrivateKey: signer, Leaf: chain[0]}
	for _, c := range chain {
		out.Certificate = append(out.Certificate, c.Raw)
	}
	return out, nil
}
