package certs

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"muster/internal/keystore"
)

// keyFile is the server's certificate, read again when its file changes, so
// that a renewed one takes effect without a restart.
type keyFile struct {
	name      string
	passwords keystore.Passwords
	logger    *slog.Logger

	mu       sync.Mutex
	cert     *tls.Certificate
	modified time.Time
	size     int64
	checked  time.Time
}

// recheck is how often the file is looked at, at most.
const recheck = time.Second

func (k *keyFile) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Sub(k.checked) >= recheck {
		k.checked = now
		k.refresh()
	}
	return k.cert, nil
}

// refresh loads the file if it changed. A file that does not load leaves the
// certificate as it is.
func (k *keyFile) refresh() {
	info, err := os.Stat(k.name)
	if err == nil && info.ModTime().Equal(k.modified) && info.Size() == k.size {
		return
	}
	if err == nil {
		err = k.load()
	}
	if err != nil {
		k.logger.Error("certificate not read again; the old one stays in use", "file", k.name, "error", err)
		return
	}
	k.logger.Info("certificate read again", "file", k.name)
}

func (k *keyFile) load() error {
	info, err := os.Stat(k.name)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(k.name)
	if err != nil {
		return err
	}
	cert, err := keystore.Certificate(content, k.passwords)
	if err != nil {
		return fmt.Errorf("%s: %w", k.name, err)
	}
	k.cert, k.modified, k.size = cert, info.ModTime(), info.Size()
	return nil
}
