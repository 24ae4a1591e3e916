package peer

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// logsIn has the client log in.
func (w *world) logsIn() {
	w.opts.Login = func() Login { return Login{"THEIRS", "broker", "sesame"} }
}

func (f *fake) wantHandshake(answer *kerr.Error) {
	f.t.Helper()
	a := <-f.requests
	req, ok := a.Request.(*kmsg.SASLHandshakeRequest)
	if !ok || req.Mechanism != "THEIRS" {
		f.t.Fatalf("it sends %+v before it has logged in", a.Request)
	}
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
	if !ok {
		f.t.Fatalf("it sends %+v before it has logged in", a.Request)
	}
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
		if strings.Contains(proof, "sesame") {
			t.Errorf("the password is sent: %s", proof)
		}
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
