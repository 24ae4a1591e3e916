package sasl

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"muster/internal/assert"
)

// Whatever two messages say, no one logs in who does not know the password, and
// what the parser takes it has understood whole.
func FuzzScram(f *testing.F) {
	f.Add([]byte("n,,n=alice,r=x"), []byte("c=biws,r=x,p=AAAA"))
	f.Add([]byte("y,a=al=2Cice,n=al=2Cice,r=x,tokenauth=true"), []byte("c=eSws,r=x,ext=1,p=AAAA"))
	f.Add([]byte("p=tls-unique,,n=alice,r=x"), []byte(",p="))
	server := aliceServer(f)
	f.Fuzz(func(t *testing.T, first, final []byte) {
		if m, err := parseClientFirst(first); err == nil {
			assert.MustTrue(t, m.header+m.bare == string(first) && m.name != "" && m.nonce != "" && !strings.Contains(m.nonce, ","), "%q: %+v", first, m)
		}
		if m, err := parseClientFinal(final); err == nil && !strings.HasPrefix(string(final), m.withoutProof+",p=") {
			t.Fatalf("%q: %+v", final, m)
		}
		e := server.Start()
		step, err := e.Next(context.Background(), first)
		if err == nil {
			assert.MustTrue(t, len(step.Answer) <= len(first)+200, "%d bytes answer %d", len(step.Answer), len(first))
			step, err = e.Next(context.Background(), final)
		}
		assert.MustTrue(t, err != nil && !step.Done, "logged in with %q, %q", first, final)
	})
}

func FuzzPlain(f *testing.F) {
	f.Add([]byte("\x00alice\x00pw"))
	f.Add([]byte("alice\x00alice\x00pw\x00"))
	f.Fuzz(func(t *testing.T, message []byte) {
		m, err := parsePlain(message)
		assert.MustFalse(t, err == nil && m.authzid+"\x00"+m.name+"\x00"+m.password != string(message), "%q: %+v", message, m)
	})
}

func FuzzBearer(f *testing.F) {
	f.Add([]byte("n,a=alice,\x01auth=Bearer a.b.c\x01host=x\x01\x01"))
	f.Fuzz(func(t *testing.T, message []byte) {
		m, err := parseBearer(message)
		assert.MustFalse(t, err == nil && (m.token == "" || !strings.Contains(string(message), m.token) || len(m.extensions) > maxPairs), "%q: %+v", message, m)
	})
}

func FuzzJAAS(f *testing.F) {
	f.Add(`org.apache.kafka.common.security.plain.PlainLoginModule required user_a="b\"" /* c */ user_d='e'; // f`)
	f.Add(`m optional; n sufficient x=y;`)
	f.Fuzz(func(t *testing.T, line string) {
		modules, err := ParseJAAS(line)
		if err != nil {
			return
		}
		for _, m := range modules {
			assert.MustTrue(t, m.Name != "" && m.Flag != "", "%q: %+v", line, m)
			assert.MustTrue(t, len(m.Passwords()) <= len(m.Options), "%q: %+v", line, m)
		}
	})
}

// fuzzKey is always the same: the processes of a fuzz run must agree on it.
func fuzzKey() *ecdsa.PrivateKey {
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{7}, 32))
	if err != nil {
		panic(err)
	}
	return key
}

// What fuzzKey signed, and fuzzKey as issuers publish it.
const (
	fuzzToken = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImVjIiwidHlwIjoiSldUIn0.eyJhdWQiOiJrYWZrYSIsImV4cCI6MTc3MjM2NzAwMCwiaWF0IjoxNzcyMzY2MzQwLCJpc3MiOiJodHRwczovL2lzc3VlciIsInNjb3BlIjoicmVhZCB3cml0ZSIsInN1YiI6ImFsaWNlIn0.BVmj0DWs0tthMD5NExhaQ-y_TvsRgz-LjDeeKnuRSca8PBTkQNGnAneFCMDLzhkeLTLGJreon7_Xkz53PLY_7g"
	fuzzJWK   = `{"kty":"EC","kid":"ec","crv":"P-256","x":"HhhTL9R1TALzBB2cdc6zO4P_2BrHzk_ogsyxyYvFiW4","y":"pGwxHE4v9A3ZajZT5uRURdMt_khuztdcepDGoYiBwKM"}`
)

// No token is accepted that was not signed. Its last letter has bits that stand
// for nothing, so what was signed is compared, and not the text.
func FuzzToken(f *testing.F) {
	clock := newClock()
	f.Add(fuzzToken)
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	ctx, cancel := context.WithCancel(context.Background())
	f.Cleanup(cancel)
	keys := NewKeys(ctx, func(context.Context) ([]byte, error) { return nil, errors.New("offline") }, 0, clock.now)
	keys.known, keys.tried = []jose.JSONWebKey{public("ec", fuzzKey())}, clock.now()
	v := &Verifier{Keys: keys, Audiences: []string{"kafka"}, Now: clock.now}
	if _, err := v.Verify(ctx, fuzzToken); err != nil {
		f.Fatal(err)
	}
	signed := fuzzToken[:strings.LastIndex(fuzzToken, ".")+1]
	f.Fuzz(func(t *testing.T, token string) {
		if accepted, err := v.Verify(context.Background(), token); err == nil && !strings.HasPrefix(token, signed) {
			t.Fatalf("%q: %+v", token, accepted)
		}
	})
}

// Claims come from an issuer, and an issuer errs too.
func FuzzClaims(f *testing.F) {
	f.Add([]byte(`"kafka"`), []byte("1.5e9"))
	f.Add([]byte(`["a","kafka"]`), []byte("-0"))
	v := &Verifier{Audiences: []string{"kafka"}, Now: func() time.Time { return start }}
	f.Fuzz(func(t *testing.T, audience, exp []byte) {
		c := claims{"aud": audience, "exp": exp, "iat": []byte("1"), "sub": []byte(`"alice"`), "scope": audience}
		token, err := v.accept(c)
		if err == nil && (!strings.Contains(string(audience), "k") && !strings.Contains(string(audience), `\u`) || !token.Ends.After(start)) {
			t.Fatalf("%q, %q: %+v", audience, exp, token)
		}
	})
}

func FuzzKeySet(f *testing.F) {
	f.Add([]byte(`{"keys":[` + fuzzJWK + `]}`))
	f.Add([]byte(`{"keys":[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		known, err := parseKeySet(body)
		if err != nil {
			return
		}
		for _, key := range known {
			assert.MustTrue(t, key.IsPublic() && key.Valid(), "%q: %+v", body, key)
		}
	})
}

// A name that is invented finds its way through the whole of SCRAM.
func FuzzName(f *testing.F) {
	f.Add("alice")
	f.Add("a,b=c")
	users := newUsers()
	users.set(f, SHA256, "alice", "pw")
	directory := NewDirectory(users, []byte("s"))
	escape := strings.NewReplacer("=", "=3D", ",", "=2C")
	f.Fuzz(func(t *testing.T, name string) {
		decoded, ok := decodeName(escape.Replace(name))
		assert.MustFalse(t, ok && decoded != name, "%q became %q", name, decoded)
		if c, known := directory.find(SHA256, name); c.Check() != nil || known != (name == "alice") {
			t.Fatalf("%q: %+v, known %t", name, c, known)
		}
		_, _ = NewScram(SHA256, directory, rand.Reader).Start().Next(context.Background(), []byte("n,,n="+name+",r=x"))
	})
}
