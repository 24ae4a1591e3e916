// Package certs makes the two sides of TLS from the settings of a broker: its certificates,
// those that it trusts, and which certificates of clients were revoked. Files are read
// again when they change, so that a renewed certificate takes effect without a restart; one
// that cannot be read leaves what was read before.
//
//	settings.go  which settings are about which side: Kafka listeners, HTTP, other brokers
//	keyfile.go   a certificate with its private key
//	trust.go     certificates by which others are known
//	revoked.go   lists of revoked certificates
//
// What is in such files package keystore knows.
package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"muster/internal/keystore"
	"muster/internal/metadata/config"
)

// Settings are those of a broker.
type Settings struct {
	Config *config.Broker
	Logger *slog.Logger
}

// Listener returns a Kafka listener's side of TLS.
func (s Settings) Listener(listener, protocol string) (*tls.Config, error) {
	k, err := s.keyFile(listener)
	if err != nil {
		return nil, err
	}
	protocolOf, err := s.protocolOf(listener)
	if err != nil {
		return nil, err
	}
	cfg := protocolOf.Apply(&tls.Config{GetCertificate: k.certificate})
	wanted := s.Config.Of(listener, "").Get("ssl.client.auth")
	if protocol == "SASL_SSL" && !s.Config.IsSet("listener.name."+strings.ToLower(listener)+".ssl.client.auth") {
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
	return s.knowClients(listener, cfg)
}

// knowClients has clients be known by their certificates. What issued them is read again
// when its file changes, so no session is resumed that began when another one counted.
func (s Settings) knowClients(listener string, cfg *tls.Config) (*tls.Config, error) {
	of := s.Config.Of(listener, "")
	name := of.Get("ssl.truststore.location")
	if name == "" {
		return nil, errors.New("ssl.client.auth needs ssl.truststore.location, a file with the certificates of those who issue the clients'")
	}
	t := &trust{files: []trustFile{{setting: "ssl.truststore.location", name: name, password: of.Get("ssl.truststore.password")}}, alone: true, logger: s.Logger, checked: time.Now()}
	if err := t.load(); err != nil {
		return nil, err
	}
	if list := of.Get("muster.ssl.crl.location"); list != "" {
		r := &revoked{file: trustFile{setting: "muster.ssl.crl.location", name: list}, logger: s.Logger, checked: time.Now()}
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
func (s Settings) keyFile(listener string) (*keyFile, error) {
	of := s.Config.Of(listener, "")
	name := of.Get("ssl.keystore.location")
	if name == "" {
		return nil, errors.New("a listener with SSL needs ssl.keystore.location, a file with private key and certificate chain")
	}
	k := &keyFile{name: name, passwords: keystore.Passwords{Store: of.Get("ssl.keystore.password"), Key: of.Get("ssl.key.password")}, logger: s.Logger}
	if err := k.load(); err != nil {
		return nil, fmt.Errorf("ssl.keystore.location: %w", err)
	}
	return k, nil
}

// protocolOf returns what TLS may be on a listener.
func (s Settings) protocolOf(listener string) (keystore.Protocol, error) {
	of := s.Config.Of(listener, "")
	p, err := keystore.ParseProtocol(config.SplitList(of.Get("ssl.enabled.protocols")), of.Get("ssl.protocol"), config.SplitList(of.Get("ssl.cipher.suites")))
	if len(p.Insecure) > 0 && err == nil {
		s.Logger.Warn("ssl.cipher.suites enables suites that are known to be weak", "listener", listener, "suites", strings.Join(p.Insecure, ", "))
	}
	return p, err
}

// trustSettings are the files whose certificates are trusted, and what opens them.
var trustSettings = [][2]string{{"ssl.keystore.location", "ssl.keystore.password"}, {"ssl.truststore.location", "ssl.truststore.password"}}

func (s Settings) trust(listener string) (*trust, error) {
	of := s.Config.Of(listener, "")
	t := s.trustIn(of.Get, trustSettings)
	return t, t.load()
}

// trustIn names the files that settings name.
func (s Settings) trustIn(get func(string) string, settings [][2]string) *trust {
	t := &trust{logger: s.Logger, checked: time.Now()}
	for _, names := range settings {
		if name := get(names[0]); name != "" {
			t.files = append(t.files, trustFile{setting: names[0], name: name, password: get(names[1])})
		}
	}
	return t
}

// Client returns the client's side of TLS of what is asked on behalf of a listener, such as
// the issuer of tokens; of all if none is named. It is called for each connection.
func (s Settings) Client(listener string) (func() *tls.Config, error) {
	t, err := s.trust(listener)
	if err != nil {
		return nil, err
	}
	return t.config, nil
}

// Peer returns the client's side of TLS of the listener at which brokers reach each other.
func (s Settings) Peer(listener string) (func() *tls.Config, error) {
	t, err := s.trust(listener)
	if err != nil {
		return nil, err
	}
	if t.own, err = s.keyFile(listener); err != nil {
		return nil, err
	}
	if t.speaks, err = s.protocolOf(listener); err != nil {
		return nil, err
	}
	return t.config, nil
}

// The settings of the certificate for HTTP.
const (
	httpKeystore = "muster.http.ssl.keystore.location"
	httpPassword = "muster.http.ssl.keystore.password"
)

// HTTPPeer returns the client's side of TLS of other brokers' HTTP: their certificates are
// known by what the system trusts, and by the files that name those of this broker, which
// are often of the same authority. It is read for each connection, of which there are few.
func (s Settings) HTTPPeer() *tls.Config {
	t := s.trustIn(s.Config.Get, append([][2]string{{httpKeystore, httpPassword}}, trustSettings...))
	if err := t.load(); err != nil {
		s.Logger.Warn("certificates of other brokers cannot be checked by these files", "error", err)
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return t.config()
}

// HTTP returns the server's side of TLS for HTTP.
func (s Settings) HTTP() (*tls.Config, error) {
	const shared = "ssl.keystore.location"
	setting, passwords := httpKeystore, keystore.Passwords{Store: s.Config.Get(httpPassword)}
	if s.Config.Get(httpKeystore) == "" {
		setting, passwords = shared, keystore.Passwords{Store: s.Config.Get("ssl.keystore.password"), Key: s.Config.Get("ssl.key.password")}
	}
	name := s.Config.Get(setting)
	if name == "" {
		return nil, fmt.Errorf("https needs %s or %s, a file with private key and certificate chain", httpKeystore, shared)
	}
	k := &keyFile{name: name, passwords: passwords, logger: s.Logger}
	if err := k.load(); err != nil {
		return nil, fmt.Errorf("%s: %w", setting, err)
	}
	// HTTP/2 would let a connection have any number of requests, and bounds of its own.
	return &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: k.certificate, NextProtos: []string{"http/1.1"}}, nil
}
