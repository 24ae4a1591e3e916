package sasl

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// unknownInterval is the least time between two fetches because of a key id
	// that we do not know: anyone can invent those.
	unknownInterval = time.Minute
	// emptyInterval is the same while we have no keys at all, so that logins
	// work soon after the issuer is back.
	emptyInterval = 10 * time.Second

	fetchTimeout = 10 * time.Second
	maxKeySet    = 1 << 20
	minRSA       = 2048 // NIST, and what Kafka's library demands.
)

// A Fetch reads a JWKS document.
type Fetch func(ctx context.Context) ([]byte, error)

// Keys are the public keys of an issuer, fetched when first needed, again after
// Refresh, and when a token names a key that is not among them, which is how
// issuers change keys; but the latter once a minute at most, whatever clients
// send. If a fetch fails the old keys stay.
type Keys struct {
	ctx     context.Context
	fetch   Fetch
	refresh time.Duration // jwks.endpoint.refresh.ms
	now     func() time.Time

	mu      sync.Mutex
	known   []jose.JSONWebKey
	tried   time.Time     // When the last fetch began.
	got     time.Time     // When the last one that succeeded did.
	failed  error         // Of the last fetch.
	fetches chan struct{} // Closed at the end of the fetch under way; nil if none is.
}

// NewKeys makes the keys of an issuer. Nothing is fetched yet. With ctx ends what
// is being fetched: a fetch does not belong to the connection that caused it,
// since others wait for it, and a client that hangs up must not cost them their
// minute.
func NewKeys(ctx context.Context, fetch Fetch, refresh time.Duration, now func() time.Time) *Keys {
	return &Keys{ctx: ctx, fetch: fetch, refresh: refresh, now: now}
}

// find returns the key for a token's header.
func (k *Keys) find(ctx context.Context, id string, algorithm jose.SignatureAlgorithm) (any, error) {
	k.mu.Lock()
	key := pick(k.known, id, algorithm)
	if !k.due(key == nil) {
		running := k.fetches
		k.mu.Unlock()
		if key != nil || running == nil {
			return found(key)
		}
		return k.await(ctx, running, id, algorithm)
	}
	done := make(chan struct{})
	k.tried, k.fetches = k.now(), done
	k.mu.Unlock()
	go k.load(done)
	if key != nil {
		return key, nil // It is only old.
	}
	return k.await(ctx, done, id, algorithm)
}

// due says whether to fetch now.
func (k *Keys) due(unknown bool) bool {
	since := k.now().Sub(k.tried)
	switch {
	case k.fetches != nil:
		return false
	case k.tried.IsZero():
		return true
	case len(k.known) == 0:
		return since >= emptyInterval
	case unknown:
		return since >= unknownInterval
	default:
		return k.refresh > 0 && k.now().Sub(k.got) >= k.refresh && since >= unknownInterval
	}
}

// load fetches once.
func (k *Keys) load(done chan struct{}) {
	ctx, cancel := context.WithTimeout(k.ctx, fetchTimeout)
	defer cancel()
	body, err := k.fetch(ctx)
	var known []jose.JSONWebKey
	if err == nil {
		known, err = parseKeySet(body)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		k.known, k.got = known, k.now()
	}
	k.failed, k.fetches = err, nil
	close(done)
}

// await waits for a fetch and looks again.
func (k *Keys) await(ctx context.Context, done <-chan struct{}, id string, algorithm jose.SignatureAlgorithm) (any, error) {
	select {
	case <-done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	key := pick(k.known, id, algorithm)
	if key == nil && k.failed != nil {
		return nil, fmt.Errorf("fetch the keys of the issuer: %w", k.failed)
	}
	return found(key)
}

func found(key any) (any, error) {
	if key == nil {
		return nil, errors.New("the token's key is not among those of the issuer")
	}
	return key, nil
}

// pick finds the key for a header. A token may leave out the id of its key only
// if a single key fits, so that one never costs more than one verification.
func pick(known []jose.JSONWebKey, id string, algorithm jose.SignatureAlgorithm) any {
	var fit []jose.JSONWebKey
	for _, key := range known {
		if (id == "" || key.KeyID == id) && fits(key, algorithm) {
			fit = append(fit, key)
		}
	}
	if len(fit) == 0 || id == "" && len(fit) > 1 {
		return nil
	}
	return fit[0].Key
}

// fits says whether a key may verify signatures of an algorithm. Of an
// elliptic key the library checks the curve.
func fits(key jose.JSONWebKey, algorithm jose.SignatureAlgorithm) bool {
	if key.Algorithm != "" && key.Algorithm != string(algorithm) {
		return false
	}
	switch key.Key.(type) {
	case *rsa.PublicKey:
		return strings.HasPrefix(string(algorithm), "RS") || strings.HasPrefix(string(algorithm), "PS")
	case *ecdsa.PublicKey:
		return strings.HasPrefix(string(algorithm), "ES")
	default:
		return false
	}
}

// parseKeySet reads a JWKS. Keys of kinds that we do not use, and those that are
// malformed, are left out: an issuer may publish more than we understand.
func parseKeySet(body []byte) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, errors.New("the key set is no JSON object with a list of keys")
	}
	var known []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if key.UnmarshalJSON(raw) == nil && isUsable(key) {
			known = append(known, key)
		}
	}
	if len(known) == 0 {
		return nil, errors.New("the key set has no key that we can use")
	}
	return known, nil
}

// isUsable says whether a key is public, for signatures, and not weak. Of RSA keys
// so long that verifying would be an attack the library takes none: it ends at
// 4096 bits.
func isUsable(key jose.JSONWebKey) bool {
	if key.Use != "" && key.Use != "sig" {
		return false
	}
	switch public := key.Key.(type) {
	case *rsa.PublicKey:
		return public.N.BitLen() >= minRSA
	case *ecdsa.PublicKey:
		return true
	default:
		return false
	}
}

// FetchHTTP reads a JWKS from a URL.
func FetchHTTP(client *http.Client, url string) Fetch {
	return func(ctx context.Context) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return nil, err
		}
		response, err := client.Do(request)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return nil, fmt.Errorf("%s answers %s", url, response.Status)
		}
		return readKeySet(response.Body)
	}
}

// FetchFile reads a JWKS from a file, for jwks.endpoint.url=file:…
func FetchFile(path string) Fetch {
	return func(context.Context) ([]byte, error) {
		file, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }() // It was only read.
		return readKeySet(file)
	}
}

func readKeySet(r io.Reader) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, maxKeySet+1))
	if err == nil && len(body) > maxKeySet {
		err = fmt.Errorf("the key set has more than %d bytes", maxKeySet)
	}
	return body, err
}
