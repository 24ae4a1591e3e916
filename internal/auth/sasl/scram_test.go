package sasl

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sasl"
	client "github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
)

func franz(h Hash, auth client.Auth) sasl.Mechanism {
	if h == SHA512 {
		return auth.AsSha512Mechanism()
	}
	return auth.AsSha256Mechanism()
}

func TestScramClientsLogIn(t *testing.T) {
	for _, h := range []Hash{SHA256, SHA512} {
		for name, password := range map[string]string{
			"alice":       "alice-secret",
			"a,b=c=2C":    "comma, and = equals",
			"Ünïcode 名":   "pässwörd",
			"=3D=2C,,==,": ",",
		} {
			users := newUsers()
			users.set(t, h, name, password)
			server := NewScram(h, NewDirectory(users, []byte("s")), rand.Reader)
			wantLogin(t, franz(h, client.Auth{User: name, Pass: password}), server, name)
			wantLogin(t, franz(h, client.Auth{User: name, Pass: password, Zid: name}), server, name)
			_, _, err := login(t, franz(h, client.Auth{User: name, Pass: password + "x"}), server)
			wantFailure(t, err, "", errInvalid)
			_, _, err = login(t, franz(h, client.Auth{User: name + "x", Pass: password}), server)
			wantFailure(t, err, "", errInvalid)
		}
	}
}

func TestScramUserMayNotActForAnother(t *testing.T) {
	users := newUsers()
	users.set(t, SHA256, "alice", "pw")
	users.set(t, SHA256, "admin", "other")
	server := NewScram(SHA256, NewDirectory(users, []byte("s")), rand.Reader)
	for _, name := range []string{"alice", "nobody"} {
		_, _, err := login(t, franz(SHA256, client.Auth{User: name, Pass: "pw", Zid: "admin"}), server)
		wantFailure(t, err, "Authentication failed: Client requested an authorization id that is different from username", errIdentity)
	}
}

// The exchange of RFC 7677, section 3. The nonce of its server is not of the form
// of ours, so the exchange is put into the state before the last message.
func TestScramAnswersAsTheRFCDoes(t *testing.T) {
	salt, err := base64.StdEncoding.DecodeString("W22ZaJ0SNY7soEsUEjb6gQ==")
	must(t, err)
	users := newUsers()
	users.setSalted(t, SHA256, "user", "pencil", salt, 4096)
	s := NewScram(SHA256, NewDirectory(users, []byte("s")), rand.Reader).(*scram)
	first, err := parseClientFirst([]byte("n,,n=user,r=rOprNGfwEbeRWgbNEkqO"))
	must(t, err)
	e := &scramExchange{scram: s, next: 1, first: first, nonce: "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"}
	e.challenge = "r=" + e.nonce + ",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
	e.credential, e.known = s.directory.find(SHA256, "user")
	step, err := e.Next(context.Background(), []byte("c=biws,r="+e.nonce+",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="))
	if err != nil || !step.Done || string(step.Answer) != "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=" {
		t.Fatalf("%q, done %t, %v", step.Answer, step.Done, err)
	}
}

// handmade is a client whose messages a test can spoil.
type handmade struct {
	header, bare string
	binding      string // In plain, usually the header.
	extra        string // Between nonce and proof.
	nonce        func(string) string
	password     string
}

func honest(name, password string) handmade {
	return handmade{header: "n,,", bare: "n=" + name + ",r=clientnonce", binding: "n,,", password: password}
}

// final makes the second message, with a proof that is right for what it says.
func (c handmade) final(t testing.TB, challenge []byte) []byte {
	t.Helper()
	var nonce, salt64 string
	var iterations int
	parts := strings.Split(string(challenge), ",")
	nonce = strings.TrimPrefix(parts[0], "r=")
	salt64 = strings.TrimPrefix(parts[1], "s=")
	if _, err := fmt.Sscanf(parts[2], "i=%d", &iterations); err != nil {
		t.Fatal(err)
	}
	salt, err := base64.StdEncoding.DecodeString(salt64)
	must(t, err)
	if c.nonce != nil {
		nonce = c.nonce(nonce)
	}
	salted, err := derive(standard, SHA256, c.password, salt, iterations)
	must(t, err)
	withoutProof := "c=" + base64.StdEncoding.EncodeToString([]byte(c.binding)) + ",r=" + nonce + c.extra
	clientKey := mac(standard, SHA256, salted, []byte("Client Key"))
	stored, _ := keys(standard, SHA256, salted)
	proof := mac(standard, SHA256, stored, []byte(c.bare+","+string(challenge)+","+withoutProof))
	for i := range proof {
		proof[i] ^= clientKey[i]
	}
	return []byte(withoutProof + ",p=" + base64.StdEncoding.EncodeToString(proof))
}

