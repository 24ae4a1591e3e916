package broker_test

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	fplain "github.com/twmb/franz-go/pkg/sasl/plain"
	fscram "github.com/twmb/franz-go/pkg/sasl/scram"

	"muster/internal/assert"
	"muster/internal/auth"
)

func TestBeforeALoginOnlyVersionsAndTheLoginItselfAreServed(t *testing.T) {
	b := startSASL(t, nil)
	w := connect(t, b)
	if got := w.ask(&kmsg.ApiVersionsRequest{Version: 0}).(*kmsg.ApiVersionsResponse); got.ErrorCode != 0 || len(got.ApiKeys) < 40 {
		t.Errorf("versions: %+v", got)
	}
	assert.False(t, w.works(), "Metadata is served before the login")
	for _, key := range []int16{0, 1, 3, 10, 19, 32, 50, 1000} {
		w := connect(t, b)
		frame := binary.BigEndian.AppendUint16([]byte{0, 0, 0, 10}, uint16(key))
		if _, err := w.Write(append(frame, 0, 1, 0, 0, 0, 7, 0xff, 0xff)); err != nil {
			t.Fatal(err)
		}
		w.wantEnd(kmsg.NameForKey(key))
	}
	w = connect(t, b)
	w.handshake("PLAIN")
	w.send(&kmsg.SASLAuthenticateRequest{Version: 99})
	w.wantEnd("a version of SaslAuthenticate that there is not")
}

func TestARequestInTheMiddleOfALoginIsToldSoAndEnds(t *testing.T) {
	b := startSASL(t, nil)
	for version := int16(5); version <= 13; version++ {
		w := connect(t, b)
		w.handshake("SCRAM-SHA-256")
		req := &kmsg.MetadataRequest{Version: version, Topics: []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("orders")}}}
		got, _ := w.ask(req).(*kmsg.MetadataResponse)
		assert.True(t, got != nil && len(got.Topics) == 1 && got.Topics[0].ErrorCode == 34 && len(got.Brokers) == 0, "Metadata v%d: %+v", version, got)
		w.wantEnd("Metadata")
	}
	w := connect(t, b)
	w.handshake("PLAIN")
	frame := binary.BigEndian.AppendUint16([]byte{0, 0, 0, 10}, 1000)
	if _, err := w.Write(append(frame, 0, 1, 0, 0, 0, 7, 0xff, 0xff)); err != nil {
		t.Fatal(err)
	}
	w.wantEnd("a request that there is not")
	// A session that is renewed is no other.
	w = connect(t, b)
	w.handshake("PLAIN")
	w.token(plain("ann", "anns"))
	w.handshake("PLAIN")
	if got, _ := w.ask(&kmsg.ListGroupsRequest{Version: 3}).(*kmsg.ListGroupsResponse); got == nil || got.ErrorCode != 34 {
		t.Errorf("%+v", got)
	}
	w.wantEnd("ListGroups")
}

func TestALargeFrameIsReadOnlyAfterTheLogin(t *testing.T) {
	b := startSASL(t, nil)
	large := &kmsg.SASLAuthenticateRequest{Version: 2, SASLAuthBytes: make([]byte, 512<<10)}
	w := connect(t, b)
	w.handshake("PLAIN")
	// The end may come before all of it is written.
	_, _ = w.Write(kmsg.NewRequestFormatter().AppendRequest(nil, large, 7))
	w.wantEnd("a frame above the limit")

	w = connect(t, b)
	w.handshake("PLAIN")
	if got := w.token(plain("ann", "anns")); got.ErrorCode != 0 {
		t.Fatalf("%+v", got)
	}
	if got := w.ask(large); got == nil || got.(*kmsg.SASLAuthenticateResponse).ErrorCode != 34 {
		t.Errorf("after the login: %+v", got)
	}
	assert.True(t, w.works(), "the connection ended")
}

func TestALoginOutOfOrderIsToldSoAndEnds(t *testing.T) {
	b := startSASL(t, nil)
	w := connect(t, b)
	if got := w.token(plain("ann", "anns")); got.ErrorCode != 34 {
		t.Errorf("a token before the handshake: %+v", got)
	}
	w.wantEnd("a token before the handshake")

	w = connect(t, b)
	w.handshake("PLAIN")
	if got := w.handshake("PLAIN"); got.ErrorCode != 34 {
		t.Errorf("a second handshake: %+v", got)
	}
	w.wantEnd("a second handshake")

	w = connect(t, b)
	w.handshake("PLAIN")
	if got := w.ask(&kmsg.ApiVersionsRequest{Version: 0}).(*kmsg.ApiVersionsResponse); got.ErrorCode != 34 {
		t.Errorf("versions after the handshake: %+v", got)
	}
	w.wantEnd("versions after the handshake")

	w = connect(t, b)
	got := w.handshake("GSSAPI")
	if got.ErrorCode != 33 || !slices.Equal(got.SupportedMechanisms, []string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}) {
		t.Errorf("a mechanism that is not enabled: %+v", got)
	}
	w.wantEnd("a mechanism that is not enabled")
}

func TestABareTokenLogsInAsBefore(t *testing.T) {
	b := startSASL(t, nil)
	bare := func(token string) (*wire, []byte) {
		w := connect(t, b)
		if got := w.ask(&kmsg.SASLHandshakeRequest{Version: 0, Mechanism: "PLAIN"}).(*kmsg.SASLHandshakeResponse); got.ErrorCode != 0 {
			t.Fatalf("%+v", got)
		}
		if _, err := w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(token))), token...)); err != nil {
			t.Fatal(err)
		}
		return w, w.frame()
	}
	w, answer := bare(plain("ann", "anns"))
	assert.True(t, answer != nil && len(answer) == 0 && w.works(), "answer %q", answer)
	if _, answer = bare(plain("ann", "jims")); answer != nil {
		t.Errorf("a wrong password has the answer %q", answer)
	}
}

