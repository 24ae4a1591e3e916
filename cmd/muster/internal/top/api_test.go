package top

import (
	"net/url"
	"testing"

	"muster/internal/assert"
)

func TestAPasswordIsExposedByPlainTextToOtherMachines(t *testing.T) {
	for address, want := range map[string]bool{
		"http://10.0.0.7:9021": true, "http://kafka-1": true, "http://localhost.example.org:80": true, "http://[2001:db8::1]:80": true,
		"http://127.0.0.1:9021": false, "http://[::1]:80": false, "http://localhost:80": false, "https://kafka-1": false,
	} {
		u, err := url.Parse(address)
		assert.Must(t, err)
		assert.Equal(t, exposes(u), want, "%s", address)
	}
}

func TestWhereABrokerListensIsMadeWhereToGo(t *testing.T) {
	for listens, want := range map[string]string{
		"127.0.0.1:9021": "127.0.0.1:9021", "0.0.0.0:80": "broker7:80", ":80": "broker7:80", "[::]:80": "broker7:80",
		"127.0.0.1:0": "", "https://console.example.org": "https://console.example.org", "": "",
	} {
		assert.Equal(t, reachable(listens, "broker7"), want, "%s", listens)
	}
}