func (c handmade) login(t testing.TB, server Mechanism) error {
	t.Helper()
	e := server.Start()
	step, err := e.Next(context.Background(), []byte(c.header+c.bare))
	if err != nil {
		return err
	}
	step, err = e.Next(context.Background(), c.final(t, step.Answer))
	assert.MustFalse(t, err == nil && !step.Done, "no error, and not done")
	return err
}

func aliceServer(t testing.TB) Mechanism {
	users := newUsers()
	users.set(t, SHA256, "alice", "pw")
	return NewScram(SHA256, NewDirectory(users, []byte("s")), rand.Reader)
}

func TestScramChecksWhatIsUnderTheProof(t *testing.T) {
	server := aliceServer(t)
	for name, c := range map[string]struct {
		change func(*handmade)
		reason error
	}{
		"honest":                               {func(*handmade) {}, nil},
		"could bind to a channel":              {func(c *handmade) { c.header, c.binding = "y,,", "y,," }, nil},
		"extensions":                           {func(c *handmade) { c.bare += ",foo=bar,x=1"; c.extra = ",ext=1" }, nil},
		"tokenauth is false":                   {func(c *handmade) { c.bare += ",tokenauth=false" }, nil},
		"own authorization id":                 {func(c *handmade) { c.header, c.binding = "n,a=alice,", "n,a=alice," }, nil},
		"own authorization id, binding of n,,": {func(c *handmade) { c.header = "n,a=alice," }, nil},
		"channel binding":                      {func(c *handmade) { c.header, c.binding = "p=tls-unique,,", "p=tls-unique,,x" }, errMessage},
		"a header changed on the way":          {func(c *handmade) { c.header = "y,," }, errBinding},
		"another header changed on the way":    {func(c *handmade) { c.binding = "y,," }, errBinding},
		"no binding":                           {func(c *handmade) { c.binding = "" }, errBinding},
		"the nonce of the client alone":        {func(c *handmade) { c.nonce = func(string) string { return "clientnonce" } }, errNonce},
		"a longer nonce":                       {func(c *handmade) { c.nonce = func(n string) string { return n + "x" } }, errNonce},
		"its own nonce once more":              {func(c *handmade) { c.nonce = func(n string) string { return "clientnonce" + n } }, nil},
		"its own nonce twice more":             {func(c *handmade) { c.nonce = func(n string) string { return "clientnonceclientnonce" + n } }, errNonce},
		"another nonce before ours":            {func(c *handmade) { c.nonce = func(n string) string { return "clientnoncf" + n } }, errNonce},
		"a byte before ours":                   {func(c *handmade) { c.nonce = func(n string) string { return "x" + n } }, errNonce},
		"a part of its nonce before ours":      {func(c *handmade) { c.nonce = func(n string) string { return "client" + n } }, errNonce},
		"our nonce twice":                      {func(c *handmade) { c.nonce = func(n string) string { return n + n } }, errNonce},
		"its own nonce after ours":             {func(c *handmade) { c.nonce = func(n string) string { return n + "clientnonce" } }, errNonce},
		"its own nonce twice, without ours":    {func(c *handmade) { c.nonce = func(string) string { return "clientnonceclientnonce" } }, errNonce},
		"our part alone":                       {func(c *handmade) { c.nonce = func(n string) string { return strings.TrimPrefix(n, "clientnonce") } }, errNonce},
		"a reserved extension":                 {func(c *handmade) { c.bare = "m=1," + c.bare }, errMessage},
		"a reserved extension at the end":      {func(c *handmade) { c.bare += ",m=1" }, errMessage},
		"a reserved extension, second message": {func(c *handmade) { c.extra = ",m=1" }, errMessage},
		"a delegation token":                   {func(c *handmade) { c.bare += ",tokenauth=true" }, errToken},
		"a wrong password":                     {func(c *handmade) { c.password = "PW" }, errInvalid},
		"no password":                          {func(c *handmade) { c.password = "" }, errInvalid},
		"no name":                              {func(c *handmade) { c.bare = "n=,r=x" }, errMessage},
		"no nonce":                             {func(c *handmade) { c.bare = "n=alice,r=" }, errMessage},
		"a wrong escape":                       {func(c *handmade) { c.bare = "n=ali=63e,r=x" }, errMessage},
		"a lower-case escape":                  {func(c *handmade) { c.bare = "n=alice=2c,r=x" }, errMessage},
		"a NUL":                                {func(c *handmade) { c.bare = "n=alice\x00,r=x" }, errMessage},
		"no UTF-8":                             {func(c *handmade) { c.bare = "n=alice\xff,r=x" }, errMessage},
		"a long message":                       {func(c *handmade) { c.bare += strings.Repeat("x", maxScram) }, errTooLong},
		"a long second message":                {func(c *handmade) { c.extra = ",x=" + strings.Repeat("x", maxScram) }, errTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			h := honest("alice", "pw")
			c.change(&h)
			err := h.login(t, server)
			if c.reason == nil {
				must(t, err)
				return
			}
			wantFailure(t, err, "", c.reason)
		})
	}
}

