package fleet

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"time"
)

const (
	// maxAnswer is how long an answer of a broker may be, and maxHeld how long all that
	// are being worked on together.
	maxAnswer = 8 << 20
	maxHeld   = 64 << 20
	// maxPerBroker is how many questions one broker is asked at a time.
	maxPerBroker = 32
)

// Question is a request to another broker.
type Question struct {
	Method      string
	URI         string // Path and query, as they are sent.
	Accept      string
	ContentType string
	Body        []byte
	Principal   string
	Groups      string
	Host        string
	Depth       int // How many brokers it will have come to.
}

// Answer is what a broker said. It holds memory until Done.
type Answer struct {
	Status      int
	ContentType string
	Body        []byte
	fleet       *Fleet
}

// Done gives the memory back.
func (a *Answer) Done() {
	a.fleet.held.Add(-int64(len(a.Body)))
	a.Body = nil
}

// UnreachableError is that a broker could not be asked. Sent says that it may have
// got the question nevertheless.
type UnreachableError struct {
	Message string
	Sent    bool
}

func (e *UnreachableError) Error() string { return e.Message }

func unreachable(format string, args ...any) error {
	return &UnreachableError{Message: fmt.Sprintf(format, args...)}
}

func newClient(config func() *tls.Config) *http.Client {
	t := &http.Transport{
		MaxConnsPerHost: maxPerBroker, MaxIdleConnsPerHost: 4, IdleConnTimeout: 30 * time.Second, DisableCompression: true,
		DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, MaxResponseHeaderBytes: 16 << 10,
	}
	if config != nil {
		t.DialTLSContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			cfg := config()
			if host, _, err := net.SplitHostPort(addr); err == nil {
				cfg.ServerName = host
			}
			return (&tls.Dialer{Config: cfg}).DialContext(ctx, network, addr)
		}
	}
	// A broker does not send others elsewhere. The environment's proxy is for people.
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Ask asks another broker, and waits for it no longer than for. One that was silent is
// asked by one caller at a time until it answers; the others are told at once, so that
// they do not wait for it one after the other.
func (f *Fleet) Ask(ctx context.Context, to Target, q *Question, wait time.Duration) (*Answer, error) {
	if to.URL == "" {
		return nil, unreachable("it has no HTTP address that other brokers know (muster.http.advertised)")
	}
	p := f.peer(to.Node)
	if err := p.begin(to.Incarnation); err != nil {
		return nil, err
	}
	timed, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	a, err := f.send(timed, to, q)
	out := answered
	switch {
	case err != nil && ctx.Err() != nil:
		out = gaveUp
	case err != nil && timed.Err() != nil:
		out = silent
	}
	p.end(out, f.opts.Now())
	switch {
	case out == silent:
		return nil, &UnreachableError{Message: fmt.Sprintf("it did not answer within %s", wait.Round(time.Millisecond)), Sent: true}
	case err != nil:
		return nil, f.explain(err, to)
	}
	return a, nil
}

// send sends a question.
func (f *Fleet) send(ctx context.Context, to Target, q *Question) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, q.Method, to.URL+q.URI, bytes.NewReader(q.Body))
	if err != nil {
		return nil, err
	}
	keys := f.opts.Keys()
	if len(keys) == 0 || len(keys[0]) == 0 {
		return nil, unreachable("the secret of the cluster is not known yet")
	}
	key := keys[0]
	n := &Note{
		From: f.opts.Self().Node, To: to.Node, Incarnation: to.Incarnation, At: f.opts.Now().UnixMilli(), Nonce: rand.Text(),
		Principal: q.Principal, Groups: q.Groups, Host: q.Host, Depth: q.Depth, Body: hashOf(q.Body),
	}
	header, err := seal(key, n, q.Method, req.URL.RequestURI(), q.Accept)
	if err != nil {
		return nil, err
	}
	req.Header.Set(NoteHeader, header)
	for name, value := range map[string]string{"Accept": q.Accept, "Content-Type": q.ContentType} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // It was read.
	a, err := f.receive(resp, key, n.Nonce)
	var away *UnreachableError
	if errors.As(err, &away) && q.Method != http.MethodGet && resp.StatusCode != http.StatusUnauthorized {
		away.Sent = true // Something has answered: perhaps the broker has done it.
	}
	return a, err
}

// receive reads an answer, as long as there is room for it.
func (f *Fleet) receive(resp *http.Response, key []byte, nonce string) (*Answer, error) {
	a := &Answer{Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"), fleet: f}
	proof := resp.Header.Get(ProofHeader)
	if proof == "" && resp.StatusCode < http.StatusBadRequest {
		return nil, unreachable("what listens at its address is no broker of this cluster")
	}
	chunk := make([]byte, 32<<10)
	for {
		n, err := resp.Body.Read(chunk)
		if f.held.Add(int64(n)) > maxHeld || len(a.Body)+n > maxAnswer {
			f.held.Add(-int64(n))
			a.Done()
			return nil, unreachable("its answer is too long; ask for less at a time")
		}
		a.Body = append(a.Body, chunk[:n]...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			a.Done()
			return nil, err
		}
	}
	if want := prove(key, nonce, a.Status, a.ContentType, hashOf(a.Body)); !hmac.Equal([]byte(want), []byte(proof)) {
		defer a.Done()
		return nil, notProven(a)
	}
	return a, nil
}

// maxQuoted is how much of a refusal is told.
const maxQuoted = 300

// notProven says what an answer that is not signed may mean. Of a refusal the reason is
// told, as what it is: no one knows who gave it.
func notProven(a *Answer) error {
	if a.Status == http.StatusUnauthorized {
		var said struct{ Message string }
		_ = json.Unmarshal(a.Body, &said) // Then it says nothing.
		return unreachable("it does not take this for a broker of its cluster: %q", said.Message[:min(len(said.Message), maxQuoted)])
	}
	return unreachable("what listens at its address answers %d, and is no broker of this cluster", a.Status)
}

// explain says in words why a broker could not be asked.
func (f *Fleet) explain(err error, to Target) error {
	var told *UnreachableError
	if errors.As(err, &told) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	why := err
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		why = wrapped.Err
	}
	hint := ""
	if isLoopback(to.URL) {
		hint = "; that is an address of its own machine, so if it runs on another one, set muster.http.listener and muster.http.advertised there"
	}
	var op *net.OpError
	dialled := errors.As(err, &op) && op.Op == "dial"
	return &UnreachableError{Message: fmt.Sprintf("it cannot be reached at %s: %v%s", to.URL, why, hint), Sent: !dialled}
}

func isLoopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Hostname() == "localhost" || err == nil && addr.Unmap().IsLoopback()
}
