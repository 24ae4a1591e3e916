package server

import "testing"

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
