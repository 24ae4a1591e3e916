package broker_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/internal/assert"
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
		assert.False(t, strings.Contains(c.MaybeValue(), b.Image().Secrets.Current.Text), "%s has the secret of the cluster", c.Key)
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
	assert.Equal(t, advertisedBy(t, b), "http://127.0.0.1:"+port)
	wild := startHTTP(t, map[string]string{"muster.http.listener": "0.0.0.0:0", "advertised.listeners": "PLAINTEXT://localhost:0"})
	if got := advertisedBy(t, wild); !strings.HasPrefix(got, "http://localhost:") {
		t.Errorf("of all addresses it tells %q", got)
	}
	assert.Equal(t, advertisedBy(t, start(t, nil)), "", "without HTTP it tells")
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
			assert.Equal(t, asksFrom("127.0.0.1", "127.0.0.1:"+port, path, func(r *http.Request) { r.Host = name }), want, "%s%s", name, path)
		}
		assert.Equal(t, asksFrom("127.0.0.1", "127.0.0.1:"+port, "/metrics", func(r *http.Request) { r.Host = name }), http.StatusOK, "%s: metrics", name)
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
	assert.Equal(t, b.Image().Broker(b.NodeID()).HTTP, "http://"+b.HTTPAddr(), "it is registered")
}
