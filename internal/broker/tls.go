package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// tlsConfig returns a listener's side of TLS.
func (b *Broker) tlsConfig(listener, protocol string) (*tls.Config, error) {
	k, err := b.newKeystore(listener)
	if err != nil {
		return nil, err
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.certificate}
	wanted := b.cfg.Of(listener, "").Get("ssl.client.auth")
	if protocol == "SASL_SSL" && !b.cfg.IsSet("listener.name."+strings.ToLower(listener)+".ssl.client.auth") {
		wanted = "none" // Kafka's rule (KIP-684): there the setting must name the listener.
	}
	switch wanted {
	case "requested":
		cfg.ClientAuth = tls.VerifyClientCertIfGiven
	case "required":
		cfg.ClientAuth = tls.RequireAndVerifyClientCert
	default:
		return cfg, nil
	}
	return b.knowClients(listener, cfg)
}

// knowClients has clients be known by their certificates. What issued them is read again
// when its file changes, so no session is resumed that began when another one counted.
func (b *Broker) knowClients(listener string, cfg *tls.Config) (*tls.Config, error) {
	name := b.cfg.Of(listener, "").Get("ssl.truststore.location")
	if name == "" {
		return nil, errors.New("ssl.client.auth needs ssl.truststore.location, a PEM file with the certificates of those who issue the clients'")
	}
	t := &trust{files: []trustFile{{setting: "ssl.truststore.location", name: name}}, alone: true, logger: b.logger, checked: time.Now()}
	if err := t.load(); err != nil {
		return nil, err
	}
	cfg.SessionTicketsDisabled = true
	base := cfg.Clone()
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := base.Clone()
		now.ClientCAs = t.config().RootCAs
		return now, nil
	}
	return cfg, nil
}

// newKeystore reads the certificate of a listener.
func (b *Broker) newKeystore(listener string) (*keystore, error) {
	name := b.cfg.Of(listener, "").Get("ssl.keystore.location")
	if name == "" {
		return nil, errors.New("a listener with SSL needs ssl.keystore.location, a PEM file with private key and certificate chain")
	}
	k := &keystore{name: name, logger: b.logger}
	if err := k.load(); err != nil {
		return nil, fmt.Errorf("ssl.keystore.location: %w", err)
	}
	return k, nil
}

// keystore is the server's certificate, read again when its file changes, so
// that a renewed one takes effect without a restart.
type keystore struct {
	name   string
	logger *slog.Logger

	mu       sync.Mutex
	cert     *tls.Certificate
	modified time.Time
	size     int64
	checked  time.Time
}

// recheck is how often the file is looked at, at most.
const recheck = time.Second

func (k *keystore) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
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
func (k *keystore) refresh() {
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

func (k *keystore) load() error {
	info, err := os.Stat(k.name)
	if err != nil {
		return err
	}
	pem, err := os.ReadFile(k.name)
	if err != nil {
		return err
	}
	cert, err := tls.X509KeyPair(pem, pem)
	if err != nil {
		return fmt.Errorf("%s: %w", k.name, err)
	}
	k.cert, k.modified, k.size = &cert, info.ModTime(), info.Size()
	return nil
}
