// Package session keeps the sessions in which members of share groups fetch (KIP-932): which
// partitions a member fetches from this broker, and which epoch its next request must have.
//
//	epoch 0      a new session, in the place of the member's last one
//	expected     partitions added and forgotten; the epoch goes up
//	-1           the end
//	connection   its end is that of the sessions which were last used on it
//
// There is one session for each member of each group. How many there are is bounded, in all
// and for each principal, as is the memory of what they name: partitions need not exist to
// be named.
//
// The package knows neither records nor partitions. What the end of a session means for the
// records that its member has is for the caller, who is told of it.
package session

import (
	"cmp"
	"sort"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/fair"
	"muster/internal/metadata"
)

// The epochs of requests that have a meaning of their own.
const (
	Initial = 0
	Final   = -1
)

const (
	// budget bounds the memory of all sessions.
	budget = 64 << 20
	// sessionSize and partSize are about the memory of a session besides its names, and of a
	// partition in one.
	sessionSize = 512
	partSize    = 128
)

// Key names a session.
type Key struct{ Group, Member string }

func (k Key) size() int64 { return sessionSize + 2*int64(len(k.Group)+len(k.Member)) }

// Place is a partition in a session.
type Place struct {
	Topic metadata.TopicID
	Index int32
}

// Part is a partition that a request is to fetch. Fresh says that the client has not been
// answered about it in this session.
type Part struct {
	Place
	Fresh bool
}

// Conn is a connection. A new one has no sessions.
type Conn struct {
	sessions map[Key]*session // guarded by the lock of the sessions
	closed   bool
}

// Sessions are those of a broker.
type Sessions struct {
	count, bytes fair.Shares[string] // by principal

	mu     sync.Mutex
	all    map[Key]*session
	groups map[string]int // how many sessions each group has
}

type session struct {
	key   Key
	owner string
	conn  *Conn
	epoch int32 // that the next request must have
	parts []Part
	at    map[Place]int // in parts
	bytes int64
}

// New returns no sessions, of which there may be so many (group.share.max.share.sessions). A
// principal may have three quarters of them and of their memory, so that the others find some left.
func New(most int) *Sessions {
	return &Sessions{
		count: fair.Shares[string]{Most: int64(most), Own: max(1, int64(most)*3/4)},
		bytes: fair.Shares[string]{Most: budget, Own: budget * 3 / 4},
		all:   map[Key]*session{}, groups: map[string]int{},
	}
}

// Request is what a request says of its session.
type Request struct {
	Key
	Owner string // the principal
	Conn  *Conn
	Epoch int32
	// Add are partitions to fetch from now on, Forget those that are fetched no more. What
	// is in both is forgotten.
	Add, Forget []Place
}

// Open begins a session, in the place of one that the member may have. Records are not
// touched by that: the member goes on to have them. So a session that is another principal's is
// not replaced, whoever claims to be its member; Kafka does not look.
func (s *Sessions) Open(r Request) ([]Part, *kerr.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.all[r.Key]; old != nil {
		if old.owner != r.Owner {
			return nil, kerr.GroupAuthorizationFailed
		}
		s.remove(old)
	}
	if r.Conn.closed || !s.count.Take(r.Owner, 1) {
		return nil, kerr.ShareSessionLimitReached
	}
	n := &session{key: r.Key, owner: r.Owner, epoch: 1, at: map[Place]int{}}
	if !s.take(n, r.size()) {
		s.count.Give(r.Owner, 1)
		return nil, kerr.ShareSessionLimitReached
	}
	s.all[r.Key] = n
	s.groups[r.Group]++
	s.move(n, r.Conn)
	if !s.update(n, r.Add, r.Forget) {
		s.remove(n)
		return nil, kerr.ShareSessionLimitReached
	}
	return n.list(0), nil
}

// Next goes on in a session, and returns what is to be fetched. The first partition is another
// one each time, so that each comes to be served first.
func (s *Sessions) Next(r Request) ([]Part, *kerr.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.find(&r)
	if err != nil {
		return nil, err
	}
	s.move(n, r.Conn)
	if n.epoch++; n.epoch <= 0 {
		n.epoch = 1
	}
	if !s.update(n, r.Add, r.Forget) {
		s.remove(n)
		return nil, kerr.ShareSessionNotFound // The client begins another.
	}
	return n.list(int(r.Epoch)), nil
}

