package logintest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// OIDC is an OpenID Connect issuer at which whoever comes is logged in as User at once.
type OIDC struct {
	*Issuer
	// URL is where it is reached, which is its name.
	URL string
	// ClientID and Secret are those of the one client that it knows.
	ClientID, Secret string
	User             string
	// Change changes the claims of the next tokens; nil to leave them.
	Change func(Claims)

	mu    sync.Mutex
	codes map[string]url.Values
}

// ServeHTTP implements http.Handler.
func (o *OIDC) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": o.URL, "authorization_endpoint": o.URL + "/login", "token_endpoint": o.URL + "/token", "jwks_uri": o.URL + "/keys",
		})
	case "/keys":
		_, _ = w.Write(o.KeySet)
	case "/login":
		o.login(w, r)
	case "/token":
		o.token(w, r)
	default:
		http.NotFound(w, r)
	}
}

// login sends a browser back with a code.
func (o *OIDC) login(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != o.ClientID || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("nonce") == "" {
		http.Error(w, "no login as it is wanted here", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	o.mu.Lock()
	if o.codes == nil {
		o.codes = map[string]url.Values{}
	}
	o.codes[code] = q
	o.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

// token redeems a code, once.
func (o *OIDC) token(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	secret, _ = url.QueryUnescape(secret) // RFC 6749 has it escaped.
	code := r.PostFormValue("code")
	o.mu.Lock()
	asked := o.codes[code]
	delete(o.codes, code)
	o.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if asked == nil || id != o.ClientID || secret != o.Secret || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge") {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := ClaimsOf(o.User, o.ClientID, time.Now().Add(time.Minute))
	claims["iss"], claims["nonce"] = o.URL, asked.Get("nonce")
	if o.Change != nil {
		o.Change(claims)
	}
	token, err := o.Token(claims)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]string{"id_token": token, "token_type": "Bearer"})
}
