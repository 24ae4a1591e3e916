package sasl

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Keys take long to make, so tests share them.
var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return newRSA(2048) })
	weakKey  = sync.OnceValue(func() *rsa.PrivateKey { return newRSA(1024) })
	otherKey = sync.OnceValue(func() *rsa.PrivateKey { return newRSA(2048) })
)

func newRSA(bits int) *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		panic(err)
	}
	return key
}

func newEC(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	must(t, err)
	return key
}

// An issuer publishes keys at a real address and counts who asks.
type issuer struct {
	server *httptest.Server

	mu     sync.Mutex
	keys   []jose.JSONWebKey
	status int
	asked  int
	hold   chan struct{} // If there, answers wait for its end.
}

func newIssuer(t testing.TB, keys ...jose.JSONWebKey) *issuer {
	i := &issuer{keys: keys, status: http.StatusOK}
	i.server = httptest.NewServer(i)
	t.Cleanup(i.server.Close)
	return i
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	i.asked++
	body, err := json.Marshal(jose.JSONWebKeySet{Keys: i.keys})
	status, hold := i.status, i.hold
	i.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err != nil {
		status = http.StatusInternalServerError
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (i *issuer) set(change func(*issuer)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change(i)
}

func (i *issuer) fetched() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// verifier accepts what this issuer signs for "kafka".
func (i *issuer) verifier(t testing.TB, clock *testClock) *Verifier {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return &Verifier{
		Keys:   NewKeys(ctx, FetchHTTP(i.server.Client(), i.server.URL), time.Hour, clock.now),
		Issuer: "https://issuer", Audiences: []string{"kafka", "other"},
		Skew: 30 * time.Second,
		Now:  clock.now,
	}
}

func public(id string, key crypto.Signer) jose.JSONWebKey {
	return jose.JSONWebKey{KeyID: id, Key: key.Public(), Use: "sig"}
}

// goodClaims are those of a token that is accepted.
func goodClaims(clock *testClock) map[string]any {
	now := clock.now().Unix()
	return map[string]any{
		"iss": "https://issuer", "aud": "kafka", "sub": "alice", "scope": "read write",
		"iat": now - 60, "exp": now + 600,
	}
}

// with returns claims with changes; a nil value takes a claim away.
func with(claims map[string]any, changes map[string]any) map[string]any {
	claims = maps.Clone(claims)
	for name, value := range changes {
		if value == nil {
			delete(claims, name)
		} else {
			claims[name] = value
		}
	}
	return claims
}

// sign makes a token.
func sign(t testing.TB, algorithm jose.SignatureAlgorithm, id string, key any, claims any) string {
	t.Helper()
	return signWith(t, (&jose.SignerOptions{}).WithType("JWT"), algorithm, id, key, claims)
}

func signWith(t testing.TB, options *jose.SignerOptions, algorithm jose.SignatureAlgorithm, id string, key any, claims any) string {
	t.Helper()
	if id != "" {
		options = options.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	must(t, err)
	payload, err := json.Marshal(claims)
	must(t, err)
	signed, err := signer.Sign(payload)
	must(t, err)
	token, err := signed.CompactSerialize()
	must(t, err)
	return token
}

// segment writes a part of a token by hand, for those that no library makes.
func segment(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return base64.RawURLEncoding.EncodeToString(raw)
}
