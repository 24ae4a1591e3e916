package certs

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"muster/internal/keystore"
	"muster/internal/logintest"
	"muster/internal/metadata/config"
)

// file writes what makes a file of settings, and returns its name.
func file(t *testing.T, name string, text []byte, err error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// issued parses a certificate of an authority.
func issued(t *testing.T, a *logintest.Authority, name string) (tls.Certificate, *x509.Certificate) {
	t.Helper()
	c, err := a.Issue(name)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return c, parsed
}

func TestAListenerKnowsClientsByItsTrustStoreAlone(t *testing.T) {
	a, err := logintest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	own, err := a.IssuePEM("broker")
	cfg, wrong := config.NewBroker(map[string]string{
		"ssl.keystore.location": file(t, "own.pem", own, err), "ssl.truststore.location": file(t, "trusted.pem", a.PEM(), nil), "ssl.client.auth": "required",
	})
	if wrong != nil {
		t.Fatal(wrong)
	}
	server, err := Settings{Config: cfg, Logger: slog.New(slog.DiscardHandler)}.Listener("SSL", "SSL")
	if err != nil {
		t.Fatal(err)
	}
	now, err := server.GetConfigForClient(nil)
	if err != nil || now.ClientAuth != tls.RequireAndVerifyClientCert || !now.SessionTicketsDisabled {
		t.Errorf("a client is asked for %v, resumed: %t (%v)", now.ClientAuth, !now.SessionTicketsDisabled, err)
	}
	if !now.ClientCAs.Equal(a.Pool()) {
		t.Error("others than those of the trust store are known")
	}
}

// Whose certificate was revoked is told from who shows none where that is allowed.
func TestARevokedCertificateLetsNoOneIn(t *testing.T) {
	a, err := logintest.NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(a.PEM())
	authority, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	gone, eve := issued(t, a, "eve")
	_, ann := issued(t, a, "ann")
	list, err := a.Revoke(gone)
	r := &revoked{file: trustFile{name: file(t, "crl.pem", list, err)}, logger: slog.New(slog.DiscardHandler)}
	if err := r.load(); err != nil {
		t.Fatal(err)
	}
	by := func(c *x509.Certificate) tls.ConnectionState {
		return tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c, authority}}}
	}
	var refused *tls.CertificateVerificationError
	if err := r.verify(by(eve)); !errors.Is(err, keystore.ErrRevoked) || !errors.As(err, &refused) {
		t.Errorf("a revoked certificate: %v", err)
	}
	for what, state := range map[string]tls.ConnectionState{"another certificate": by(ann), "no certificate": {}} {
		if err := r.verify(state); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}
