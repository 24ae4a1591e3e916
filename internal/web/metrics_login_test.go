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
		ask := func(name, password string) (status int, challenge string) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String()+"/metrics", http.NoBody)
			must(t, err)
			if name != "" {
				req.SetBasicAuth(name, password)
			}
			resp, err := s.client.Do(req)
			must(t, err)
			_ = resp.Body.Close()
			return resp.StatusCode, resp.Header.Get("WWW-Authenticate")
		}
		refused := http.StatusNoContent
		if wanted {
			refused = http.StatusUnauthorized
		}
		if got, challenge := ask("", ""); got != refused || wanted == (challenge == "") {
			t.Errorf("login %t, nobody: %d", wanted, got)
		}
		if got, _ := ask("ann", "wrong"); got != refused {
			t.Errorf("login %t, a wrong password: %d", wanted, got)
		}
		if got, _ := ask("ann", "anns"); got != http.StatusNoContent {
			t.Errorf("login %t, ann: %d", wanted, got)
		}
		f.notReady = errors.New("users are not known yet")
		if got, _ := ask("ann", "anns"); wanted && got != http.StatusServiceUnavailable {
			t.Errorf("before users are known: %d", got)
		}
		f.notReady, f.users = nil, nil
		if got, _ := ask("", ""); got != http.StatusNoContent {
			t.Errorf("login %t, where nobody logs in: %d", wanted, got)
		}
	}
}