// A recorded login of a client that repeats its nonce is worth no more than another.
func TestScramRefusesAReplayedRepeatedNonce(t *testing.T) {
	server := aliceServer(t)
	c := honest("alice", "pw")
	c.nonce = func(n string) string { return "clientnonce" + n }
	recorded := server.Start()
	step, err := recorded.Next(t.Context(), []byte(c.header+c.bare))
	must(t, err)
	final := c.final(t, step.Answer)
	if step, err = recorded.Next(t.Context(), final); err != nil || !step.Done || !step.RepeatedNonce {
		t.Fatal(step, err)
	}
	replay := server.Start()
	if _, err := replay.Next(t.Context(), []byte(c.header+c.bare)); err != nil {
		t.Fatal(err)
	}
	_, err = replay.Next(t.Context(), final)
	wantFailure(t, err, "", errNonce)
}

func TestScramRefusesReplayedMessages(t *testing.T) {
	server := aliceServer(t)
	c := honest("alice", "pw")
	ctx := context.Background()
	recorded := server.Start()
	step, err := recorded.Next(ctx, []byte(c.header+c.bare))
	must(t, err)
	final := c.final(t, step.Answer)
	if step, err = recorded.Next(ctx, final); err != nil || !step.Done {
		t.Fatal(step, err)
	}
	_, err = recorded.Next(ctx, final)
	wantFailure(t, err, "", errOver)

	replay := server.Start()
	if _, err := replay.Next(ctx, []byte(c.header+c.bare)); err != nil {
		t.Fatal(err)
	}
	_, err = replay.Next(ctx, final)
	wantFailure(t, err, "", errNonce)
	// A failed exchange gives no second try, not even with the right message.
	_, err = replay.Next(ctx, final)
	wantFailure(t, err, "", errOver)

	_, err = server.Start().Next(ctx, final)
	wantFailure(t, err, "", errMessage)
	_, err = server.Start().Next(ctx, []byte("n,,n=alice,r="+strings.Repeat("x", maxScram)))
	wantFailure(t, err, "", errTooLong)
	bad := server.Start()
	_, err = bad.Next(ctx, []byte("n,,n=alice"))
	wantFailure(t, err, "", errMessage)
	_, err = bad.Next(ctx, []byte(c.header+c.bare))
	wantFailure(t, err, "", errOver)
}

func TestScramRefusesTruncatedAndChangedMessages(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	server := aliceServer(t)
	c := honest("alice", "pw")
	first := []byte(c.header + c.bare)
	attempt := func(what string, spoilFirst, spoilFinal func([]byte) []byte) {
		t.Helper()
		e := server.Start()
		step, err := e.Next(context.Background(), spoilFirst(bytes.Clone(first)))
		if err == nil {
			step, err = e.Next(context.Background(), spoilFinal(c.final(t, step.Answer)))
		}
		assert.True(t, err != nil && !step.Done, "logged in with %s", what)
	}
	same := func(b []byte) []byte { return b }
	for i := range first {
		attempt("a truncated first message", func(b []byte) []byte { return b[:i] }, same)
		attempt("a changed first message", func(b []byte) []byte { b[i] ^= 1; return b }, same)
	}
	e := server.Start()
	step, err := e.Next(context.Background(), first)
	must(t, err)
	for i := range len(c.final(t, step.Answer)) {
		attempt("a truncated second message", same, func(b []byte) []byte { return b[:min(i, len(b)-1)] })
		attempt("a changed second message", same, func(b []byte) []byte { b[i%len(b)] ^= 1; return b })
	}
	attempt("a longer proof", same, func(b []byte) []byte {
		start := bytes.LastIndex(b, []byte(",p=")) + len(",p=")
		proof, err := base64.StdEncoding.DecodeString(string(b[start:]))
		must(t, err)
		return base64.StdEncoding.AppendEncode(b[:start], append(proof, 0))
	})
	attempt("something after the proof", same, func(b []byte) []byte { return append(b, '=') })
	attempt("a line end after the proof", same, func(b []byte) []byte { return append(b, '\n') })
}
