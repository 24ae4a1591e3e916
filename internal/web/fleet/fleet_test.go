package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
)

var start = time.Date(2026, 11, 17, 1, 0, 0, 0, time.UTC)

// world is two brokers, of which the second answers what it was asked.
type world struct {
	now    time.Time
	asker  *Fleet
	asked  *Fleet
	server *httptest.Server
	to     Target
	change func(*http.Request) // What happens to a request on its way.
	answer func(w http.ResponseWriter, r *http.Request)
	notes  []*Note
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{now: start, change: func(*http.Request) {}}
	w.answer = func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rw.Header().Set("Content-Type", "text/plain")
		rw.WriteHeader(http.StatusOK)
		fmt.Fprintf(rw, "%s %s %s", r.Method, r.RequestURI, body)
	}
	w.asker = w.broker(1, "one")
	w.asked = w.broker(2, "two")
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.change(r)
		n, err := w.asked.Admit(r)
		if err != nil || n == nil {
			rw.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(rw, `{"message":"%v"}`, err)
			return
		}
		w.notes = append(w.notes, n)
		signed := w.asked.Writer(rw, n)
		w.answer(signed, r)
		signed.Close()
	}))
	w.to = Target{Node: 2, Incarnation: "two", URL: w.server.URL}
	t.Cleanup(func() {
		w.asker.Close()
		w.server.Close()
	})
	return w
}

func (w *world) broker(node int32, incarnation string) *Fleet {
	return New(Options{
		Self: func() Target { return Target{Node: node, Incarnation: incarnation} }, Others: func() []Target { return nil },
		Keys: func() [][]byte { return [][]byte{[]byte("secret")} }, Now: func() time.Time { return w.now },
	})
}

func (w *world) ask(t *testing.T, q Question) (string, error) {
	t.Helper()
	if q.Depth == 0 {
		q.Depth = 1
	}
	a, err := w.asker.Ask(t.Context(), w.to, &q, time.Minute)
	if err != nil {
		return "", err
	}
	defer a.Done()
	return string(a.Body), nil
}

var question = Question{Method: http.MethodPost, URI: "/a%2Fb?x=1&y=%20", Accept: "text/csv", Body: []byte("hello"), Principal: "User:änn", Host: "10.0.0.1"}

func TestABrokerIsToldWhoAsks(t *testing.T) {
	w := newWorld(t)
	got, err := w.ask(t, question)
	assert.MustTrue(t, err == nil && got == "POST /a%2Fb?x=1&y=%20 hello", "%q, %v", got, err)
	if n := w.notes[0]; n.Principal != "User:änn" || n.Host != "10.0.0.1" || n.From != 1 || n.Depth != 1 {
		t.Errorf("the note is %+v", n)
	}
	assert.Equal(t, w.asker.held.Load(), 0, "bytes are held")
}

