package login

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/auth/sasl"
	"muster/internal/gate"
)

const (
	// oidcRefresh is how long what the issuer says of itself counts, and oidcRetry how
	// long one that does not answer is not asked again.
	oidcRefresh = time.Hour
	oidcRetry   = 5 * time.Second
	oidcTimeout = 5 * time.Second
	// maxRedeeming is how many codes are redeemed at a time, and maxOIDCAnswer how much
	// the issuer may say.
	maxRedeeming  = 8
	maxOIDCAnswer = 1 << 20
)

// OIDC lets people log in at an issuer by the authorization code of OpenID Connect,
// with PKCE. It implements Issuer.
type OIDC struct {
	issuer, id, secret, claim, groups string
	ctx                               context.Context
	client                            *http.Client
	gate                              *Gate
	slots                             chan struct{}

	mu     sync.Mutex
	known  *oidcKnown
	failed error
	asked  time.Time
}

// oidcKnown is what the issuer says of itself.
type oidcKnown struct {
	Issuer   string `json:"issuer"`
	Login    string `json:"authorization_endpoint"`
	Token    string `json:"token_endpoint"`
	KeySet   string `json:"jwks_uri"`
	verifier *sasl.Verifier
}

// openIssuer makes the issuer that the settings name, nil for none.
func (g *Gate) openIssuer(ctx context.Context) (*OIDC, error) {
	cfg := g.Gates.Certs.Config
	i := &OIDC{
		issuer: cfg.Get("muster.http.oidc.issuer"), id: cfg.Get("muster.http.oidc.client.id"), secret: cfg.Get("muster.http.oidc.client.secret"),
		claim: cfg.Get("muster.http.oidc.principal.claim"), groups: cfg.Get("muster.http.oidc.groups.claim"), ctx: ctx, gate: g, slots: make(chan struct{}, maxRedeeming),
	}
	if i.issuer == "" {
		return nil, nil
	}
	u, err := url.Parse(i.issuer)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("muster.http.oidc.issuer must begin with https:// or http://")
	case i.id == "":
		return nil, errors.New("muster.http.oidc.issuer needs muster.http.oidc.client.id")
	case u.Scheme == "http":
		g.Gates.Certs.Logger.Warn("the issuer of logins is asked in plain text: whoever can change its answers can log in as anyone", "issuer", i.issuer)
	}
	config, err := g.Gates.Certs.Client("")
	if err != nil {
		return nil, err
	}
	i.client = &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config(), DisableKeepAlives: true},
		Timeout:   oidcTimeout,
		// Neither codes nor secrets go where someone else says.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return i, nil
}

// knows returns what the issuer says of itself, asking it if that is not known. Whoever
// comes meanwhile waits for the same answer.
func (i *OIDC) knows() (*oidcKnown, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	age := time.Since(i.asked)
	if i.known != nil && age < oidcRefresh {
		return i.known, nil
	}
	if i.failed != nil && age < oidcRetry {
		return nil, i.failed
	}
	known, err := i.discover(i.ctx) // Not of who asks: others wait, too.
	if i.asked, i.failed = time.Now(), err; err == nil {
		i.known = known
	}
	return known, err
}

func (i *OIDC) discover(ctx context.Context) (*oidcKnown, error) {
	body, err := sasl.FetchHTTP(i.client, strings.TrimSuffix(i.issuer, "/")+"/.well-known/openid-configuration")(ctx)
	if err != nil {
		return nil, err
	}
	k := new(oidcKnown)
	if err := json.Unmarshal(body, k); err != nil {
		return nil, fmt.Errorf("what the issuer says of itself: %w", err)
	}
	if k.Issuer != i.issuer || k.Login == "" || k.Token == "" || k.KeySet == "" {
		return nil, fmt.Errorf("%s says that it is %q, or not where it is asked", i.issuer, k.Issuer)
	}
	k.verifier = &sasl.Verifier{
		Keys: sasl.NewKeys(i.ctx, sasl.FetchHTTP(i.client, k.KeySet), oidcRefresh, time.Now), Issuer: i.issuer, Audiences: []string{i.id},
		SubjectClaim: i.claim, GroupsClaim: i.groups, Groups: gate.GroupsOf, Skew: 30 * time.Second, Now: time.Now,
	}
	return k, nil
}

// Address implements Issuer.
func (i *OIDC) Address(_ context.Context, redirect, state, nonce, challenge string) (string, error) {
	k, err := i.knows()
	if err != nil {
		return "", err
	}
	u, err := url.Parse(k.Login)
	if err != nil {
		return "", err
	}
	q := u.Query()
	for name, value := range map[string]string{
		"response_type": "code", "client_id": i.id, "redirect_uri": redirect, "scope": "openid profile email", "state": state, "nonce": nonce,
		"code_challenge": challenge, "code_challenge_method": "S256",
	} {
		q.Set(name, value)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// Redeem implements Issuer.
func (i *OIDC) Redeem(ctx context.Context, redirect, code, verifier, nonce, host string) (Identity, error) {
	select {
	case i.slots <- struct{}{}:
		defer func() { <-i.slots }()
	default:
		return Identity{}, ErrLoginBusy
	}
	try := Attempt{Way: WayOIDC, Host: host}
	token, err := i.redeem(ctx, redirect, code, verifier, nonce)
	if err != nil {
		return Identity{}, i.gate.refuse(ctx, try, err, ErrToken)
	}
	who := auth.User(token.Subject)
	i.gate.tellLogin(audit.Login, who, try)
	return Identity{Principal: who, Groups: auth.Groups(token.Groups)}, nil
}

func (i *OIDC) redeem(ctx context.Context, redirect, code, verifier, nonce string) (sasl.Token, error) {
	k, err := i.knows()
	if err != nil {
		return sasl.Token{}, err
	}
	text, err := i.tokenFor(ctx, k, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirect}, "code_verifier": {verifier}, "client_id": {i.id},
	})
	if err != nil {
		return sasl.Token{}, err
	}
	token, err := k.verifier.Verify(ctx, text)
	if err != nil {
		return sasl.Token{}, err
	}
	if nonceOf(text) != nonce {
		return sasl.Token{}, errors.New("the token is for another login")
	}
	return token, nil
}

// tokenFor redeems a code for a token. Errors do not repeat what the issuer says, which may
// have tokens in it.
func (i *OIDC) tokenFor(ctx context.Context, k *oidcKnown, form url.Values) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, k.Token, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if i.secret != "" {
		r.SetBasicAuth(url.QueryEscape(i.id), url.QueryEscape(i.secret))
	}
	resp, err := i.client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }() // It was only read.
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOIDCAnswer))
	if err != nil {
		return "", err
	}
	var said struct {
		Token string `json:"id_token"`
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(body, &said) != nil || said.Token == "" {
		return "", fmt.Errorf("the issuer gives no token for the code: %s", resp.Status)
	}
	return said.Token, nil
}

// nonceOf returns the nonce of a token whose signature was found right.
func nonceOf(token string) string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return ""
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return ""
	}
	var claims map[string]json.RawMessage
	var nonce string
	if json.Unmarshal(text, &claims) != nil || json.Unmarshal(claims["nonce"], &nonce) != nil {
		return ""
	}
	return nonce
}
