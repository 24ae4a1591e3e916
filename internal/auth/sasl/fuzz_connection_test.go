package sasl

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

// said is a script of what a client says: steps of a letter, a length and so many bytes.
func said(steps ...string) (script []byte) {
	for _, s := range steps {
		script = append(script, s[0], byte(len(s)-1))
		script = append(script, s[1:]...)
	}
	return script
}

// steps calls do with each step of a script, until it returns false.
func steps(script []byte, do func(what byte, text []byte) bool) {
	for len(script) >= 2 {
		what, n := script[0], min(int(script[1]), len(script)-2)
		if !do(what, script[2:2+n]) {
			return
		}
		script = script[2+n:]
	}
}

// Whatever a stranger says in whatever order, it is not logged in, and after the end of
// the connection nothing is heard any more.
func FuzzConnection(f *testing.F) {
	f.Add(said("v", "hPLAIN", "a\x00alice\x00pw", "r"))
	f.Add(said("hSCRAM-SHA-256", "an,,n=alice,r=x", "ac=biws,r=x,p=AAAA", "hPLAIN"))
	f.Add(said("0SCRAM-SHA-512", "tn,,n=alice,r=x", "tc=biws,r=x,p=AAAA"))
	f.Add(said("hOAUTHBEARER", "an,,\x01auth=Bearer a.b.c\x01\x01", "a\x01"))
	f.Add(said("r", "a", "hGSSAPI", "tx"))
	users, clock := newUsers(), newClock()
	for _, h := range []Hash{SHA256, SHA512} {
		users.set(f, h, "alice", rand.Text())
	}
	directory := NewDirectory(users, []byte("s"))
	ctx, cancel := context.WithCancel(context.Background())
	f.Cleanup(cancel)
	keys := NewKeys(ctx, func(context.Context) ([]byte, error) { return nil, errors.New("offline") }, 0, clock.now)
	keys.known, keys.tried = []jose.JSONWebKey{public("ec", fuzzKey())}, clock.now()
	server := &Server{
		Mechanisms: []Mechanism{
			NewScram(SHA256, directory, rand.Reader), NewScram(SHA512, directory, rand.Reader),
			NewPlain(directory, NewLimiter(Limits{Turns: 1}), []byte("m"), 10), NewOAuthBearer(&Verifier{Keys: keys, Audiences: []string{"kafka"}, Now: clock.now}),
		},
		Now: clock.now,
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		c := server.Connect()
		ended, asked := false, 0
		steps(script, func(what byte, text []byte) bool {
			ended = stranger(t, c, what, text) || ended
			if asked++; c.Principal() != "" {
				t.Fatalf("%q logs in", script)
			}
			return asked < 20 && !ended
		})
		if ended && (c.Raw() || c.Arrives(handshake) != Close || c.Arrives(versions) != Close || c.Authenticate(ctx, nil).Error == nil) {
			t.Fatalf("%q is heard after its end", script)
		}
	})
}

// stranger takes a step as a listener does, and says whether the connection has ended.
func stranger(t *testing.T, c *Connection, what byte, text []byte) (ended bool) {
	t.Helper()
	if c.Raw() {
		return c.Authenticate(context.Background(), text).Error != nil
	}
	key := map[byte]int16{'v': versions, 'h': handshake, '0': handshake, 'a': authenticate, 't': authenticate}[what]
	switch c.Arrives(key) {
	case Close, RefuseAndClose:
		return true
	case Refuse:
		t.Fatal("only who has logged in is refused and stays")
	}
	switch key {
	case handshake:
		version := int16(1)
		if what == '0' {
			version = 0
		}
		err, _ := c.Handshake(version, string(text))
		return err != nil
	case authenticate:
		return c.Authenticate(context.Background(), text).Error != nil
	case versions:
		return false
	}
	t.Fatalf("a request with key %d is let through", key)
	return true
}
