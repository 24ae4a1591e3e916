package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"syscall"

	"muster/internal/certs"
	"muster/internal/metadata/config"
)

// The settings of the address.
const (
	listenerSetting   = "muster.http.listener"
	advertisedSetting = "muster.http.advertised"
)

// ListenOptions say where to listen, and what to tell of it.
type ListenOptions struct {
	Certs certs.Settings // with the settings, and the log
	// Default is the address if the settings name none; empty for none. It may be taken:
	// several brokers run on one machine, and the first has it.
	Default string
	// Fleet says that this broker may be one of several, which have to reach each other: if
	// the default is taken, another port will do.
	Fleet bool
	// Host is the name by which Kafka clients reach this broker.
	Host string
}

// Listening is an address that is listened on.
type Listening struct {
	net.Listener
	Secure bool
	// Advertised is where other brokers and the command reach it, as a URL; empty if they
	// do not. Set says that the settings name it.
	Advertised string
	Set        bool
}

// Listen opens the address for HTTP; nil if there is none.
func Listen(opts ListenOptions) (*Listening, error) {
	cfg, logger := opts.Certs.Config, opts.Certs.Logger
	addr, asked := cfg.Get(listenerSetting), cfg.IsSet(listenerSetting)
	if !asked {
		addr = opts.Default
	}
	if addr == "" {
		return nil, nil
	}
	addr, encrypt, err := encryption(addr, opts.Certs)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) && !asked && opts.Fleet {
		// Another broker of this machine has it, most likely one of the same fleet, which can
		// tell of this one's groups only if it reaches it.
		l, err = listenAnywhere(addr)
	}
	switch {
	case err != nil && !asked:
		logger.Warn("not answering HTTP: the address cannot be had; choose another with --http, or none with --http off", "address", addr, "error", err)
		return nil, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port in use: something already listens on %s; choose another address with --http", addr)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", listenerSetting, err)
	}
	out := &Listening{Listener: l, Secure: encrypt != nil, Set: cfg.IsSet(advertisedSetting)}
	if out.Advertised, err = out.advertise(cfg, opts.Host); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if encrypt != nil {
		out.Listener = tls.NewListener(l, encrypt)
	}
	logger.Info("answering HTTP", "address", out.URL(), "advertised", out.Advertised)
	if encrypt == nil && !IsLoopback(l.Addr()) {
		logger.Warn("other machines can ask over HTTP, which is plain text: passwords can be read on the way; give muster.http.listener as https://, or put a proxy with TLS before it", "address", l.Addr().String())
	}
	return out, nil
}

// encryption takes an address apart, which may have a scheme before it, and returns the
// server's side of TLS, nil for plain text.
func encryption(addr string, from certs.Settings) (string, *tls.Config, error) {
	scheme, rest, found := strings.Cut(addr, "://")
	switch {
	case !found:
		return addr, nil, nil
	case scheme == "http":
		return rest, nil, nil
	case scheme != "https":
		return "", nil, fmt.Errorf("%s is host:port, after http:// or https://, not %q", listenerSetting, addr)
	}
	encrypt, err := from.HTTP()
	return rest, encrypt, err
}

// listenAnywhere listens at the host of an address, at whatever port is free.
func listenAnywhere(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	return net.Listen("tcp", net.JoinHostPort(host, "0"))
}

func (l *Listening) scheme() string {
	if l.Secure {
		return "https"
	}
	return "http"
}

// URL is where this machine reaches it.
func (l *Listening) URL() string { return l.scheme() + "://" + l.Addr().String() }

// advertise finds out where other brokers and the command reach the address. It is what the
// setting says, with the port that is listened on if it names none; else the address itself.
// For that of this machine only, these are the brokers of this machine. All addresses have no
// name, so there it is that of the first Kafka listener, which clients know.
func (l *Listening) advertise(cfg *config.Broker, host string) (string, error) {
	at := l.Addr().(*net.TCPAddr)
	if l.Set {
		return parseAdvertised(cfg.Get(advertisedSetting), l.scheme(), at.Port)
	}
	if !at.IP.IsUnspecified() {
		host = at.IP.String()
	}
	return l.scheme() + "://" + net.JoinHostPort(host, strconv.Itoa(at.Port)), nil
}

// parseAdvertised reads host:port or a host alone, which are reached as it is listened,
// or a URL of a proxy. Empty is nothing.
func parseAdvertised(text, scheme string, port int) (string, error) {
	if text == "" {
		return "", nil
	}
	whole := text
	if !strings.Contains(text, "://") {
		whole = scheme + "://" + text
	}
	u, err := url.Parse(whole)
	wrong := fmt.Errorf("%s: %q is neither host:port nor http://host:port or https://host:port", advertisedSetting, text)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", wrong
	}
	if u.Port() == "" && whole != text {
		u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(port))
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.ParseUint(p, 10, 16); err != nil || n == 0 {
			return "", wrong
		}
	}
	return u.Scheme + "://" + u.Host, nil
}
