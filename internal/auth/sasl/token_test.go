package sasl

import (
	"context"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"muster/internal/assert"
)

func TestTokensOfEveryAlgorithmWeAcceptVerify(t *testing.T) {
	clock := newClock()
	p256, p384, p521 := newEC(t, elliptic.P256()), newEC(t, elliptic.P384()), newEC(t, elliptic.P521())
	i := newIssuer(t, public("rsa", rsaKey()), public("256", p256), public("384", p384), public("521", p521))
	v := i.verifier(t, clock)
	for algorithm, c := range map[jose.SignatureAlgorithm]struct {
		id  string
		key any
	}{
		jose.RS256: {"rsa", rsaKey()}, jose.RS384: {"rsa", rsaKey()}, jose.RS512: {"rsa", rsaKey()},
		jose.PS256: {"rsa", rsaKey()}, jose.PS384: {"rsa", rsaKey()}, jose.PS512: {"rsa", rsaKey()},
		jose.ES256: {"256", p256}, jose.ES384: {"384", p384}, jose.ES512: {"521", p521},
	} {
		token, err := v.Verify(context.Background(), sign(t, algorithm, c.id, c.key, goodClaims(clock)))
		want := Token{Subject: "alice", Scopes: []string{"read", "write"}, Ends: clock.now().Truncate(time.Second).Add(600 * time.Second)}
		if err != nil || !token.Ends.Equal(want.Ends) || token.Subject != want.Subject || !reflect.DeepEqual(token.Scopes, want.Scopes) {
			t.Errorf("%s: %+v, %v", algorithm, token, err)
		}
	}
	assert.Equal(t, i.fetched(), 1, "fetches")
}

