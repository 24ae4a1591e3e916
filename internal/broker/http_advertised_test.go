package broker_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/internal/broker"
	"muster/internal/redistest"
	"muster/internal/web"
)

// advertisedBy returns what DescribeConfigs shows.
func advertisedBy(t *testing.T, b *broker.Broker) string {
	t.Helper()
	all, err := kadm.NewClient(client(t, b)).DescribeBrokerConfigs(t.Context(), b.NodeID())
	must(t, err)
	for _, c := range all[0].Configs {
		if strings.Contains(c.MaybeValue(), b.Image().Secrets.Current.Text) {
			t.Errorf("%s has the secret of the cluster", c.Key)
		}
		if c.Key == "muster.http.advertised" {
			return c.MaybeValue()
		}
	}
	return "not there"
}

func TestABrokerTellsWhereItsHTTPAddressIs(t *testing.T) {
	b := startHTTP(t, nil)
	_, port, err := net.SplitHostPort(b.HTTPAddr())
	must(t, err)
	if got := advertisedBy(t, b); got != "http://127.0.0.1:"+port {
		t.Errorf("it tells %q", got)
	}
	wild := startHTTP(t, map[string]string{"muster.http.listener": "0.0.0.0:0", "advertised.listeners": "PLAINTEXT://localhost:0"})
	if got := advertisedBy(t, wild); !strings.HasPrefix(got, "http://localhost:") {
		t.Errorf("of all addresses it tells %q", got)
	}
	if got := advertisedBy(t, start(t, nil)); got != "" {
		t.Errorf("without HTTP it tells %q", got)
	}
}

func TestABrokerDoesNotStartIfItIsReachedNowhere(t *testing.T) {
	wantNoStart(t, map[string]string{"muster.http.listener": "127.0.0.1:0", "muster.http.advertised": "ftp://x"}, "muster.http.advertised")
}

// In a container clients, people and Prometheus come by the names that it was given.
func TestABrokerAnswersHTTPUnderItsAdvertisedNames(t *testing.T) {
	b := startHTTP(t, map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0,OUT://127.0.0.1:0", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUT:PLAINTEXT",
		"advertised.listeners": "PLAINTEXT://localhost:0,OUT://muster:0", "muster.http.listener": "0.0.0.0:0", "muster.http.advertised": "console.example.org:80",
	})
	_, port, err := net.SplitHostPort(b.HTTPAddr())
	must(t, err)
	for name, want := range map[string]int{"muster:9021": http.StatusOK, "console.example.org": http.StatusOK, "localhost": http.StatusOK, "evil.example.org": http.StatusForbidden} {
		for _, path := range []string{"/", web.Prefix + "/groups"} {
			if got := asksFrom("127.0.0.1", "127.0.0.1:"+port, path, func(r *http.Request) { r.Host = name }); got != want {
				t.Errorf("%s%s: %d, want %d", name, path, got, want)
			}
		}
		if got := asksFrom("127.0.0.1", "127.0.0.1:"+port, "/metrics", func(r *http.Request) { r.Host = name }); got != http.StatusOK {
			t.Errorf("%s: metrics are %d", name, got)
		}
	}
}

// Brokers of one machine that share a Redis reach each other: one has the port that all
// want, the others take free ones.
func TestABrokerOfAFleetTakesAnotherPortIfTheDefaultIsTaken(t *testing.T) {
	taken := hole(t)
	b := join(t, redistest.Single(t), func(c *broker.Config) { c.HTTP = taken })
	if b.HTTPAddr() == "" || b.HTTPAddr() == taken {
		t.Errorf("it answers at %q", b.HTTPAddr())
	}
	if in := b.Image().Broker(b.NodeID()); in.HTTP != "http://"+b.HTTPAddr() {
		t.Errorf("it is registered at %q", in.HTTP)
	}
}
