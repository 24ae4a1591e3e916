package sasl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// algorithms are the signatures that we accept. None of them can be made with
// what a JWKS publishes; HMAC could, with a public key for its secret.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512,
	jose.PS256, jose.PS384, jose.PS512,
	jose.ES256, jose.ES384, jose.ES512,
}

// A Verifier accepts tokens by Kafka's settings sasl.oauthbearer.*.
type Verifier struct {
	// Keys are those of jwks.endpoint.url.
	Keys *Keys
	// Issuer is expected.issuer; empty: any whose keys these are.
	Issuer string
	// Audiences are expected.audience; a token must be for one of them. As in
	// Kafka, if there are none, a token that names an audience is not for us.
	Audiences []string
	// SubjectClaim and ScopeClaim are sub.claim.name and scope.claim.name, by
	// default "sub" and "scope".
	SubjectClaim string
	ScopeClaim   string
	// GroupsClaim names the claim with the groups of the user, and Groups makes one string
	// of these, or refuses them; empty for none.
	GroupsClaim string
	Groups      func(names []string) (string, error)
	// Name makes of a subject the name of a user, or refuses it; nil for the
	// subject itself.
	Name func(subject string) (string, error)
	// Skew is clock.skew.seconds: how far the clock of the issuer may be off.
	Skew time.Duration
	Now  func() time.Time
}

// Verify says whose token it is, or why it is not accepted. The error is for our
// log and does not repeat the token.
func (v *Verifier) Verify(ctx context.Context, token string) (Token, error) {
	// Only the compact form, and only algorithms of the list: "none" and HMAC
	// already fail here, before a key is looked at.
	signed, err := jose.ParseSignedCompact(token, algorithms)
	if err != nil {
		return Token{}, errors.New("the token is no JWT with a signature of a kind we accept")
	}
	header := signed.Signatures[0].Protected
	key, err := v.Keys.find(ctx, header.KeyID, jose.SignatureAlgorithm(header.Algorithm))
	if err != nil {
		return Token{}, err
	}
	payload, err := signed.Verify(key)
	if err != nil {
		return Token{}, errors.New("the signature of the token is wrong")
	}
	// A map, because Go would fill a field named iss from a claim named ISS.
	var claims claims
	if err := json.Unmarshal(payload, &claims); err != nil {
		return Token{}, errors.New("the token's claims are no JSON object")
	}
	return v.accept(claims)
}

// accept holds claims against the settings.
func (v *Verifier) accept(c claims) (Token, error) {
	if v.Issuer != "" && c.text("iss") != v.Issuer {
		return Token{}, errors.New("the token is of another issuer")
	}
	if err := v.acceptAudience(c); err != nil {
		return Token{}, err
	}
	ends, err := v.acceptTimes(c)
	if err != nil {
		return Token{}, err
	}
	claim := v.SubjectClaim
	if claim == "" {
		claim = "sub"
	}
	subject := c.text(claim)
	// White space around a name would let two names look alike.
	if subject == "" || strings.TrimSpace(subject) != subject {
		return Token{}, fmt.Errorf("the token's claim %s is not a name", claim)
	}
	if v.Name != nil {
		name, err := v.Name(subject)
		if err != nil {
			return Token{}, err
		}
		if subject = name; subject == "" || strings.TrimSpace(subject) != subject {
			return Token{}, fmt.Errorf("no name is left of the token's claim %s", claim)
		}
	}
	claim = v.ScopeClaim
	if claim == "" {
		claim = "scope"
	}
	scopes, _ := c.list(claim)
	groups, err := v.groups(c)
	if err != nil {
		return Token{}, err
	}
	return Token{Subject: subject, Groups: groups, Scopes: scopes, Ends: ends}, nil
}

// groups returns the groups that a token names. One without the claim names none.
func (v *Verifier) groups(c claims) (string, error) {
	raw, named := c[v.GroupsClaim]
	if v.GroupsClaim == "" || !named || string(raw) == "null" {
		return "", nil
	}
	names, ok := c.list(v.GroupsClaim)
	if !ok && string(raw) != `""` {
		return "", fmt.Errorf("the token's claim %s is no list of groups", v.GroupsClaim)
	}
	groups, err := v.Groups(names)
	if err != nil {
		return "", fmt.Errorf("the token's claim %s: %w", v.GroupsClaim, err)
	}
	return groups, nil
}

func (v *Verifier) acceptAudience(c claims) error {
	if _, named := c["aud"]; !named && len(v.Audiences) == 0 {
		return nil
	}
	audiences, ok := c.audience()
	if ok {
		for _, audience := range audiences {
			if slices.Contains(v.Audiences, audience) {
				return nil
			}
		}
	}
	return errors.New("the token is for another audience")
}

// acceptTimes checks exp and nbf, and returns when the session must end. As in
// Kafka, exp and iat must be there.
func (v *Verifier) acceptTimes(c claims) (ends time.Time, err error) {
	now := v.Now()
	exp, ok := c.time("exp")
	if !ok {
		return ends, errors.New("the token has no exp")
	}
	if _, ok := c.time("iat"); !ok {
		return ends, errors.New("the token has no iat")
	}
	if !now.Before(exp.Add(v.Skew)) {
		return ends, errors.New("the token has expired")
	}
	if _, has := c["nbf"]; has {
		if nbf, ok := c.time("nbf"); !ok || now.Add(v.Skew).Before(nbf) {
			return ends, errors.New("the token is not valid yet")
		}
	}
	// KIP-368: the session ends with the token. One that is accepted only thanks
	// to the skew would end at once, and its client would come back for ever.
	if !exp.After(now) {
		return exp.Add(v.Skew), nil
	}
	return exp, nil
}

type claims map[string]json.RawMessage

// text returns a claim that is a string, else nothing.
func (c claims) text(name string) string {
	var s string
	if json.Unmarshal(c[name], &s) != nil {
		return ""
	}
	return s
}

// list returns a claim that is a list of strings, or a string of words.
func (c claims) list(name string) ([]string, bool) {
	var many []string
	if json.Unmarshal(c[name], &many) == nil {
		return many, many != nil
	}
	s := c.text(name)
	return strings.Fields(s), s != ""
}

// audience returns aud, which is a string or a list of them. A space does not
// part it.
func (c claims) audience() ([]string, bool) {
	var many []string
	if json.Unmarshal(c["aud"], &many) == nil {
		return many, len(many) > 0
	}
	one := c.text("aud")
	return []string{one}, one != ""
}

// time returns a claim that is a NumericDate: seconds since 1970, with a
// fraction if the issuer likes.
func (c claims) time(name string) (time.Time, bool) {
	var seconds float64
	raw := c[name]
	if len(raw) == 0 || string(raw) == "null" || json.Unmarshal(raw, &seconds) != nil {
		return time.Time{}, false
	}
	if seconds <= 0 || seconds > 1e11 { // The year 5138; beyond, Go's durations end.
		return time.Time{}, false
	}
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(fraction*1e9)), true
}
