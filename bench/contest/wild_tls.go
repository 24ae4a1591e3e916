package contest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"muster/bench/rig"
)

const (
	tlsProduce = "wild TLS produce"
	tlsFetch   = "wild TLS fetch"
)

var tlsNames = []string{tlsProduce, tlsFetch}

// tlsSettings have the listener speak TLS. Both sides read the same PEM files, which
// are made once.
func (c *contest) tlsSettings(rig.Side) ([]string, error) {
	key, trust := filepath.Join(c.Folder, "key.pem"), filepath.Join(c.Folder, "trust.pem")
	if c.tls == nil {
		if err := c.makeCertificate(key, trust); err != nil {
			return nil, err
		}
	}
	return []string{
		"listener.security.protocol.map=PLAINTEXT:SSL,CONTROLLER:PLAINTEXT",
		"ssl.keystore.type=PEM", "ssl.keystore.location=" + key,
		"ssl.truststore.type=PEM", "ssl.truststore.location=" + trust,
	}, nil
}

// makeCertificate writes a key with a certificate for this machine, and the
// certificate alone.
func (c *contest) makeCertificate(keyFile, trustFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bench"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	trust := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	both := bytes.Join([][]byte{pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), trust}, nil)
	if err := errors.Join(os.WriteFile(keyFile, both, 0o600), os.WriteFile(trustFile, trust, 0o600)); err != nil {
		return err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(trust) {
		return errors.New("the certificate cannot be read back")
	}
	c.tls = &tls.Config{RootCAs: pool, ServerName: "localhost", MinVersion: tls.VersionTLS12}
	return nil
}

// secured produces and fetches under TLS.
func (x *session) secured() error {
	x.p.TLS = x.tls
	if err := x.tellCipher(); err != nil {
		return err
	}
	if err := x.warm("wild-warm", rig.Shape{Partitions: rig.Partitions, Record: rig.RecordSize, Records: rig.BatchRecords}); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	m, f := wildMoving(tlsProduce, fromCache), wildMoving(tlsFetch, "")
	m.topic, m.acks = "wild-tls", -1
	return x.produceThenFetch(m, f, m.Load(m.topic, m.acks))
}

// tellCipher says what the two have agreed on, which is the broker's choice.
func (x *session) tellCipher() error {
	return x.withConn(func(c net.Conn) error {
		if err := rig.Greet(c); err != nil {
			return err
		}
		state := c.(*tls.Conn).ConnectionState()
		x.Say("%s speaks %s with %s", x.side, tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite))
		return nil
	})
}
