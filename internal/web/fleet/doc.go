// Package fleet is how the brokers of a cluster ask each other over HTTP.
//
// A broker that was asked by someone asks the others with a note: who asks, from where,
// which broker passes it on and to which. Note, method, path, query, what is accepted and
// the body are signed with a key that follows from the secret of the cluster, which is
// never sent. A note is good for a minute, once, and only at the broker, and the start of
// it, that it names: so what was overheard is of no use, and a broker that reaches itself
// or a third one by an address that means something else there notices. The answer is
// signed as well, for whoever listens at the address might not be a broker.
//
//	person → broker 1 ── Fleet.Ask: note, signed ──→ broker 2: Fleet.Admit → the same API
//	                  ←─ answer, signed for the note ──
//
// Whoever is asked, memory, time and connections are bounded: see Ask. The package knows
// nothing of what is asked.
package fleet

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Target is another broker.
type Target struct {
	Node        int32
	Incarnation string // Another one each time it starts.
	URL         string // http://host:port; empty if it has none.
}

// Options of a fleet.
type Options struct {
	// Self is this broker; only node and incarnation count.
	Self func() Target
	// Others are the other brokers, in order of their node ids.
	Others func() []Target
	// Keys are those that notes may be signed with, and the first of them the one that this
	// broker signs with; none while they are not known.
	Keys func() [][]byte
	// TLS is the client's side for addresses that begin with https; nil for the
	// system's.
	TLS func() *tls.Config
	// Now is the time; time.Now if nil.
	Now func() time.Time
	// Silence is after how long a broker is not waited for; DefaultSilence if 0.
	Silence time.Duration
}

// DefaultSilence is after how long a broker is not waited for.
const DefaultSilence = time.Second

// Fleet asks the other brokers, and knows them when they ask.
type Fleet struct {
	opts   Options
	client *http.Client
	held   atomic.Int64 // Bytes of answers that are not done with.
	seen   *nonces

	mu    sync.Mutex
	peers map[int32]*peer
}

// New makes a fleet.
func New(opts Options) *Fleet {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Silence == 0 {
		opts.Silence = DefaultSilence
	}
	f := &Fleet{opts: opts, seen: newNonces(maxNonces), peers: map[int32]*peer{}}
	f.client = newClient(opts.TLS)
	return f
}

// Others returns the other brokers.
func (f *Fleet) Others() []Target { return f.opts.Others() }

// Silence is after how long a broker is not waited for.
func (f *Fleet) Silence() time.Duration { return f.opts.Silence }

// Close lets go of connections.
func (f *Fleet) Close() { f.client.CloseIdleConnections() }

// sign returns the signature of some words. Each has its length before it, so that no
// word can take a part of the next.
func sign(key []byte, words ...string) string {
	m := hmac.New(sha256.New, key)
	for _, w := range words {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(w)))
		m.Write(size[:])
		m.Write([]byte(w))
	}
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

func hashOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
