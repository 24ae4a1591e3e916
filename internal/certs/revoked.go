package certs

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"muster/internal/keystore"
)

// revoked is which certificates of clients count no more. It is read again when its file
// changes, as trusted certificates are.
type revoked struct {
	file   trustFile
	logger *slog.Logger

	mu      sync.Mutex
	lists   *keystore.Revoked
	checked time.Time
}

// verify is for tls.Config. Its error is that of a certificate that is not trusted.
func (r *revoked) verify(state tls.ConnectionState) error {
	if len(state.VerifiedChains) == 0 {
		return nil // It has shown none, where that is allowed.
	}
	if err := r.now().Check(state.VerifiedChains); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
	}
	return nil
}

// now returns the lists, and reads them again if the file has changed. If that fails, what
// was read before stays.
func (r *revoked) now() *keystore.Revoked {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.checked) >= recheck {
		r.checked = now
		if r.file.changed() {
			if err := r.load(); err != nil {
				r.logger.Error("revoked certificates not read again; the old ones stay in use", "error", err)
			} else {
				r.logger.Info("revoked certificates read again")
			}
		}
	}
	return r.lists
}

func (r *revoked) load() error {
	f := r.file
	content, err := f.read()
	if err != nil {
		return err
	}
	lists, err := keystore.ParseRevoked(content)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", f.setting, f.name, err)
	}
	if issuers := lists.Overdue(time.Now()); len(issuers) > 0 {
		r.logger.Warn("lists of revoked certificates are overdue; they stay in use", "file", f.name, "issuers", strings.Join(issuers, "; "))
	}
	r.file, r.lists = f, lists
	return nil
}
