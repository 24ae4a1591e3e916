package peer

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// logsIn has the client log in.
func (w *world) logsIn() {
	w.opts.Login = func() Login { return Login{"THEIRS", "broker", "sesame"} }
}

func (f *fake) wantHandshake(answer *kerr.Error) {
	f.t.Helper()
	a := <-f.requests
	req, ok := a.Request.(*kmsg.SASLHandshakeRequest)
	assert.MustTrue(f.t, ok && req.Mechanism == "THEIRS", "it sends %+v before it has logged in", a.Request)
	resp := kmsg.NewPtrSASLHandshakeResponse()
	if answer != nil {
		resp.ErrorCode = answer.Code
	}
	a.answer(resp)
}

// wantToken answers a step of a login.
func (f *fake) wantToken(answer func(token string) (string, *kerr.Error)) {
	f.t.Helper()
	a := <-f.requests
	req, ok := a.Request.(*kmsg.SASLAuthenticateRequest)
	assert.MustTrue(f.t, ok, "it sends %+v before it has logged in", a.Request)
	resp := kmsg.NewPtrSASLAuthenticateResponse()
	said, err := answer(string(req.SASLAuthBytes))
	resp.SASLAuthBytes = []byte(said)
	if err != nil {
		resp.ErrorCode = err.Code
	}
	a.answer(resp)
}

// challenge is the first step of a broker that has no password to check.
func challenge(token string) (string, *kerr.Error) {
	_, nonce, _ := strings.Cut(token, ",r=")
	return "r=" + nonce + "mine,s=c2FsdA==,i=4096", nil
}

func TestABrokerThatDoesNotKnowTheSecretIsToldNothing(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	w.logsIn()
	out := w.send(described("x"))
	f.wantHandshake(nil)
	f.wantToken(challenge)
	f.wantToken(func(proof string) (string, *kerr.Error) {
		assert.False(t, strings.Contains(proof, "sesame"), "the password is sent: %s", proof)
		return "v=" + strings.Repeat("A", 43) + "=", nil
	})
	if o := <-out; !errors.Is(o.err, errImpostor) {
		t.Errorf("%+v", o)
	}
	<-f.closed
	if len(f.requests) != 0 {
		t.Errorf("it is sent %+v", <-f.requests)
	}
}

func TestABrokerThatRefusesTheLoginIsToldNothing(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	w.logsIn()
	out := w.send(described("x"))
	f.wantHandshake(kerr.IllegalSaslState)
	if o := <-out; !errors.Is(o.err, errStranger) || !errors.Is(o.err, kerr.IllegalSaslState) {
		t.Errorf("%+v", o)
	}
	<-f.closed
	out = w.send(described("x"))
	f.wantHandshake(nil)
	f.wantToken(func(string) (string, *kerr.Error) { return "", kerr.SaslAuthenticationFailed })
	if o := <-out; !errors.Is(o.err, errStranger) {
		t.Errorf("%+v", o)
	}
	<-f.closed
	if len(f.requests) != 0 {
		t.Errorf("it is sent %+v", <-f.requests)
	}
}

// letIn answers a login with the password sesame, as a broker does that knows it.
func (f *fake) letIn() {
	f.t.Helper()
	f.wantHandshake(nil)
	var first, ours string
	f.wantToken(func(token string) (string, *kerr.Error) {
		first = strings.TrimPrefix(token, "n,,")
		ours, _ = challenge(token)
		return ours, nil
	})
	f.wantToken(func(token string) (string, *kerr.Error) {
		bare, _, _ := strings.Cut(token, ",p=")
		salted, err := pbkdf2.Key(sha256.New, "sesame", []byte("salt"), 4096, sha256.Size)
		assert.NoError(f.t, err)
		return "v=" + base64.StdEncoding.EncodeToString(mac(mac(salted, "Server Key"), first+","+ours+","+bare)), nil
	})
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

func TestAConnectionIsNotUsedAnyMoreWhenTheLoginIsAnother(t *testing.T) {
	f := newFake(t)
	w := newWorld(t, f.broker())
	var rotated atomic.Bool
	w.opts.Login = func() Login {
		if rotated.Load() {
			return Login{"THEIRS", "broker-1", "sesame"}
		}
		return Login{"THEIRS", "broker", "sesame"}
	}
	var long []chan outcome
	var waits []arrived
	for range maxConns { // There are as many connections as there may be, all of them busy.
		long = append(long, w.send(described("long")))
		f.letIn()
		waits = append(waits, <-f.requests)
	}
	rotated.Store(true)
	out := w.send(described("x"))
	f.letIn()
	describe(<-f.requests)
	wantDescribed(t, <-out, "x")
	// What is under way ends as it began.
	for i := range long {
		describe(waits[i])
		wantDescribed(t, <-long[i], "long")
	}
	out = w.send(described("y"))
	describe(<-f.requests)
	wantDescribed(t, <-out, "y")
	for range long {
		<-f.closed
	}
	assert.Equal(t, f.opened.Load(), maxConns+1, "connections were opened")
}
