package broker

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"muster/internal/gate"
	"muster/internal/metadata"
	"muster/internal/web/fleet"
)

// advertisedSetting is the setting of where others reach the HTTP address.
const advertisedSetting = "muster.http.advertised"

// listenAnywhere listens at the host of an address, at whatever port is free.
func listenAnywhere(addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	return net.Listen("tcp", net.JoinHostPort(host, "0"))
}

// advertiseHTTP finds out where other brokers and the command reach the HTTP address. It
// is what the setting says, with the port that is listened on if it names none; else the
// address itself. For that of this machine only, these are the brokers of this machine.
// All addresses have no name, so there it is that of the first Kafka listener, which
// clients know.
func (b *Broker) advertiseHTTP(listening *net.TCPAddr) error {
	if b.cfg.IsSet(advertisedSetting) {
		u, err := parseAdvertised(b.cfg.Get(advertisedSetting), b.httpScheme(), listening.Port)
		if err != nil {
			return err
		}
		b.advertised = u
		return nil
	}
	host := listening.IP.String()
	if listening.IP.IsUnspecified() {
		host = b.endpoints[0].Host
	}
	b.advertised = b.httpScheme() + "://" + net.JoinHostPort(host, strconv.Itoa(listening.Port))
	b.cfg = b.cfg.Found(advertisedSetting, b.advertised)
	return nil
}

func (b *Broker) httpScheme() string {
	if b.httpSecure {
		return "https"
	}
	return "http"
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

// httpURL is where other brokers reach this one's HTTP API; empty if they do not.
func (b *Broker) httpURL() string { return b.advertised }

// advertisedHosts are the names under which others ask this broker: that of its HTTP
// address, and those by which clients of Kafka reach it.
func (b *Broker) advertisedHosts() []string {
	var out []string
	if u, err := url.Parse(b.advertised); err == nil && u.Hostname() != "" {
		out = append(out, u.Hostname())
	}
	for _, e := range b.endpoints {
		if e.Host != "" {
			out = append(out, e.Host)
		}
	}
	return out
}

// openFleet makes the way to the HTTP API of other brokers, if there can be any. Nothing
// is sent until somebody asks.
func (b *Broker) openFleet() {
	if b.storeKind() != "redis" {
		return
	}
	b.fleet = fleet.New(fleet.Options{
		Self:   func() fleet.Target { return fleet.Target{Node: b.nodeID(), Incarnation: b.incarnation} },
		Others: b.otherBrokers,
		Keys:   b.fleetKeys,
		TLS:    func() *tls.Config { return b.certs().HTTPPeer() },
	})
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

// fleetKeys follow from the secrets of the cluster as the newest metadata has them: if the
// store has lost those, another one is made when the brokers join again, and all go on
// with the new one.
func (b *Broker) fleetKeys() [][]byte {
	secrets := gate.Secrets(b.image())
	if secrets.Current.Text == "" {
		return nil
	}
	now := b.now()
	keys := [][]byte{fleetKey(secrets.Current)}
	if secrets.Overlaps(now) {
		keys = append(keys, fleetKey(secrets.Previous))
		if secrets.Use(now) == secrets.Previous {
			slices.Reverse(keys)
		}
	}
	return keys
}

func fleetKey(s metadata.Secret) []byte {
	return gate.Derived(s.Text, "questions of brokers over HTTP")
}
