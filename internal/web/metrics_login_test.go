package web

import (
	"errors"
	"net/http"
	"testing"
)

func TestMetricsNeedALoginIfTheSettingSaysSo(t *testing.T) {
	for _, wanted := range []bool{false, true} {
		f := newFake(t)
		f.users = map[string]string{"ann": "anns"}
		told := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		s := serve(t, f, func(o *Options) { o.Metrics, o.MetricsLogin = told, wanted })
		ask := func(name, password string) *http.Response {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String()+"/metrics", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			if name != "" {
				req.SetBasicAuth(name, password)
			}
			resp, err := s.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp
		}
		refused := http.StatusNoContent
		if wanted {
			refused = http.StatusUnauthorized
		}
		if got := ask("", ""); got.StatusCode != refused || wanted == (got.Header.Get("WWW-Authenticate") == "") {
			t.Errorf("login %t, nobody: %d", wanted, got.StatusCode)
		}
		if got := ask("ann", "wrong"); got.StatusCode != refused {
			t.Errorf("login %t, a wrong password: %d", wanted, got.StatusCode)
		}
		if got := ask("ann", "anns"); got.StatusCode != http.StatusNoContent {
			t.Errorf("login %t, ann: %d", wanted, got.StatusCode)
		}
		f.notReady = errors.New("users are not known yet")
		if got := ask("ann", "anns"); wanted && got.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("before users are known: %d", got.StatusCode)
		}
		f.notReady, f.users = nil, nil
		if got := ask("", ""); got.StatusCode != http.StatusNoContent {
			t.Errorf("login %t, where nobody logs in: %d", wanted, got.StatusCode)
		}
	}
}
