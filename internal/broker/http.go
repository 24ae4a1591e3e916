package broker

import (
	"context"
	"crypto/tls"
	"net/url"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/handler"
	"muster/internal/metadata/config"
	"muster/internal/web"
	"muster/internal/web/act"
	"muster/internal/web/facts"
	"muster/internal/web/fleet"
	"muster/internal/web/login"
	"muster/internal/web/records"
	"muster/internal/web/server"
)

// listenHTTP opens the address for HTTP, if there is to be one, and answers there
// from now on, also while the broker starts.
func (b *Broker) listenHTTP(byDefault string) error {
	shared := b.storeKind() == "redis"
	l, err := server.Listen(server.ListenOptions{Certs: b.certs(), Default: byDefault, Fleet: shared, Host: b.endpoints[0].Host})
	if err != nil || l == nil {
		return err
	}
	b.httpAt = l
	if !l.Set {
		b.cfg = b.cfg.Found("muster.http.advertised", l.Advertised)
	}
	if shared {
		b.fleet = fleet.New(fleet.Options{
			Self:   func() fleet.Target { return fleet.Target{Node: b.nodeID(), Incarnation: b.incarnation} },
			Others: b.otherBrokers, Keys: b.peerLogins.HTTPKeys, TLS: func() *tls.Config { return b.certs().HTTPPeer() },
		})
	}
	b.login = login.New(login.Options{Gates: b.gates, Handler: b.front.handler.Load, Meters: b.meters, Audit: b.auditHTTP})
	b.http = web.Serve(l, web.Options{
		Health: b.health, Reads: b.facts, Records: b.records(), Gate: b.login, Actions: b.acts(), Metrics: b.metricsHandler(), MetricsLogin: b.cfg.Bool("muster.http.metrics.login"),
		AllowedHosts: append(config.SplitList(b.cfg.Get("muster.http.allowed.hosts")), b.advertisedHosts()...), Logger: b.logger, Panicked: b.meters.Panicked, Fleet: b.fleet,
		AnonymousFull: b.cfg.Get("muster.http.anonymous") == "full",
	})
	return nil
}

// httpURL is where other brokers reach this one's HTTP API; empty if they do not.
func (b *Broker) httpURL() string {
	if b.httpAt == nil {
		return ""
	}
	return b.httpAt.Advertised
}

// advertisedHosts are the names under which others ask this broker: that of its HTTP
// address, and those by which clients of Kafka reach it.
func (b *Broker) advertisedHosts() []string {
	var out []string
	if u, err := url.Parse(b.httpURL()); err == nil && u.Hostname() != "" {
		out = append(out, u.Hostname())
	}
	for _, e := range b.endpoints {
		if e.Host != "" {
			out = append(out, e.Host)
		}
	}
	return out
}

// otherBrokers are those of the newest metadata.
func (b *Broker) otherBrokers() []fleet.Target {
	image := b.image()
	if image == nil {
		return nil
	}
	var out []fleet.Target
	for i := range image.Brokers {
		if o := &image.Brokers[i]; o.ID != b.nodeID() {
			out = append(out, fleet.Target{Node: o.ID, Incarnation: o.Incarnation, URL: o.HTTP})
		}
	}
	return out
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
func (b *Broker) auditHTTP(e audit.Entry) { b.audit.HTTP(e) }

// HTTPURL returns where the broker answers HTTP, as http://host:port or https://host:port;
// empty if it does not.
func (b *Broker) HTTPURL() string {
	if b.httpAt == nil {
		return ""
	}
	return b.httpAt.URL()
}

// HTTPAddr returns where the broker answers HTTP, as host:port; empty if it does not.
func (b *Broker) HTTPAddr() string {
	if b.httpAt == nil {
		return ""
	}
	return b.httpAt.Addr().String()
}
