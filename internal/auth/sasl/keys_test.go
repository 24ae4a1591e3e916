package sasl

import (
	"bytes"
	"context"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"muster/internal/assert"
)

// Whatever key ids clients invent, the issuer is asked once a minute.
func TestUnknownKeysInAStormAreFetchedOnceAMinute(t *testing.T) {
	clock := newClock()
	i := newIssuer(t, public("rsa", rsaKey()))
	v := i.verifier(t, clock)
	if _, err := v.Verify(context.Background(), sign(t, jose.RS256, "rsa", rsaKey(), goodClaims(clock))); err != nil {
		t.Fatal(err)
	}
	storm := func() {
		var all sync.WaitGroup
		for n := range 200 {
			all.Go(func() {
				_, err := v.Keys.find(context.Background(), fmt.Sprintf("invented %d", n), jose.RS256)
				assert.Error(t, err, "found")
			})
		}
		all.Wait()
	}
	storm()
	clock.move(unknownInterval - 1)
	storm()
	assert.MustEqual(t, i.fetched(), 1, "fetches in the first minute")
	clock.move(1)
	storm()
	storm()
	assert.Equal(t, i.fetched(), 2, "fetches at the end of the minute")
}

// knowing returns how a verifier finds keys, once it knows one.
func knowing(t *testing.T, v *Verifier, id string) (find func(id string) error) {
	t.Helper()
	find = func(id string) error {
		_, err := v.Keys.find(context.Background(), id, jose.RS256)
		return err
	}
	must(t, find(id))
	return find
}

func TestNewKeysOfTheIssuerAreFound(t *testing.T) {
	clock := newClock()
	i := newIssuer(t, public("old", rsaKey()))
	find := knowing(t, i.verifier(t, clock), "old")
	i.set(func(i *issuer) { i.keys = []jose.JSONWebKey{public("new", otherKey())} })
	assert.Error(t, find("new"), "found within the minute")
	clock.move(unknownInterval)
	assert.NoError(t, find("new"))
	assert.Error(t, find("old"), "a key that the issuer took back still counts")
}

// Old keys are fetched again after a while even if no one misses one, because
// the issuer may have taken one back. Logins do not wait for that.
func TestKeysAreRefreshed(t *testing.T) {
	clock := newClock()
	i := newIssuer(t, public("old", rsaKey()))
	v := i.verifier(t, clock)
	find := knowing(t, v, "old")
	clock.move(time.Hour - 1)
	if err := find("old"); err != nil || i.fetched() != 1 {
		t.Fatal(err, i.fetched())
	}
	hold := make(chan struct{})
	i.set(func(i *issuer) { i.keys, i.hold = []jose.JSONWebKey{public("new", otherKey())}, hold })
	clock.move(1)
	for range 3 {
		if err := find("old"); err != nil {
			t.Fatal("a login waits for the refresh, or fails:", err)
		}
	}
	v.Keys.mu.Lock()
	running := v.Keys.fetches
	v.Keys.mu.Unlock()
	close(hold)
	assert.MustTrue(t, running != nil, "nothing is fetched")
	<-running
	assert.Error(t, find("old"), "a key that the issuer took back still counts")
	assert.Equal(t, i.fetched(), 2, "fetches")
}

func TestOldKeysStayWhileTheIssuerIsAway(t *testing.T) {
	clock := newClock()
	i := newIssuer(t, public("old", rsaKey()))
	find := knowing(t, i.verifier(t, clock), "old")
	i.set(func(i *issuer) { i.status = http.StatusServiceUnavailable })
	clock.move(unknownInterval)
	if err := find("new"); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("an unknown key while the issuer is away: %v", err)
	}
	assert.NoError(t, find("old"))
	clock.move(emptyInterval)
	if _ = find("new"); i.fetched() != 2 {
		t.Errorf("%d fetches: a failed one is repeated within the minute", i.fetched())
	}
}

func TestAnIssuerThatIsAwayAtFirstIsAskedAgainSoon(t *testing.T) {
	clock := newClock()
	i := newIssuer(t, public("key", rsaKey()))
	i.set(func(i *issuer) { i.status = http.StatusNotFound })
	v := i.verifier(t, clock)
	for range 5 {
		if _, err := v.Keys.find(context.Background(), "key", jose.RS256); err == nil {
			t.Fatal("found")
		}
	}
	assert.Equal(t, i.fetched(), 1, "fetches at once")
	i.set(func(i *issuer) { i.status = http.StatusOK })
	clock.move(emptyInterval)
	if _, err := v.Keys.find(context.Background(), "key", jose.RS256); err != nil {
		t.Error(err)
	}
}

// A client that hangs up does not end the fetch that others wait for.
func TestAFetchOutlivesTheLoginThatBeganIt(t *testing.T) {
	clock := newClock()
	i := newIssuer(t, public("key", rsaKey()))
	hold := make(chan struct{})
	i.set(func(i *issuer) { i.hold = hold })
	v := i.verifier(t, clock)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := v.Keys.find(ctx, "key", jose.RS256); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	clock.move(time.Hour) // However long it takes, there is one at a time.
	second := make(chan error)
	go func() {
		_, err := v.Keys.find(context.Background(), "key", jose.RS256)
		second <- err
	}()
	close(hold)
	assert.NoError(t, (<-second))
	assert.Equal(t, i.fetched(), 1, "fetches")
}

func TestKeySetsMayHoldMoreThanWeUnderstand(t *testing.T) {
	good, err := json.Marshal(public("good", newEC(t, elliptic.P256())))
	must(t, err)
	known, err := parseKeySet([]byte(`{"keys":[{"kty":"quantum"},{"kty":"RSA","n":"AQ"},7,null,{"kty":"oct","k":"AAAA"},` + string(good) + `],"more":1}`))
	assert.True(t, err == nil && len(known) == 1 && known[0].KeyID == "good", "%v, %v", known, err)
	long := base64.RawURLEncoding.EncodeToString(bytes.Repeat([]byte{0xff}, 4096/8+1))
	for _, bad := range []string{"", "[]", `{"keys":[{"kty":"RSA","e":"AQAB","n":"` + long + `"}]}`, "{}", `{"keys":[]}`, `{"keys":{}}`, `{"keys":[{"kty":"oct","k":"AAAA"}]}`, "<html>"} {
		if known, err := parseKeySet([]byte(bad)); err == nil {
			t.Errorf("%s: %v", bad, known)
		}
	}
}

func TestKeySetsAreBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwks.json")
	for size, fits := range map[int]bool{maxKeySet: true, maxKeySet + 1: false} {
		must(t, os.WriteFile(path, make([]byte, size), 0o600))
		if _, err := FetchFile(path)(context.Background()); (err == nil) != fits {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := FetchFile(path + "x")(context.Background()); err == nil {
		t.Error("a file that is not there")
	}
}
