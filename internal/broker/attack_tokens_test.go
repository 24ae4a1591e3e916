package broker_test

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	fsasl "github.com/twmb/franz-go/pkg/sasl"

	"muster/internal/broker"
	"muster/internal/logintest"
)

// issuer publishes its key over HTTP, and counts who asks for it.
type issuer struct {
	t *testing.T
	*logintest.Issuer
	url     string
	fetches atomic.Int64
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	made, err := logintest.NewIssuer()
	must(t, err)
	i := &issuer{t: t, Issuer: made}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		_, _ = w.Write(i.KeySet)
	}))
	t.Cleanup(s.Close)
	i.url = s.URL
	return i
}

// sign makes a token for ann, under an id of the key.
func (i *issuer) sign(algorithm jose.SignatureAlgorithm, key any, id string, ends time.Time) string {
	return i.signFor("kafka", algorithm, key, id, ends)
}

// signFor makes one for an audience.
func (i *issuer) signFor(audience string, algorithm jose.SignatureAlgorithm, key any, id string, ends time.Time) string {
	i.t.Helper()
	claims := logintest.ClaimsOf("ann", audience, ends)
	claims["iat"] = ends.Add(-time.Hour).Unix()
	token, err := logintest.Sign(algorithm, key, id, claims)
	must(i.t, err)
	return token
}

func (i *issuer) start() *broker.Broker {
	return start(i.t, map[string]string{
		"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "OAUTHBEARER", "connection.failed.authentication.delay.ms": "0",
		"sasl.oauthbearer.jwks.endpoint.url": i.url, "sasl.oauthbearer.expected.audience": "kafka",
	})
}

// bearer logs in by a token, and returns the code that the login ends with.
func bearer(b *broker.Broker, token string) (int16, error) {
	s, err := stranded(b.Addr())
	if err != nil {
		return 0, err
	}
	defer s.Close()
	return s.login(bearing(token))
}

// bearing is a client that reads why its token is refused, and says so, as Java's does.
type bearing string

func (bearing) Name() string { return "OAUTHBEARER" }

func (token bearing) Authenticate(context.Context, string) (fsasl.Session, []byte, error) {
	return token, []byte("n,,\x01auth=Bearer " + string(token) + "\x01\x01"), nil
}

func (bearing) Challenge(answer []byte) (done bool, next []byte, err error) {
	return len(answer) == 0, []byte("\x01"), nil
}

func TestForgedTokensLogNobodyIn(t *testing.T) {
	i := newIssuer(t)
	b := i.start()
	soon := time.Now().Add(time.Hour)
	good := i.sign(jose.ES256, i.Key, "k", soon)
	if code, err := bearer(b, good); code != 0 || err != nil {
		t.Fatalf("a good token: %d, %v", code, err)
	}
	public, err := x509.MarshalPKIXPublicKey(i.Key.Public())
	must(t, err)
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"k"}`))
	for name, token := range map[string]string{
		"of no algorithm":             none + "." + parts[1] + ".",
		"of none, with a signature":   none + "." + parts[1] + "." + parts[2],
		"signed with the public key":  i.sign(jose.HS256, public, "k", soon),
		"of another key, by its name": i.sign(jose.ES256, newIssuer(t).Key, "k", soon),
		"for another audience":        i.signFor("web", jose.ES256, i.Key, "k", soon),
		"that has ended":              i.sign(jose.ES256, i.Key, "k", time.Now().Add(-time.Hour)),
		"cut":                         good[:len(good)-8],
		"without a signature":         parts[0] + "." + parts[1] + ".",
		"of nothing":                  "..",
	} {
		if code, err := bearer(b, token); code != 58 {
			t.Errorf("a token %s: %d, %v", name, code, err)
		}
	}
	if code, err := bearer(b, good); code != 0 || err != nil {
		t.Errorf("a good token afterwards: %d, %v", code, err)
	}
}

// Anybody can invent ids of keys; the issuer does not hear of each.
func TestInventedKeysDoNotStormTheIssuer(t *testing.T) {
	i := newIssuer(t)
	b := i.start()
	begun, soon := time.Now(), time.Now().Add(time.Hour)
	good := i.sign(jose.ES256, i.Key, "k", soon)
	var all sync.WaitGroup
	for c := range 20 {
		var tokens []string
		for n := range 20 {
			tokens = append(tokens, i.sign(jose.ES256, i.Key, fmt.Sprint("invented-", c, "-", n), soon))
		}
		all.Go(func() {
			for _, token := range tokens {
				if code, err := bearer(b, token); code != 58 {
					t.Errorf("an unknown key: %d, %v", code, err)
				}
			}
			if code, err := bearer(b, good); code != 0 || err != nil {
				t.Errorf("a good token in the storm: %d, %v", code, err)
			}
		})
	}
	all.Wait()
	if n := i.fetches.Load(); n < 1 || n > 1+int64(time.Since(begun)/time.Minute) {
		t.Errorf("the keys were fetched %d times in %v", n, time.Since(begun))
	}
}
