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

	"muster/internal/keystore"
	"muster/internal/metadata/config"
)

// tlsConfig returns a listener's side of TLS.
func (b *Broker) tlsConfig(listener, protocol string) (*tls.Config, error) {
	k, err := b.newKeyFile(listener)
	if err != nil {
		return nil, err
	}
	protocolOf, err := b.protocolOf(listener)
	if err != nil {
		return nil, err
	}
	cfg := protocolOf.Apply(&tls.Config{GetCertificate: k.certificate})
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
	of := b.cfg.Of(listener, "")
	name := of.Get("ssl.truststore.location")
	if name == "" {
		return nil, errors.New("ssl.client.auth needs ssl.truststore.location, a file with the certificates of those who issue the clients'")
	}
	t := &trust{files: []trustFile{{setting: "ssl.truststore.location", name: name, password: of.Get("ssl.truststore.password")}}, alone: true, logger: b.logger, checked: time.Now()}
	if err := t.load(); err != nil {
		return nil, err
	}
	if list := of.Get("muster.ssl.crl.location"); list != "" {
		r := &revoked{file: trustFile{setting: "muster.ssl.crl.location", name: list}, logger: b.logger, checked: time.Now()}
		if err := r.load(); err != nil {
			return nil, err
		}
		cfg.VerifyConnection = r.verify
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

// newKeyFile reads the certificate of a listener.
func (b *Broker) newKeyFile(listener string) (*keyFile, error) {
	of := b.cfg.Of(listener, "")
	name := of.Get("ssl.keystore.location")
	if name == "" {
		return nil, errors.New("a listener with SSL needs ssl.keystore.location, a file with private key and certificate chain")
	}
	k := &keyFile{name: name, passwords: keystore.Passwords{Store: of.Get("ssl.keystore.password"), Key: of.Get("ssl.key.password")}, logger: b.logger}
	if err := k.load(); err != nil {
		return nil, fmt.Errorf("ssl.keystore.location: %w", err)
	}
	return k, nil
}

// protocolOf returns what TLS may be on a listener.
func (b *Broker) protocolOf(listener string) (keystore.Protocol, error) {
	of := b.cfg.Of(listener, "")
	p, err := keystore.ParseProtocol(config.SplitList(of.Get("ssl.enabled.protocols")), of.Get("ssl.protocol"), config.SplitList(of.Get("ssl.cipher.suites")))
	if len(p.Insecure) > 0 && err == nil {
		b.logger.Warn("ssl.cipher.suites enables suites that are known to be weak", "listener", listener, "suites", strings.Join(p.Insecure, ", "))
	}
	return p, err
}

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
