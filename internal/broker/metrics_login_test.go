package broker_test

import (
	"net/http"
	"testing"
)

func TestMetricsOverHTTPNeedALoginBySetting(t *testing.T) {
	for _, wanted := range []string{"false", "true"} {
		b := startSASL(t, map[string]string{"muster.http.listener": "127.0.0.1:0", "muster.http.metrics.login": wanted})
		code, _ := people(t, b, nil, http.MethodGet, "", "", func(r *http.Request) { r.URL.Path = "/metrics" })
		if (code == http.StatusUnauthorized) != (wanted == "true") || wanted == "false" && code != http.StatusOK {
			t.Errorf("%s: %d", wanted, code)
		}
		if code, _ := people(t, b, nil, http.MethodGet, "", "", func(r *http.Request) { r.URL.Path = "/metrics"; r.SetBasicAuth("ann", "anns") }); code != http.StatusOK {
			t.Errorf("%s, ann: %d", wanted, code)
		}
	}
}
