package broker

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"muster/internal/arrivals"
	"muster/internal/certs"
	"muster/internal/gate"
	"muster/internal/listener"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// endpoint is a listener: where it listens and what clients are told.
type endpoint struct {
	metadata.Endpoint
	address net.Addr
	serve   func()
	secure  bool       // by TLS
	login   bool       // by SASL
	gate    *gate.Gate // nil where no one says who they are
}

// certs are the certificates that the settings name.
func (b *Broker) certs() certs.Settings { return certs.Settings{Config: b.cfg, Logger: b.logger} }

// listen opens all listeners. Nothing is served yet, but the ports are ours.
func (b *Broker) listen() error {
	protocols, err := parsePairs("listener.security.protocol.map", b.cfg.Get("listener.security.protocol.map"), ":")
	if err != nil {
		return err
	}
	advertised, err := parsePairs("advertised.listeners", b.cfg.Get("advertised.listeners"), "://")
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	controllers := config.SplitList(b.cfg.Get("controller.listener.names"))
	for _, entry := range config.SplitList(b.cfg.Get("listeners")) {
		name, addr, ok := strings.Cut(entry, "://")
		if slices.Contains(controllers, name) {
			// Kafka's controllers talk there, of which muster has none. Clients were never
			// meant to, and it may be less guarded than where they are.
			b.logger.Info("a listener of Kafka's controllers is not opened", "listener", name)
			seen[name] = true
			continue
		}
		if !ok || name == "" || seen[name] {
			return fmt.Errorf("listeners: %q is not NAME://host:port with a name of its own", entry)
		}
		seen[name] = true
		e, err := b.listenOn(name, addr, protocols[name], advertised[name])
		if err != nil {
			return err
		}
		b.endpoints = append(b.endpoints, e)
	}
	if len(b.endpoints) == 0 {
		return errors.New("listeners: there must be at least one")
	}
	for name := range advertised {
		if !seen[name] {
			return fmt.Errorf("advertised.listeners: there is no listener named %q", name)
		}
	}
	return nil
}

// parsePairs parses a list of name<sep>value.
func parsePairs(setting, value, sep string) (map[string]string, error) {
	out := map[string]string{}
	for _, entry := range config.SplitList(value) {
		name, v, ok := strings.Cut(entry, sep)
		if !ok || name == "" || v == "" {
			return nil, fmt.Errorf("%s: %q is not NAME%svalue", setting, entry, sep)
		}
		out[name] = v
	}
	return out, nil
}

func (b *Broker) listenOn(name, addr, protocol, advertised string) (endpoint, error) {
	var tlsConfig *tls.Config
	switch protocol {
	case "PLAINTEXT", "SASL_PLAINTEXT":
	case "SSL", "SASL_SSL":
		var err error
		if tlsConfig, err = b.certs().Listener(name, protocol); err != nil {
			return endpoint{}, fmt.Errorf("listener %q: %w", name, err)
		}
	case "":
		return endpoint{}, fmt.Errorf("listener %q: listener.security.protocol.map does not say which protocol it speaks", name)
	default:
		return endpoint{}, fmt.Errorf("listener %q: security protocol %q is not supported; PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL are", name, protocol)
	}
	g, err := b.gates.For(name, protocol)
	if err != nil {
		return endpoint{}, err
	}
	var passed listener.Gate // A nil of our own type would be a gate.
	if g != nil {
		passed = g
	}
	address, serve, err := b.server.Listen(name, addr, tlsConfig, passed)
	if errors.Is(err, syscall.EADDRINUSE) {
		return endpoint{}, fmt.Errorf("port in use: something already listens on %s (another broker?); choose another address with --listen", addr)
	}
	if err != nil {
		return endpoint{}, err
	}
	if protocol == "SASL_PLAINTEXT" && !address.(*net.TCPAddr).IP.IsLoopback() {
		b.logger.Warn("clients of other machines log in over plain text: what they send can be read on the way, with PLAIN and OAUTHBEARER also passwords and tokens; SASL_SSL hides it", "listener", name, "address", address.String())
	}
	e := endpoint{address: address, serve: serve, secure: tlsConfig != nil, login: strings.HasPrefix(protocol, "SASL_"), gate: g}
	e.Endpoint, err = advertise(name, addr, address, advertised)
	return e, err
}

// advertise works out what clients are told of a listener: what the settings
// say, with the real port for port 0 and this host's name for all addresses. A
// host name is told as it is written, since certificates are issued for names.
func advertise(name, written string, address net.Addr, advertised string) (metadata.Endpoint, error) {
	listening := address.(*net.TCPAddr)
	host, port := listening.IP.String(), listening.Port
	switch h, _, err := net.SplitHostPort(written); {
	case err == nil && h != "" && net.ParseIP(h) == nil:
		host = h
	case listening.IP.IsUnspecified():
		if host, err = os.Hostname(); err != nil {
			host = "localhost"
		}
	}
	if advertised != "" {
		h, p, err := net.SplitHostPort(advertised)
		if err != nil {
			return metadata.Endpoint{}, fmt.Errorf("advertised.listeners: %w", err)
		}
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || h == "" {
			return metadata.Endpoint{}, fmt.Errorf("advertised.listeners: %q is not host:port", advertised)
		}
		host = h
		if n != 0 {
			port = int(n)
		}
	}
	return metadata.Endpoint{Listener: name, Host: host, Port: int32(port)}, nil
}

// limitArrivals has the listeners go by the limits of connections that need to know the
// listeners.
func (b *Broker) limitArrivals() error {
	if len(b.endpoints) > 1 {
		b.arrivals.Spared = cmp.Or(b.cfg.Get("inter.broker.listener.name"), b.endpoints[0].Listener)
	}
	return b.limitAddresses(b.cfg)
}

// limitAddresses has the listeners go by max.connections.per.ip.overrides.
func (b *Broker) limitAddresses(c *config.Broker) error {
	overrides, err := arrivals.PerAddress(c.Get("max.connections.per.ip.overrides"))
	if err == nil {
		b.server.SetOverrides(overrides)
	}
	return err
}