// Advance is Next for a request that fetches nothing.
func (s *Sessions) Advance(r Request) *kerr.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.find(&r)
	if err != nil {
		return err
	}
	s.move(n, r.Conn)
	if n.epoch++; n.epoch <= 0 {
		n.epoch = 1
	}
	return nil
}

// End ends a session at its member's request.
func (s *Sessions) End(r Request) *kerr.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.all[r.Key]
	if n == nil || n.owner != r.Owner {
		return kerr.ShareSessionNotFound
	}
	s.remove(n)
	return nil
}

// Ended is a session that has ended, and the principal that it was of.
type Ended struct {
	Key
	Owner string
}

// Disconnect ends the sessions of a connection that has ended, and returns them. A
// session that has gone on elsewhere, or was replaced, is none of them (KAFKA-19950).
func (s *Sessions) Disconnect(c *Conn) []Ended {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.closed = true
	var ended []Ended
	for _, n := range c.sessions {
		s.remove(n)
		ended = append(ended, Ended{n.key, n.owner})
	}
	sort.Slice(ended, func(i, j int) bool {
		a, b := &ended[i], &ended[j]
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Member, b.Member)) < 0
	})
	return ended
}

// Has says whether a group has a session here.
func (s *Sessions) Has(group string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups[group] > 0
}

// GoesOn says whether the member of a session that has ended has another one. Another
// principal's is none.
func (s *Sessions) GoesOn(e Ended) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.all[e.Key]
	return n != nil && n.owner == e.Owner
}

// Len is how many sessions there are.
func (s *Sessions) Len() int { return int(s.count.Used()) }

// find returns the session that a request goes on in. Another principal's is none.
func (s *Sessions) find(r *Request) (*session, *kerr.Error) {
	n := s.all[r.Key]
	switch {
	case n == nil || n.owner != r.Owner || r.Conn.closed:
		return nil, kerr.ShareSessionNotFound
	case r.Epoch != n.epoch:
		return nil, kerr.InvalidShareSessionEpoch
	}
	return n, nil
}

// move has a session end with another connection from now on.
func (s *Sessions) move(n *session, to *Conn) {
	if n.conn == to {
		return
	}
	if n.conn != nil {
		delete(n.conn.sessions, n.key)
	}
	if to.sessions == nil {
		to.sessions = map[Key]*session{}
	}
	n.conn, to.sessions[n.key] = to, n
}

func (s *Sessions) remove(n *session) {
	delete(s.all, n.key)
	delete(n.conn.sessions, n.key)
	if s.groups[n.key.Group]--; s.groups[n.key.Group] == 0 {
		delete(s.groups, n.key.Group)
	}
	s.count.Give(n.owner, 1)
	s.bytes.Give(n.owner, n.bytes)
}

// take counts memory of a session; false says that there is none left.
func (s *Sessions) take(n *session, bytes int64) bool {
	if !s.bytes.Take(n.owner, bytes) {
		return false
	}
	n.bytes += bytes
	return true
}

// update adds and forgets partitions; false says that there is no room for them.
func (s *Sessions) update(n *session, add, forget []Place) bool {
	for _, p := range add {
		if _, ok := n.at[p]; ok {
			continue
		}
		if !s.take(n, partSize) {
			return false
		}
		n.at[p] = len(n.parts)
		n.parts = append(n.parts, Part{p, true})
	}
	for _, p := range forget {
		delete(n.at, p)
	}
	gone := len(n.parts) - len(n.at)
	if gone == 0 {
		return true
	}
	kept := make([]Part, 0, len(n.at))
	at := make(map[Place]int, len(n.at)) // A map keeps its memory.
	for _, p := range n.parts {
		if _, ok := n.at[p.Place]; ok {
			at[p.Place] = len(kept)
			kept = append(kept, p)
		}
	}
	n.parts, n.at = kept, at
	s.bytes.Give(n.owner, int64(gone)*partSize)
	n.bytes -= int64(gone) * partSize
	return true
}

// list returns the partitions, turned by so many.
func (n *session) list(by int) []Part {
	if len(n.parts) == 0 {
		return nil
	}
	by %= len(n.parts)
	out := make([]Part, 0, len(n.parts))
	out = append(append(out, n.parts[by:]...), n.parts[:by]...)
	for i := range n.parts {
		n.parts[i].Fresh = false
	}
	return out
}
