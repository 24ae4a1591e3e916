package listener

import (
	"crypto/tls"
	"testing"
	"time"
)

func TestAHandshakeThatDoesNotComeEndsTheConnection(t *testing.T) {
	_, addr := startHandler(t, Options{login: 50 * time.Millisecond}, handlerFunc(echo), selfSigned(t))
	silent := dial(t, addr)
	if !ended(silent) { // Long before it may no longer be idle.
		t.Error("a client that never speaks is kept")
	}
	_, addr = startHandler(t, Options{}, handlerFunc(echo), selfSigned(t))
	c := tls.Client(dial(t, addr), &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // The certificate is this test's own.
	sendFrame(t, c, []byte("x"))
	if got := readFrame(t, c); string(got) != "x" {
		t.Errorf("%q", got)
	}
}

func TestALoginThatDoesNotComeEndsTheConnection(t *testing.T) {
	_, _, addr := startGate(t, &door{entered: make(chan *tls.ConnectionState, 10), patience: 50 * time.Millisecond})
	if !ended(dial(t, addr)) {
		t.Error("a client that does not log in is kept")
	}
	_, h, addr := startGate(t, &door{entered: make(chan *tls.ConnectionState, 10)})
	c := dial(t, addr)
	sendFrame(t, c, []byte("in")) // It is logged in by this.
	readFrame(t, c)
	<-h.budgets
}