// Whatever is changed on the way, the request is refused.
func TestARequestIsBoundToItsNote(t *testing.T) {
	for name, change := range map[string]func(w *world, r *http.Request){
		"method":    func(_ *world, r *http.Request) { r.Method = http.MethodDelete },
		"path":      func(_ *world, r *http.Request) { r.RequestURI = "/c?x=1&y=%20" },
		"query":     func(_ *world, r *http.Request) { r.RequestURI = "/a%2Fb?x=2&y=%20" },
		"accept":    func(_ *world, r *http.Request) { r.Header.Set("Accept", "application/json") },
		"body":      func(_ *world, r *http.Request) { r.Body = io.NopCloser(strings.NewReader("hullo")) },
		"long body": func(_ *world, r *http.Request) { r.Body = io.NopCloser(bytes.NewReader(make([]byte, MaxBody+2))) },
		"note": func(_ *world, r *http.Request) {
			n := &Note{From: 1, To: 2, Incarnation: "two", At: start.UnixMilli(), Nonce: "x", Principal: "User:root", Depth: 1, Body: hashOf(question.Body)}
			other, err := seal([]byte("other"), n, r.Method, r.RequestURI, r.Header.Get("Accept"))
			assert.Must(t, err)
			_, signature, _ := strings.Cut(r.Header.Get(NoteHeader), ".")
			forged, _, _ := strings.Cut(other, ".")
			r.Header.Set(NoteHeader, forged+"."+signature)
		},
		"another secret": func(_ *world, r *http.Request) {
			n := &Note{From: 1, To: 2, Incarnation: "two", At: start.UnixMilli(), Nonce: "x", Depth: 1, Body: hashOf(question.Body)}
			header, err := seal([]byte("other"), n, r.Method, r.RequestURI, r.Header.Get("Accept"))
			assert.Must(t, err)
			r.Header.Set(NoteHeader, header)
		},
		"two notes": func(_ *world, r *http.Request) {
			r.Header[NoteHeader] = append(r.Header[NoteHeader], r.Header[NoteHeader][0])
		},
		"no signature": func(_ *world, r *http.Request) { r.Header.Set(NoteHeader, "x") },
		"too late":     func(w *world, _ *http.Request) { w.now = start.Add(maxSkew + time.Second) },
		"too early":    func(w *world, _ *http.Request) { w.now = start.Add(-maxSkew - time.Second) },
		"no secret":    func(w *world, _ *http.Request) { w.asked.opts.Keys = func() [][]byte { return nil } },
		"another one": func(w *world, _ *http.Request) {
			w.asked.opts.Self = func() Target { return Target{Node: 3, Incarnation: "two"} }
		},
		"a new start": func(w *world, _ *http.Request) {
			w.asked.opts.Self = func() Target { return Target{Node: 2, Incarnation: "three"} }
		},
		"oneself": func(w *world, _ *http.Request) {
			w.asker.opts.Self, w.asked.opts.Self = w.asked.opts.Self, w.asker.opts.Self
		},
	} {
		w := newWorld(t)
		w.change = func(r *http.Request) { change(w, r) }
		if got, err := w.ask(t, question); err == nil || len(w.notes) > 0 {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// While the secret is rotated brokers sign with one of two keys. The answer has the same.
func TestANoteMayBeSignedWithEachOfTheKeys(t *testing.T) {
	old, next := []byte("secret"), []byte("rotated")
	for _, asks := range [][][]byte{{old}, {old, next}, {next, old}, {next}} {
		for _, asked := range [][][]byte{{old, next}, {next, old}} {
			w := newWorld(t)
			w.asker.opts.Keys, w.asked.opts.Keys = func() [][]byte { return asks }, func() [][]byte { return asked }
			if _, err := w.ask(t, question); err != nil {
				t.Errorf("%s asks %s: %v", asks, asked, err)
			}
		}
	}
	w := newWorld(t)
	w.asker.opts.Keys, w.asked.opts.Keys = func() [][]byte { return [][]byte{old, next} }, func() [][]byte { return [][]byte{next} }
	if got, err := w.ask(t, question); err == nil {
		t.Errorf("by the old key it answers %q", got)
	}
}

// A note that was signed with no secret at all is refused by a broker that has none.
func TestNoSecretIsNoSecret(t *testing.T) {
	w := newWorld(t)
	w.asked.opts.Keys = func() [][]byte { return nil }
	w.change = func(r *http.Request) {
		n := &Note{From: 1, To: 2, Incarnation: "two", At: start.UnixMilli(), Nonce: "x", Depth: 1, Body: hashOf(question.Body)}
		header, err := seal(nil, n, r.Method, r.RequestURI, r.Header.Get("Accept"))
		assert.Must(t, err)
		r.Header.Set(NoteHeader, header)
	}
	if got, err := w.ask(t, question); err == nil || len(w.notes) > 0 {
		t.Errorf("it answers %q", got)
	}
	w.asker.opts.Keys = func() [][]byte { return nil }
	if _, err := w.ask(t, question); err == nil || !strings.Contains(err.Error(), "not known yet") {
		t.Errorf("it asks: %v", err)
	}
}

// The broker that asks may have a clock that goes before or after the other's: a note is
// remembered for as long as it would be taken for timely.
func TestANoteIsGoodOnce(t *testing.T) {
	for _, ahead := range []time.Duration{0, maxSkew / 2, -maxSkew / 2} {
		w := newWorld(t)
		w.asker.opts.Now = func() time.Time { return w.now.Add(ahead) }
		var header http.Header
		w.change = func(r *http.Request) { header = r.Header.Clone() }
		if _, err := w.ask(t, question); err != nil {
			t.Fatal(err)
		}
		for _, after := range []time.Duration{0, maxSkew, maxSkew + ahead, maxSkew + ahead + time.Millisecond} {
			w.now = start.Add(after)
			w.change = func(r *http.Request) { r.Header = header }
			if got, err := w.ask(t, question); err == nil || len(w.notes) != 1 {
				t.Errorf("after %v, of one whose clock is ahead by %v: %q", after, ahead, got)
			}
		}
	}
}

func TestNoncesAreForgottenAndBounded(t *testing.T) {
	n := newNonces(2)
	for i, c := range []struct {
		nonce string
		at    int
		want  error
	}{{"a", 0, nil}, {"b", 1, nil}, {"a", 5, errReplayed}, {"c", 5, errFull}, {"c", 11, nil}, {"b", 11, errReplayed}, {"a", 12, nil}} {
		now := start.Add(time.Duration(c.at) * time.Second)
		assert.ErrorIs(t, n.add(c.nonce, now, now.Add(10*time.Second)), c.want, "%d", i)
	}
	assert.True(t, len(n.used) == len(n.ends), "%d are used, %d will be forgotten", len(n.used), len(n.ends))
}

func TestAQuestionPassesTwoBrokersAtMost(t *testing.T) {
	w := newWorld(t)
	for depth, ok := range map[int]bool{-1: false, 1: true, MaxDepth: true, MaxDepth + 1: false} {
		if _, err := w.ask(t, Question{Method: http.MethodGet, URI: "/", Depth: depth}); (err == nil) != ok {
			t.Errorf("depth %d: %v", depth, err)
		}
	}
}

// What listens at an address may be no broker.
func TestAnAnswerIsProven(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"no proof":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") },
		"false proof": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(ProofHeader, "x"); fmt.Fprint(w, "{}") },
		"its own key": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(ProofHeader, prove([]byte("other"), "n", 200, "", hashOf([]byte("{}"))))
			fmt.Fprint(w, "{}")
		},
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/healthz", http.StatusFound) },
		"not found":  http.NotFound,
	} {
		w := newWorld(t)
		s := httptest.NewServer(answer)
		w.to.URL = s.URL
		if got, err := w.ask(t, question); err == nil || !strings.Contains(err.Error(), "no broker of this cluster") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		s.Close()
	}
}

