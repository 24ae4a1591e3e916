package fleet

import (
	"bytes"
	"context"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

const (
	// NoteHeader has the note of a request, and its signature after a point.
	NoteHeader = "Muster-Broker"
	// ProofHeader has the signature of an answer.
	ProofHeader = "Muster-Proof"

	// requestWord and answerWord keep signatures of one kind from being taken for the other.
	requestWord = "muster http request 1"
	answerWord  = "muster http answer 1"

	// maxSkew is how far the clocks of two brokers may be apart, and how long a request
	// may be on its way.
	maxSkew = time.Minute
	// MaxBody is how long a body may be that is passed on.
	MaxBody = 8 << 20
	// MaxDepth is how many brokers a question may pass: one that it is passed on to, and
	// one that this has to ask.
	MaxDepth = 2
)

// Note is what a broker says of a request that it sends to another.
type Note struct {
	From        int32  `json:"from"`
	To          int32  `json:"to"`
	Incarnation string `json:"incarnation"` // Of the one that it is for.
	At          int64  `json:"at"`          // In milliseconds.
	Nonce       string `json:"nonce"`
	Principal   string `json:"principal"` // Who asks; empty if a broker does for itself.
	Groups      string `json:"groups,omitempty"`
	Host        string `json:"host"`  // Where they asked from.
	Depth       int    `json:"depth"` // How many brokers it has come to.
	Body        string `json:"body"`  // Its hash.

	key []byte // that it was signed with
}

// Why a request is not admitted.
var (
	errMalformed = errors.New("the note of the broker that asks cannot be read")
	errUnsigned  = errors.New("the note of the broker that asks is not signed with the secret of this cluster")
	errNotMe     = errors.New("the question is for another broker: the address that it was sent to means another one here, or this one was started anew")
	errStale     = errors.New("the note of the broker that asks is of another time: the clocks of the brokers are more than a minute apart")
	errReplayed  = errors.New("the note of the broker that asks was used before")
	errDeep      = errors.New("the question has come through too many brokers")
	errBody      = errors.New("the body is not the one that the broker sent")
)

// seal signs a note for a request.
func seal(key []byte, n *Note, method, uri, accept string) (header string, err error) {
	text, err := json.Marshal(n)
	if err != nil {
		return "", err
	}
	note := base64.RawURLEncoding.EncodeToString(text)
	return note + "." + sign(key, requestWord, method, uri, accept, note), nil
}

// Admit says whether a request is of another broker, and returns its note; nil if it has
// none. One whose note is not good is refused, whatever else it brings. The body is read,
// checked, and put back.
func (f *Fleet) Admit(r *http.Request) (*Note, error) {
	header, given := r.Header[NoteHeader]
	if !given {
		return nil, nil
	}
	if len(header) != 1 {
		return nil, errMalformed
	}
	n, err := f.open(header[0], r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errBody, err)
	case len(body) > MaxBody || hashOf(body) != n.Body:
		return nil, errBody
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return n, nil
}

// open checks the signature first: of what is not signed nothing is believed.
func (f *Fleet) open(header string, r *http.Request) (*Note, error) {
	note, signature, ok := strings.Cut(header, ".")
	if !ok {
		return nil, errMalformed
	}
	keys := f.opts.Keys()
	signed := slices.IndexFunc(keys, func(key []byte) bool {
		want := sign(key, requestWord, r.Method, r.RequestURI, r.Header.Get("Accept"), note)
		return len(key) > 0 && hmac.Equal([]byte(want), []byte(signature))
	})
	if signed < 0 {
		return nil, errUnsigned
	}
	text, err := base64.RawURLEncoding.DecodeString(note)
	if err != nil {
		return nil, errMalformed
	}
	n := &Note{key: keys[signed]}
	if json.Unmarshal(text, n) != nil {
		return nil, errMalformed
	}
	self, now := f.opts.Self(), f.opts.Now()
	switch age := now.Sub(time.UnixMilli(n.At)); {
	case n.To != self.Node || n.Incarnation != self.Incarnation || n.From == self.Node:
		return nil, errNotMe
	case age > maxSkew || age < -maxSkew:
		return nil, errStale
	case n.Depth < 1 || n.Depth > MaxDepth:
		return nil, errDeep
	}
	// It is remembered until it would be too old anyway.
	return n, f.seen.add(n.Nonce, now, time.UnixMilli(n.At).Add(maxSkew))
}

// prove signs an answer to a request with that nonce.
func prove(key []byte, nonce string, status int, contentType, body string) string {
	return sign(key, answerWord, nonce, fmt.Sprint(status), contentType, body)
}

// noteKey is the key of the note in a context.
type noteKey struct{}

// With returns a context that has a note.
func With(ctx context.Context, n *Note) context.Context { return context.WithValue(ctx, noteKey{}, n) }

// From returns the note of a context; nil if someone else than a broker asks.
func From(ctx context.Context) *Note {
	n, _ := ctx.Value(noteKey{}).(*Note)
	return n
}
