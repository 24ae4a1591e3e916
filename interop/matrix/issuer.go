package main

import (
	"encoding/json"
	"net"
	"net/http"
	"time"

	"muster/internal/logintest"
)

// issuer gives out tokens for OAUTHBEARER, over HTTP on this machine:
//
//	/keys              the keys by which the broker knows its tokens
//	/token?for=4s      a token for whom the request names
//
// Clients ask for a token as in OAuth's client credentials grant, with the name of the user
// for client id and any secret, or just with ?sub=name. Without "for", it lasts for an hour.
// With ?aud=other it is not for this broker.
type issuer struct {
	*logintest.Issuer
	url    string
	server *http.Server
}

func startIssuer() (*issuer, error) {
	made, err := logintest.NewIssuer()
	if err != nil {
		return nil, err
	}
	i := &issuer{Issuer: made}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	i.url = "http://" + l.Addr().String()
	routes := http.NewServeMux()
	routes.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { answer(w, i.KeySet) })
	routes.HandleFunc("/token", i.token)
	i.server = &http.Server{Handler: routes, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = i.server.Serve(l) }()
	return i, nil
}

func (i *issuer) stop() { _ = i.server.Close() }

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	subject, _, ok := r.BasicAuth()
	for _, field := range []string{"client_id", "sub"} {
		if !ok {
			subject = r.FormValue(field)
			ok = subject != ""
		}
	}
	if !ok {
		http.Error(w, "a token for whom?", http.StatusBadRequest)
		return
	}
	lasts, err := time.ParseDuration(r.FormValue("for"))
	if err != nil {
		lasts = time.Hour
	}
	audience := r.FormValue("aud")
	if audience == "" {
		audience = "muster"
	}
	token, err := i.issue(subject, audience, lasts)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	text, _ := json.Marshal(map[string]any{"access_token": token, "token_type": "Bearer", "expires_in": int(lasts.Seconds())})
	answer(w, text)
}

// issue makes a token. Times of tokens are whole seconds, so it may last a second longer.
func (i *issuer) issue(subject, audience string, lasts time.Duration) (string, error) {
	now := time.Now()
	return i.Token(logintest.Claims{"iss": i.url, "sub": subject, "aud": audience, "iat": now.Unix(), "exp": now.Add(lasts).Unix() + 1})
}

func answer(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // Whoever asked may have gone.
}
