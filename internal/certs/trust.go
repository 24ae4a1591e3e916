package certs

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"muster/internal/keystore"
)

// trust is the certificates by which this broker knows others: those of the system,
// those of a trust store, and its own, since brokers often have one from the same hand.
// They are read again when a file changes, as the listener's own is: where all brokers
// get new ones, one after the other, none has to be restarted.
type trust struct {
	files  []trustFile
	alone  bool              // those of the files only: clients are not known by what the system trusts
	own    *keyFile          // what this broker shows to others who ask, nil for nothing
	speaks keystore.Protocol // what TLS may be there; the zero is any from 1.2 on
	logger *slog.Logger

	mu      sync.Mutex
	roots   *x509.CertPool
	checked time.Time
}

// trustFile is a file of certificates, and how it was when it was read.
type trustFile struct {
	setting, name string
	password      string
	modified      time.Time
	size          int64
}

// read reads the file, and how it is now.
func (f *trustFile) read() ([]byte, error) {
	info, err := os.Stat(f.name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.setting, err)
	}
	content, err := os.ReadFile(f.name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.setting, err)
	}
	f.modified, f.size = info.ModTime(), info.Size()
	return content, nil
}

// config returns the client's side of TLS for one connection.
func (t *trust) config() *tls.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := time.Now(); now.Sub(t.checked) >= recheck {
		t.checked = now
		t.refresh()
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: t.roots}
	if t.speaks.Min != 0 {
		t.speaks.Apply(cfg)
	}
	if t.own != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.own.certificate(nil) }
	}
	return cfg
}

// refresh reads the files again if one changed. If that fails, what was read before
// stays.
func (t *trust) refresh() {
	if !slices.ContainsFunc(t.files, trustFile.changed) {
		return
	}
	if err := t.load(); err != nil {
		t.logger.Error("trusted certificates not read again; the old ones stay in use", "error", err)
		return
	}
	t.logger.Info("trusted certificates read again")
}

// changed says whether the file is another than the one that was read. What cannot be
// looked at is for load to tell of.
func (f trustFile) changed() bool {
	info, err := os.Stat(f.name)
	return err != nil || !info.ModTime().Equal(f.modified) || info.Size() != f.size
}

func (t *trust) load() error {
	roots := x509.NewCertPool()
	if system, err := x509.SystemCertPool(); err == nil && !t.alone {
		roots = system
	}
	files := slices.Clone(t.files)
	for i := range files {
		f := &files[i]
		content, err := f.read()
		if err != nil {
			return err
		}
		certs, err := keystore.Certificates(content, keystore.Passwords{Store: f.password})
		if err != nil {
			return fmt.Errorf("%s: %s: %w", f.setting, f.name, err)
		}
		for _, c := range certs {
			roots.AddCert(c)
		}
	}
	t.roots, t.files = roots, files
	return nil
}
