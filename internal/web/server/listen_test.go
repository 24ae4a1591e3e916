package server

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"muster/internal/assert"
	"muster/internal/certs"
	"muster/internal/metadata/config"
)

func TestWhereABrokerIsReachedMustBeAnAddress(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "kafka-1": "http://kafka-1:9021", "kafka-1:80": "http://kafka-1:80", "[::1]:80": "http://[::1]:80",
		"https://proxy": "https://proxy", "https://proxy:8443/": "https://proxy:8443",
	} {
		if got, err := parseAdvertised(text, "http", 9021); got != want || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	for _, text := range []string{"ftp://x", "http://x/path", "http://x?y", "http://u:p@x", "x:0", "x:99999", "http://", ":80", "x:y"} {
		if got, err := parseAdvertised(text, "http", 9021); err == nil {
			t.Errorf("%q is %q", text, got)
		}
	}
}

// An address that the settings name must be had; the default may be taken.
func TestAnAddressMayBeTakenOnlyByDefault(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	assert.Must(t, err)
	defer taken.Close()
	listen := func(byDefault string, fleet bool, set map[string]string) (*Listening, error) {
		t.Helper()
		cfg, err := config.NewBroker(set)
		assert.Must(t, err)
		l, err := Listen(ListenOptions{Certs: certs.Settings{Config: cfg, Logger: slog.New(slog.DiscardHandler)}, Default: byDefault, Fleet: fleet, Host: "kafka-1"})
		if l != nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		return l, err
	}
	at := taken.Addr().String()
	if l, err := listen(at, false, nil); l != nil || err != nil {
		t.Errorf("a default that is taken: %v, %v", l, err)
	}
	if l, err := listen(at, true, nil); err != nil || l == nil || l.Addr().String() == at || l.Advertised != l.URL() {
		t.Errorf("one of a fleet: %+v, %v", l, err)
	}
	if l, err := listen("", false, map[string]string{"muster.http.listener": at}); err == nil || l != nil || !strings.Contains(err.Error(), "port in use") {
		t.Errorf("one that was asked for: %v, %v", l, err)
	}
	if l, err := listen("", false, nil); l != nil || err != nil {
		t.Errorf("none: %v, %v", l, err)
	}
	if l, err := listen("", false, map[string]string{"muster.http.listener": "0.0.0.0:0"}); err != nil || !strings.HasPrefix(l.Advertised, "http://kafka-1:") || l.Set {
		t.Errorf("all addresses: %+v, %v", l, err)
	}
	for _, addr := range []string{"ftp://127.0.0.1:0", "https://127.0.0.1:0"} { // For the second there is no certificate.
		if l, err := listen("", false, map[string]string{"muster.http.listener": addr}); err == nil {
			t.Errorf("%s: %+v", addr, l)
		}
	}
}
