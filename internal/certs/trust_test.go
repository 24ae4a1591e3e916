package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster/internal/logintest"
)

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// certificate makes one that signs itself, also in PEM.
func certificate(t *testing.T, name string) (*x509.Certificate, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestTrustedCertificatesAreReadAgainWhenTheirFileChanges(t *testing.T) {
	before, beforePEM := certificate(t, "before")
	after, afterPEM := certificate(t, "after, with a longer name")
	name := filepath.Join(t.TempDir(), "trusted.pem")
	write := func(text []byte) {
		must(t, os.WriteFile(name, text, 0o600))
	}
	write(beforePEM)
	s := &trust{files: []trustFile{{setting: "ssl.truststore.location", name: name}}, logger: slog.New(slog.DiscardHandler)}
	must(t, s.load())
	wants := func(step string, trusted, not *x509.Certificate) {
		t.Helper()
		s.checked = time.Time{} // As if some time had passed.
		roots := s.config().RootCAs
		if _, err := trusted.Verify(x509.VerifyOptions{Roots: roots}); err != nil {
			t.Errorf("%s: %v", step, err)
		}
		if _, err := not.Verify(x509.VerifyOptions{Roots: roots}); err == nil {
			t.Errorf("%s: the other certificate is trusted", step)
		}
	}
	wants("at first", before, after)
	write([]byte("no certificate at all"))
	wants("a file that makes no sense", before, after)
	write(afterPEM)
	wants("another file", after, before)
	must(t, os.Remove(name))
	wants("no file", after, before)
	old := s.config().RootCAs
	write(beforePEM)
	if s.config().RootCAs != old {
		t.Error("the file is looked at for each connection")
	}
	wants("a file again", before, after)
}

func TestListsOfRevokedCertificatesStayWhenTheirFileMakesNoSense(t *testing.T) {
	a, err := logintest.NewAuthority()
	must(t, err)
	name := filepath.Join(t.TempDir(), "crl.pem")
	write := func(text []byte, err error) {
		t.Helper()
		if err == nil {
			err = os.WriteFile(name, text, 0o600)
		}
		must(t, err)
	}
	write(a.Revoke())
	r := &revoked{file: trustFile{setting: "muster.ssl.crl.location", name: name}, logger: slog.New(slog.DiscardHandler)}
	must(t, r.load())
	first := r.lists
	again := func() bool {
		r.checked = time.Time{} // As if some time had passed.
		return r.now() != first
	}
	if again() {
		t.Error("a file that is the same is read again")
	}
	write([]byte("no list at all"), nil)
	if again() || first == nil {
		t.Error("a file that makes no sense counts")
	}
	cert, err := a.Issue("ann")
	must(t, err)
	write(a.Revoke(cert))
	if !again() {
		t.Error("another list is not read")
	}
}

func TestClientsAreNotKnownByWhatTheSystemTrusts(t *testing.T) {
	cert, text := certificate(t, "authority")
	name := filepath.Join(t.TempDir(), "trusted.pem")
	must(t, os.WriteFile(name, text, 0o600))
	s := &trust{files: []trustFile{{setting: "ssl.truststore.location", name: name}}, alone: true}
	must(t, s.load())
	only := x509.NewCertPool()
	only.AddCert(cert)
	if !s.roots.Equal(only) {
		t.Error("others are trusted too")
	}
}
