package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"muster/internal/metadata/config"
	"muster/internal/web"
)

// httpSetting is the setting of the address for HTTP.
const httpSetting = "muster.http.listener"

// listenHTTP opens the address for HTTP, if there is to be one, and answers there
// from now on, also while the broker starts. One that nobody asked for by name may be
// taken: several brokers run on one machine, and the first has it.
func (b *Broker) listenHTTP(byDefault string) error {
	addr, asked := b.cfg.Get(httpSetting), b.cfg.IsSet(httpSetting)
	if !asked {
		addr = byDefault
	}
	if addr == "" {
		return nil
	}
	addr, encrypt, err := b.httpTLS(addr)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) && !asked && b.storeKind() == "redis" {
		// Another broker of this machine has it, most likely one of the same fleet, which can
		// tell of this one's groups only if it reaches it.
		l, err = listenAnywhere(addr)
	}
	switch {
	case err != nil && !asked:
		b.logger.Warn("not answering HTTP: the address cannot be had; choose another with --http, or none with --http off", "address", addr, "error", err)
		return nil
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port in use: something already listens on %s; choose another address with --http", addr)
	case err != nil:
		return fmt.Errorf("%s: %w", httpSetting, err)
	}
	listening := l.Addr().(*net.TCPAddr)
	if encrypt != nil {
		l = tls.NewListener(l, encrypt)
		b.httpSecure = true
	}
	if err := b.advertiseHTTP(listening); err != nil {
		return errors.Join(err, l.Close())
	}
	b.openFleet()
	b.httpGate = &httpGate{b: b}
	b.http = web.Serve(l, web.Options{
		Health: b.health, Reads: &httpReads{b}, Records: &recordLogs{b, newBudget(searchMemory)}, Gate: b.httpGate, Actions: &httpActs{b: b}, Metrics: b.metricsHandler(), MetricsLogin: b.cfg.Bool("muster.http.metrics.login"),
		AllowedHosts: append(config.SplitList(b.cfg.Get("muster.http.allowed.hosts")), b.advertisedHosts()...), Logger: b.logger, Panicked: b.meters.Panicked, Fleet: b.fleet,
		AnonymousFull: b.cfg.Get("muster.http.anonymous") == "full",
	})
	b.logger.Info("answering HTTP", "address", b.HTTPURL(), "advertised", b.cfg.Get(advertisedSetting))
	if encrypt == nil && !listening.IP.IsLoopback() {
		b.logger.Warn("other machines can ask over HTTP, which is plain text: passwords can be read on the way; give muster.http.listener as https://, or put a proxy with TLS before it", "address", l.Addr().String())
	}
	return nil
}

// httpTLS takes an address apart, which may have a scheme before it, and returns the
// server's side of TLS, nil for plain text.
func (b *Broker) httpTLS(addr string) (string, *tls.Config, error) {
	scheme, rest, found := strings.Cut(addr, "://")
	switch {
	case !found:
		return addr, nil, nil
	case scheme == "http":
		return rest, nil, nil
	case scheme != "https":
		return "", nil, fmt.Errorf("%s is host:port, after http:// or https://, not %q", httpSetting, addr)
	}
	encrypt, err := b.certs().HTTP()
	return rest, encrypt, err
}

// HTTPURL returns where the broker answers HTTP, as http://host:port or https://host:port;
// empty if it does not.
func (b *Broker) HTTPURL() string {
	switch {
	case b.http == nil:
		return ""
	case b.httpSecure:
		return "https://" + b.HTTPAddr()
	}
	return "http://" + b.HTTPAddr()
}

// HTTPAddr returns where the broker answers HTTP, as host:port; empty if it does not.
func (b *Broker) HTTPAddr() string {
	if b.http == nil {
		return ""
	}
	return b.http.Addr().String()
}