func TestAnswersAreBounded(t *testing.T) {
	w := newWorld(t)
	w.answer = func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, maxAnswer+1)) }
	if _, err := w.ask(t, question); err == nil || !strings.Contains(err.Error(), "too long") || w.asker.held.Load() != 0 {
		t.Errorf("%v, %d bytes are held", err, w.asker.held.Load())
	}
	w.answer = func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, 1000)) }
	w.asker.held.Store(maxHeld - 10)
	if _, err := w.ask(t, question); err == nil || w.asker.held.Load() != maxHeld-10 {
		t.Errorf("%v, %d bytes are held", err, w.asker.held.Load())
	}
}

// While a broker is silent one waits for it, and the others do not.
func TestOneWaitsForASilentBroker(t *testing.T) {
	w := newWorld(t)
	hold, entered := make(chan struct{}), make(chan struct{}, 9)
	answer := w.answer
	w.answer = func(rw http.ResponseWriter, r *http.Request) { entered <- struct{}{}; <-hold; answer(rw, r) }
	p := w.asker.peer(2)
	assert.Must(t, p.begin("two"))
	p.end(silent, start)
	done := make(chan error)
	q := question
	q.Depth = 1
	go func() {
		a, err := w.asker.Ask(context.Background(), w.to, &q, time.Hour)
		if err == nil {
			a.Done()
		}
		done <- err
	}()
	<-entered
	var away *UnreachableError
	if _, err := w.asker.Ask(t.Context(), w.to, &q, time.Hour); !errors.As(err, &away) || away.Sent || !strings.Contains(err.Error(), "has not answered since") {
		t.Errorf("a second: %v", err)
	}
	close(hold)
	assert.NoError(t, (<-done), "the first")
	if _, err := w.ask(t, question); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestWhyABrokerCannotBeAsked(t *testing.T) {
	w := newWorld(t)
	w.to.URL = ""
	if _, err := w.ask(t, question); err == nil || !strings.Contains(err.Error(), "muster.http.advertised") {
		t.Errorf("without an address: %v", err)
	}
	s := httptest.NewServer(http.NotFoundHandler())
	w.to.URL = s.URL
	s.Close()
	var away *UnreachableError
	if _, err := w.ask(t, question); !errors.As(err, &away) || away.Sent || !strings.Contains(err.Error(), "own machine") {
		t.Errorf("nobody listens: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.asker.Ask(ctx, w.to, &question, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("who asked is gone: %v", err)
	}
}

func TestABrokerIsNotWaitedForLongerThanAsked(t *testing.T) {
	w := newWorld(t)
	hold := make(chan struct{})
	w.answer = func(http.ResponseWriter, *http.Request) { <-hold }
	q := question
	q.Depth = 1
	var away *UnreachableError
	if _, err := w.asker.Ask(t.Context(), w.to, &q, time.Millisecond); !errors.As(err, &away) || !away.Sent || !strings.Contains(err.Error(), "did not answer within 1ms") {
		t.Error(err)
	}
	close(hold)
	p := w.asker.peer(2)
	assert.True(t, p.silent.Equal(start) && p.asking == 0, "it is silent since %v, and %d ask", p.silent, p.asking)
	if err := p.begin("three"); err != nil || !p.silent.IsZero() {
		t.Errorf("started anew it is silent since %v, %v", p.silent, err)
	}
}
