package broker_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/auth/sasl"
	"muster/internal/broker"
	"muster/internal/logintest"
)

// authority issues certificates.
type authority struct {
	t *testing.T
	*logintest.Authority
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a, err := logintest.NewAuthority()
	must(t, err)
	return &authority{t, a}
}

// issue makes a certificate for 127.0.0.1, and for a client of that name.
func (a *authority) issue(name string) tls.Certificate {
	a.t.Helper()
	c, err := a.Issue(name)
	must(a.t, err)
	return c
}

// files writes the key store of a server and the trust store of the authority.
func (a *authority) files() (keystore, truststore string) {
	a.t.Helper()
	server, err := a.IssuePEM("broker")
	must(a.t, err)
	folder := a.t.TempDir()
	keystore, truststore = filepath.Join(folder, "key.pem"), filepath.Join(folder, "trust.pem")
	for name, text := range map[string][]byte{keystore: server, truststore: a.PEM()} {
		must(a.t, os.WriteFile(name, text, 0o600))
	}
	return keystore, truststore
}

// trusts returns a client's side of TLS, with certificates to show.
func (a *authority) trusts(own ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: a.Pool(), Certificates: own, ServerName: "127.0.0.1"}
}

// startSASL starts a broker where clients log in, with the user ann.
func startSASL(t *testing.T, props map[string]string, more ...func(*broker.Config)) *broker.Broker {
	t.Helper()
	all := map[string]string{
		"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.sasl_plaintext.plain.sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required user_jim="jims";`,
	}
	if props["listeners"] != "" {
		delete(all, "listener.name.sasl_plaintext.plain.sasl.jaas.config")
	}
	maps.Copy(all, props)
	b := start(t, all, more...)
	for _, h := range []sasl.Hash{sasl.SHA256, sasl.SHA512} {
		must(t, b.SetPassword(t.Context(), "ann", "anns", h))
	}
	return b
}

// wire is a connection on which a test says every byte.
type wire struct {
	t *testing.T
	*stranger
}

func connect(t *testing.T, b *broker.Broker) *wire {
	t.Helper()
	s, err := stranded(b.Addr())
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return &wire{t, s}
}

func (w *wire) send(req kmsg.Request) {
	w.t.Helper()
	must(w.t, w.stranger.send(req))
}

// frame reads a frame; nil if the connection ends.
func (w *wire) frame() []byte {
	w.t.Helper()
	body, err := w.stranger.frame()
	assert.MustTrue(w.t, !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, errHalfFrame), "%v", err)
	return body
}

// ask sends a request and returns the answer, nil if the connection ended instead.
func (w *wire) ask(req kmsg.Request) kmsg.Response {
	w.t.Helper()
	w.send(req)
	body := w.frame()
	if body == nil {
		return nil
	}
	resp, err := answerTo(req, body)
	must(w.t, err)
	return resp
}

// answer is ask for a request whose answer must come.
func (w *wire) answer(req kmsg.Request) kmsg.Response {
	w.t.Helper()
	resp := w.ask(req)
	if resp == nil {
		w.t.Fatalf("the connection ended at %s", kmsg.NameForKey(req.Key()))
	}
	return resp
}

func (w *wire) wantEnd(after string) {
	w.t.Helper()
	if got := w.frame(); got != nil {
		w.t.Errorf("%s: the connection goes on with %q", after, got)
	}
}

func (w *wire) handshake(mechanism string) *kmsg.SASLHandshakeResponse {
	w.t.Helper()
	return w.answer(&kmsg.SASLHandshakeRequest{Version: 1, Mechanism: mechanism}).(*kmsg.SASLHandshakeResponse)
}

func (w *wire) token(token string) *kmsg.SASLAuthenticateResponse {
	w.t.Helper()
	return w.answer(&kmsg.SASLAuthenticateRequest{Version: 2, SASLAuthBytes: []byte(token)}).(*kmsg.SASLAuthenticateResponse)
}

// works says whether the connection serves requests.
func (w *wire) works() bool {
	w.t.Helper()
	return w.ask(&kmsg.MetadataRequest{Version: 5}) != nil
}

// plain is the token of a login by PLAIN.
func plain(name, password string) string { return "\x00" + name + "\x00" + password }

// sameAnswers says whether two answers are the same bytes.
func sameAnswers(a, b *kmsg.SASLAuthenticateResponse) bool {
	a.Version, b.Version = 2, 2
	return bytes.Equal(a.AppendTo(nil), b.AppendTo(nil))
}
