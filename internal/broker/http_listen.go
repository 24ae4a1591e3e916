package broker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/handler"
	"muster/internal/metadata/config"
	"muster/internal/web"
	"muster/internal/web/act"
	"muster/internal/web/facts"
	"muster/internal/web/login"
	"muster/internal/web/records"
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
	b.login = login.New(login.Options{Gates: b.gates, Handler: b.front.handler.Load, Meters: b.meters, Audit: b.auditHTTP})
	b.http = web.Serve(l, web.Options{
		Health: b.health, Reads: b.facts, Records: b.records(), Gate: b.login, Actions: b.acts(), Metrics: b.metricsHandler(), MetricsLogin: b.cfg.Bool("muster.http.metrics.login"),
		AllowedHosts: append(config.SplitList(b.cfg.Get("muster.http.allowed.hosts")), b.advertisedHosts()...), Logger: b.logger, Panicked: b.meters.Panicked, Fleet: b.fleet,
		AnonymousFull: b.cfg.Get("muster.http.anonymous") == "full",
	})
	b.logger.Info("answering HTTP", "address", b.HTTPURL(), "advertised", b.cfg.Get(advertisedSetting))
	if encrypt == nil && !listening.IP.IsLoopback() {
		b.logger.Warn("other machines can ask over HTTP, which is plain text: passwords can be read on the way; give muster.http.listener as https://, or put a proxy with TLS before it", "address", l.Addr().String())
	}
	return nil
}

// ask has another broker answer a request.
func (b *Broker) ask(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
	return b.peers.Do(ctx, node, req)
}

// openFacts makes what HTTP says of this broker.
func (b *Broker) openFacts() {
	b.facts = facts.New(facts.Options{
		Started: func() error {
			if !b.up.Load() {
				return errStarting
			}
			return nil
		},
		Image: b.image, Node: b.nodeID, Endpoint: b.endpoints[0].Endpoint, Watch: b.Status, Partition: b.partition, Own: b.front.own, Peer: b.ask,
	})
}

// records are what people read of topics.
func (b *Broker) records() *records.Logs {
	return records.New(records.Options{
		Image: b.image, Node: b.nodeID, Partition: b.partition, Counter: func() handler.Counter { return b.counter },
		Readings: func(who auth.Principal) records.Quota { return b.front.handler.Load().Readings(who, act.ClientID) },
	})
}

// acts does what people want.
func (b *Broker) acts() *act.Acts {
	return act.New(act.Options{
		Do: act.By(b.front.handler.Load, b.endpoints[0].Listener, b.login.TellDenied), Peer: b.ask, Image: b.image, Node: b.nodeID,
		Sees: b.login.Sees, Audit: b.auditHTTP, GroupError: b.facts.GroupError, Logger: b.logger,
	})
}

// auditHTTP tells the audit log, if there is one, of what came over HTTP.
func (b *Broker) auditHTTP(e audit.Entry) {
	if b.audit == nil {
		return
	}
	e.Time, e.Via, e.Broker = time.Now().UTC(), audit.ViaHTTP, b.nodeID()
	b.audit.tell(e.Bounded())
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