func TestTokensWithAWrongSignatureAreRefused(t *testing.T) {
	clock := newClock()
	p256 := newEC(t, elliptic.P256())
	weak := public("weak", weakKey())
	encryption := public("enc", rsaKey())
	encryption.Use = "enc"
	bound := public("rs256 only", rsaKey())
	bound.Algorithm = "RS256"
	shared := jose.JSONWebKey{KeyID: "shared", Key: []byte("0123456789abcdef0123456789abcdef")}
	i := newIssuer(t, public("rsa", rsaKey()), public("ec", p256), weak, encryption, bound, shared)
	v := i.verifier(t, clock)
	claims := goodClaims(clock)
	der, err := x509.MarshalPKIXPublicKey(rsaKey().Public())
	must(t, err)
	document := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := sign(t, jose.RS256, "rsa", rsaKey(), claims)
	parts := strings.Split(good, ".")
	forged := segment(t, with(claims, map[string]any{"sub": "admin"}))
	hs := segment(t, map[string]string{"alg": "HS256", "kid": "rsa"}) + "." + parts[1]
	hsMAC := hmac.New(sha256.New, document)
	hsMAC.Write([]byte(hs))

	for what, token := range map[string]string{
		"alg none":                   segment(t, map[string]string{"alg": "none"}) + "." + parts[1] + ".",
		"alg None with a signature":  segment(t, map[string]string{"alg": "None", "kid": "rsa"}) + "." + parts[1] + "." + parts[2],
		"no alg":                     segment(t, map[string]string{"kid": "rsa"}) + "." + parts[1] + "." + parts[2],
		"no signature":               parts[0] + "." + parts[1] + ".",
		"two parts":                  parts[0] + "." + parts[1],
		"HS256 with the public key":  hs + "." + base64.RawURLEncoding.EncodeToString(hsMAC.Sum(nil)),
		"HS256 with its DER":         sign(t, jose.HS256, "rsa", der, claims),
		"HS256 with a shared key":    sign(t, jose.HS256, "shared", []byte("0123456789abcdef0123456789abcdef"), claims),
		"other claims":               parts[0] + "." + forged + "." + parts[2],
		"another key":                sign(t, jose.RS256, "rsa", otherKey(), claims),
		"its own key in the header":  signWith(t, &jose.SignerOptions{EmbedJWK: true}, jose.RS256, "rsa", otherKey(), claims),
		"another kind of key":        sign(t, jose.ES256, "rsa", p256, claims),
		"the other way round":        sign(t, jose.RS256, "ec", rsaKey(), claims),
		"a weak key":                 sign(t, jose.RS256, "weak", weakKey(), claims),
		"a key for encryption":       sign(t, jose.RS256, "enc", rsaKey(), claims),
		"an algorithm not of a key":  sign(t, jose.PS256, "rs256 only", rsaKey(), claims),
		"an unknown key":             sign(t, jose.RS256, "nobody's", rsaKey(), claims),
		"no key id, several fit":     sign(t, jose.RS256, "", rsaKey(), claims),
		"something after it":         good + ".x",
		"nothing":                    "",
		"the JSON form":              `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"claims that are no object":  sign(t, jose.RS256, "rsa", rsaKey(), []string{"alice"}),
		"claims that are no JSON":    sign(t, jose.RS256, "rsa", rsaKey(), "x"),
		"a critical header, unknown": signWith(t, (&jose.SignerOptions{}).WithCritical("x").WithHeader("x", 1), jose.RS256, "rsa", rsaKey(), claims),
	} {
		accepted, err := v.Verify(context.Background(), token)
		if err == nil {
			t.Errorf("%s: accepted as %s", what, accepted.Subject)
		} else if len(token) > 20 && strings.Contains(err.Error(), token[:20]) {
			t.Errorf("%s: the error repeats the token: %v", what, err)
		}
	}
	if _, err := v.Verify(context.Background(), good); err != nil {
		t.Errorf("the good one: %v", err)
	}
	// A single key that fits an algorithm needs no id.
	if _, err := v.Verify(context.Background(), sign(t, jose.ES256, "", p256, claims)); err != nil {
		t.Errorf("no key id, one fits: %v", err)
	}
}

// That no shared key is ever picked is a second wall; this is the first.
func TestOnlyAlgorithmsWithAPrivateKeyAreAccepted(t *testing.T) {
	for _, algorithm := range algorithms {
		switch algorithm[:2] {
		case "RS", "PS", "ES":
		default:
			t.Errorf("%s is accepted", algorithm)
		}
	}
}

func TestClaimsAreHeldAgainstTheSettings(t *testing.T) {
	clock := newClock()
	now := clock.now().Unix()
	i := newIssuer(t, public("rsa", rsaKey()))
	standard := i.verifier(t, clock)
	anyone := &Verifier{Keys: standard.Keys, Now: clock.now}
	named := &Verifier{Keys: standard.Keys, Issuer: "https://issuer", Audiences: []string{"kafka"}, SubjectClaim: "preferred_username", ScopeClaim: "roles", Now: clock.now}
	for _, c := range []struct {
		what     string
		verifier *Verifier
		changes  map[string]any
		subject  string // Empty if refused.
	}{
		{"as it should be", standard, nil, "alice"},
		{"another issuer", standard, map[string]any{"iss": "https://issuer/"}, ""},
		{"no issuer", standard, map[string]any{"iss": nil}, ""},
		{"the issuer as a list", standard, map[string]any{"iss": []string{"https://issuer"}}, ""},
		{"the issuer in capitals", standard, map[string]any{"iss": nil, "ISS": "https://issuer"}, ""},
		{"any issuer", anyone, map[string]any{"iss": "x", "aud": nil}, "alice"},
		{"another audience", standard, map[string]any{"aud": "kafk"}, ""},
		{"no audience", standard, map[string]any{"aud": nil}, ""},
		{"an empty audience", standard, map[string]any{"aud": ""}, ""},
		{"an empty list of audiences", standard, map[string]any{"aud": []string{}}, ""},
		{"an audience with a space", standard, map[string]any{"aud": "x kafka"}, ""},
		{"an audience that is a number", standard, map[string]any{"aud": 1}, ""},
		{"one of several audiences", standard, map[string]any{"aud": []string{"x", "other"}}, "alice"},
		{"several other audiences", standard, map[string]any{"aud": []string{"x", "y"}}, ""},
		{"an audience where none is expected", anyone, nil, ""},
		{"expired", standard, map[string]any{"exp": now - 30}, ""},
		{"expired within the skew", standard, map[string]any{"exp": now - 29}, "alice"},
		{"expired this very moment, within the skew", standard, map[string]any{"exp": now}, "alice"},
		{"expired without a skew", named, map[string]any{"exp": now, "preferred_username": "bob"}, ""},
		{"no exp", standard, map[string]any{"exp": nil}, ""},
		{"exp as text", standard, map[string]any{"exp": "9999999999"}, ""},
		{"exp beyond all time", standard, map[string]any{"exp": 1e300}, ""},
		{"exp in milliseconds", standard, map[string]any{"exp": now * 1000}, ""},
		{"exp below zero", standard, map[string]any{"exp": -5}, ""},
		{"exp with a fraction", standard, map[string]any{"exp": float64(now) + 1.5}, "alice"},
		{"no iat", standard, map[string]any{"iat": nil}, ""},
		{"iat below zero", standard, map[string]any{"iat": -5}, ""},
		{"not yet", standard, map[string]any{"nbf": now + 31}, ""},
		{"not yet, within the skew", standard, map[string]any{"nbf": now + 30}, "alice"},
		{"a beginning that is text", standard, map[string]any{"nbf": "soon"}, ""},
		{"no subject", standard, map[string]any{"sub": nil}, ""},
		{"an empty subject", standard, map[string]any{"sub": ""}, ""},
		{"a subject with a space", standard, map[string]any{"sub": "alice "}, ""},
		{"a subject that is a number", standard, map[string]any{"sub": 7}, ""},
		{"another claim for the subject", named, map[string]any{"preferred_username": "bob", "roles": []string{"a", "b"}}, "bob"},
		{"not that claim", named, nil, ""},
		{"no scope", standard, map[string]any{"scope": nil}, "alice"},
		{"a scope that is a number", standard, map[string]any{"scope": 7}, "alice"},
	} {
		token, err := c.verifier.Verify(context.Background(), sign(t, jose.RS256, "rsa", rsaKey(), with(goodClaims(clock), c.changes)))
		assert.True(t, token.Subject == c.subject && (err == nil) == (c.subject != ""), "%s: %q, %v", c.what, token.Subject, err)
		assert.False(t, err == nil && !token.Ends.After(clock.now()), "%s: the session has ended before it begins", c.what)
		assert.False(t, c.what == "another claim for the subject" && !reflect.DeepEqual(token.Scopes, []string{"a", "b"}), "scopes %v", token.Scopes)
	}
}

func TestASubjectBecomesTheNameThatTheVerifierMakesOfIt(t *testing.T) {
	v := &Verifier{Now: func() time.Time { return start }, Name: func(s string) (string, error) {
		if s == "stranger" {
			return "", errors.New("no rule matches")
		}
		return strings.TrimSuffix(s, "@example.org"), nil
	}}
	of := func(subject string) claims {
		return claims{"sub": json.RawMessage(strconv.Quote(subject)), "iat": json.RawMessage("1"), "exp": json.RawMessage(strconv.FormatInt(start.Add(time.Hour).Unix(), 10))}
	}
	for subject, want := range map[string]string{"ann@example.org": "ann", "bob": "bob", "stranger": "", "@example.org": "", "ann @example.org": ""} {
		token, err := v.accept(of(subject))
		assert.True(t, token.Subject == want && (err == nil) == (want != ""), "%s: %q, %v", subject, token.Subject, err)
	}
}

func TestGroupsOfATokenAreThoseThatTheVerifierMakesOfThem(t *testing.T) {
	v := &Verifier{Now: func() time.Time { return start }, GroupsClaim: "groups", Groups: func(names []string) (string, error) {
		if len(names) > 2 {
			return "", errors.New("too many")
		}
		return strings.Join(names, "+"), nil
	}}
	for _, c := range []struct {
		claim, want string
		fails       bool
	}{
		{"", "", false}, {"null", "", false}, {`""`, "", false}, {"[]", "", false}, {`["a b","c"]`, "a b+c", false}, {`"a b"`, "a+b", false},
		{`["a","b","c"]`, "", true}, {"7", "", true}, {`{"a":true}`, "", true}, {`["a",7]`, "", true},
	} {
		of := claims{"sub": json.RawMessage(`"ann"`), "iat": json.RawMessage("1"), "exp": json.RawMessage(strconv.FormatInt(start.Add(time.Hour).Unix(), 10))}
		if c.claim != "" {
			of["groups"] = json.RawMessage(c.claim)
		}
		if token, err := v.accept(of); token.Groups != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", c.claim, token.Groups, err)
		}
		none := *v
		none.GroupsClaim = ""
		if token, err := none.accept(of); token.Groups != "" || err != nil {
			t.Errorf("%s, without a setting: %q, %v", c.claim, token.Groups, err)
		}
	}
}
