package sasl

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	client "github.com/twmb/franz-go/pkg/sasl/oauth"

	"muster/internal/assert"
)

func TestOAuthBearerClientsLogIn(t *testing.T) {
	clock := newClock()
	i := newIssuer(t, public("rsa", rsaKey()))
	server := NewOAuthBearer(i.verifier(t, clock))
	token := sign(t, jose.RS256, "rsa", rsaKey(), goodClaims(clock))
	extensions := map[string]string{"logicalCluster": "lkc-1", "identityPoolId": "pool 2"}
	for _, auth := range []client.Auth{
		{Token: token}, {Token: token, Zid: "alice"}, {Token: token, Extensions: extensions},
	} {
		step := wantLogin(t, auth.AsMechanism(), server, "alice")
		if left := step.Expires.Sub(clock.now()); left <= 599*time.Second || left > 600*time.Second {
			t.Errorf("the session ends in %s", left)
		}
	}
	_, _, err := login(t, client.Auth{Token: token, Zid: "admin"}.AsMechanism(), server)
	wantFailure(t, err, "Authentication failed: Client requested an authorization id that is different from the token's principal name", errIdentity)
}

// verifierFunc is a verifier for tests of the exchange.
type verifierFunc func(string) (Token, error)

func (f verifierFunc) Verify(_ context.Context, token string) (Token, error) { return f(token) }

var onlyGood = verifierFunc(func(token string) (Token, error) {
	if token != "good" {
		return Token{}, errors.New("the token is of another issuer")
	}
	return Token{Subject: "alice"}, nil
})

// Kafka answers a bad token with JSON, and fails when the client has said that
// it read it.
func TestOAuthBearerFailsAfterItsErrorWasRead(t *testing.T) {
	const refusal = `{"status":"invalid_token"}`
	for _, second := range []string{"\x01", "", "n,,\x01auth=Bearer good\x01\x01"} {
		e := NewOAuthBearer(onlyGood).Start()
		step, err := e.Next(context.Background(), []byte("n,,\x01auth=Bearer bad\x01\x01"))
		assert.MustTrue(t, err == nil && !step.Done && string(step.Answer) == refusal, "%q, %t, %v", step.Answer, step.Done, err)
		step, err = e.Next(context.Background(), []byte(second))
		wantFailure(t, err, refusal, nil)
		assert.True(t, !step.Done && err.Error() == "the token is of another issuer", "%t, %v", step.Done, err)
		_, err = e.Next(context.Background(), []byte("n,,\x01auth=Bearer good\x01\x01"))
		wantFailure(t, err, "", errOver)
	}
	e := NewOAuthBearer(onlyGood).Start()
	_, err := e.Next(context.Background(), []byte("\x01"))
	wantFailure(t, err, "", errMessage)
	_, err = e.Next(context.Background(), []byte("n,,\x01auth=Bearer good\x01\x01"))
	wantFailure(t, err, "", errOver)
	e = NewOAuthBearer(onlyGood).Start()
	if step, err := e.Next(context.Background(), []byte("n,,\x01auth=Bearer good\x01\x01")); err != nil || !step.Done {
		t.Fatal(step, err)
	}
	_, err = e.Next(context.Background(), []byte("n,,\x01auth=Bearer good\x01\x01"))
	wantFailure(t, err, "", errOver)
}

func TestBearerMessages(t *testing.T) {
	for _, c := range []struct {
		message string
		want    bearerMessage
	}{
		{"n,,\x01auth=Bearer t.o-k_3\x01\x01", bearerMessage{token: "t.o-k_3"}},
		{"n,,\x01auth=bEARER   t\x01\x01", bearerMessage{token: "t"}},
		{"n,a=al=2Cice=3D,\x01auth=Bearer t\x01\x01", bearerMessage{authzid: "al,ice=", token: "t"}},
		{"n,,\x01host=h\x01auth=Bearer t\x01port=1 \t=\r\n\x01\x01", bearerMessage{token: "t", extensions: map[string]string{"host": "h", "port": "1 \t=\r\n"}}},
		{"y,,\x01auth=Bearer t\x01\x01", bearerMessage{token: "t"}},
	} {
		if c.want.extensions == nil {
			c.want.extensions = map[string]string{}
		}
		got, err := parseBearer([]byte(c.message))
		assert.True(t, err == nil && reflect.DeepEqual(got, c.want), "%q: %+v, %v", c.message, got, err)
	}
	var pairs string
	for i := range maxPairs {
		pairs += strings.Repeat("x", i+1) + "=y\x01"
	}
	if m, err := parseBearer([]byte("n,,\x01auth=Bearer t\x01" + pairs[len("x=y\x01"):] + "\x01")); err != nil || len(m.extensions) != maxPairs-1 {
		t.Errorf("as many pairs as may be: %d, %v", len(m.extensions), err)
	}
	for _, message := range []string{
		"", "\x01", "n", "n,", "n,,", "n,,\x01", "n,,\x01\x01", "n,,auth=Bearer t\x01\x01", "p=tls-unique,,\x01auth=Bearer t\x01\x01",
		"n,,\x01auth=Bearer t\x01", "n,,\x01auth=Bearer t", "n,,\x01auth=Bearer t\x01\x01x", "n,,\x01auth=Bearer t\x01\x01\x01",
		"n,,\x01auth=Bearer \x01\x01", "n,,\x01auth=Bearer\x01\x01", "n,,\x01auth=Basic t\x01\x01", "n,,\x01auth=t\x01\x01", "n,,\x01auth=\x01\x01",
		"n,,\x01auth=Bearer t t\x01\x01", "n,,\x01auth=Bearer t=\x01\x01", "n,,\x01auth=Bearer {}\x01\x01",
		"n,,\x01auth=Bearer t\x01auth=Bearer u\x01\x01", "n,,\x01auth=Bearer t\x01a=b\x01a=c\x01\x01", "n,,\x01a=b\x01\x01",
		"n,,\x01auth=Bearer t\x01a1=b\x01\x01", "n,,\x01auth=Bearer t\x01=b\x01\x01", "n,,\x01auth=Bearer t\x01a\x01\x01", "n,,\x01auth=Bearer t\x01a=\x01\x01",
		"n,,\x01auth=Bearer t\x01a=\x7f\x01\x01", "n,,\x01auth=Bearer t\x01a=ü\x01\x01", "n,a=,\x01auth=Bearer t\x01\x01", "n,x=y,\x01auth=Bearer t\x01\x01",
		"n,a=x=,\x01auth=Bearer t\x01\x01", "n,,\x01auth=Bearer t\x01" + pairs + "\x01",
		"n,,\x01auth=Bearer " + strings.Repeat("t", maxOAuth) + "\x01\x01",
	} {
		if got, err := parseBearer([]byte(message)); err == nil {
			t.Errorf("%.60q: %+v", message, got)
		}
	}
}