// scramFinal begins a login and returns the message that would end it.
func scramFinal(t *testing.T, w *wire, name, password string) string {
	t.Helper()
	w.handshake("SCRAM-SHA-256")
	exchange, first, err := fscram.Auth{User: name, Pass: password}.AsSha256Mechanism().Authenticate(context.Background(), "")
	must(t, err)
	challenge := w.token(string(first))
	_, final, err := exchange.Challenge(challenge.SASLAuthBytes)
	assert.MustTrue(t, err == nil && challenge.ErrorCode == 0, "%v, %+v", err, challenge)
	return string(final)
}

func TestReplayedAndTruncatedMessagesAreRefused(t *testing.T) {
	b := startSASL(t, nil)
	w := connect(t, b)
	final := scramFinal(t, w, "ann", "anns")
	if got := w.token(final); got.ErrorCode != 0 || !w.works() {
		t.Fatalf("%+v", got)
	}
	if got := w.token(final); got.ErrorCode != 34 || !w.works() {
		t.Errorf("after the login: %+v", got)
	}
	for name, change := range map[string]func(own string) string{
		"of another connection": func(string) string { return final },
		"cut":                   func(own string) string { return own[:len(own)-4] },
		"without proof":         func(own string) string { before, _, _ := strings.Cut(own, ",p="); return before },
		"empty":                 func(string) string { return "" },
		"of NULs":               func(string) string { return strings.Repeat("\x00", 200_000) },
	} {
		w := connect(t, b)
		if got := w.token(change(scramFinal(t, w, "ann", "anns"))); got.ErrorCode != 58 {
			t.Errorf("%s: %+v", name, got)
		}
		w.wantEnd(name)
	}
}

func TestAUserThatDoesNotExistLooksLikeAWrongPassword(t *testing.T) {
	b := startSASL(t, nil)
	failed := func(name string) (*kmsg.SASLAuthenticateResponse, *kmsg.SASLAuthenticateResponse) {
		w := connect(t, b)
		w.handshake("PLAIN")
		plain := w.token(plain(name, "wrong"))
		w.wantEnd("PLAIN")
		w = connect(t, b)
		scram := w.token(scramFinal(t, w, name, "wrong"))
		w.wantEnd("SCRAM")
		return plain, scram
	}
	plain, scram := failed("ann")
	assert.MustTrue(t, plain.ErrorCode == 58 && scram.ErrorCode == 58, "%+v, %+v", plain, scram)
	noPlain, noScram := failed("abe")
	assert.True(t, sameAnswers(plain, noPlain) && sameAnswers(scram, noScram), "it can be told apart: %+v and %+v, %+v and %+v", plain, noPlain, scram, noScram)
}

func TestWhoLogsInWronglyDisturbsNobody(t *testing.T) {
	b := startSASL(t, map[string]string{"connection.failed.authentication.delay.ms": "10000"})
	attempts := b.Attempts()
	for i := range 100 {
		w := connect(t, b)
		w.handshake("PLAIN")
		name := "ann"
		if i%2 == 0 {
			name = "nobody"
		}
		w.send(&kmsg.SASLAuthenticateRequest{Version: 2, SASLAuthBytes: []byte(plain(name, "wrong"))})
	}
	c := client(t, b, kgo.SASL(fplain.Auth{User: "ann", Pass: "anns"}.AsMechanism()))
	produce(t, c, "orders", 0, 100)
	for failed := 0; failed < 100; {
		if a := <-attempts; a.Err != nil {
			failed++
		} else if a.Principal != auth.User("ann") || a.Mechanism != "PLAIN" {
			t.Errorf("logged in: %+v", a)
		}
	}
	produce(t, c, "orders", 100, 100)
}

func TestASessionEndsUnlessItsClientLogsInAgain(t *testing.T) {
	b := startSASL(t, map[string]string{"listener.name.sasl_plaintext.plain.connections.max.reauth.ms": "1"})
	attempts := b.Attempts()
	enter := func() *wire {
		w := connect(t, b)
		w.handshake("PLAIN")
		if got := w.token(plain("ann", "anns")); got.ErrorCode != 0 || got.SessionLifetimeMillis > 1 {
			t.Fatalf("%+v", got)
		}
		<-attempts
		return w
	}
	w := enter()
	for w.works() { // It ends within a millisecond or so.
	}
	w = enter()
	w.handshake("PLAIN")
	if got := w.token(plain("ann", "anns")); got.ErrorCode != 0 {
		t.Errorf("again: %+v", got)
	}
	if a := <-attempts; !a.Again || a.Principal != auth.User("ann") {
		t.Errorf("again: %+v", a)
	}
	w = enter()
	w.handshake("PLAIN")
	if got := w.token(plain("jim", "jims")); got.ErrorCode != 58 {
		t.Errorf("as another: %+v", got)
	}
	w.wantEnd("as another")
	w = enter()
	w.handshake("SCRAM-SHA-256")
	if got := w.token("n,,n=ann,r=x"); got.ErrorCode != 58 {
		t.Errorf("by another mechanism: %+v", got)
	}
	w.wantEnd("by another mechanism")
}
