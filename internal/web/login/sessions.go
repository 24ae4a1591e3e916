package login

import (
	"container/list"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
	"time"

	"muster/internal/auth"
)

const (
	// sessionLasts is when someone who has logged in has to do so again.
	sessionLasts = 12 * time.Hour
	// maxSessionBytes is how much is remembered of all who have logged in. Who logged in
	// longest ago goes first.
	maxSessionBytes = 1 << 20
	// sessionBytes is about what one costs besides the name.
	sessionBytes = 512
	// maxSessionsOfOne is how often one user is logged in at a time, so that one who
	// logs in again and again sends away only themselves.
	maxSessionsOfOne = 64
	// sessionSecret is how long the secret of a session is: no one guesses it.
	sessionSecret = 32
)

// Sessions are those who have logged in and not out. They are in memory only: after a
// start people log in again. Of the secret that a browser keeps there is only a hash, so
// that who sees the broker's memory cannot come as someone else.
type Sessions struct {
	now func() time.Time

	mu    sync.Mutex
	all   map[sessionKey]*list.Element // of *session
	order *list.List                   // who logged in longest ago first
	of    map[auth.Principal]int
	bytes int
}

type sessionKey [sha256.Size]byte

// session is someone who has logged in.
type session struct {
	key  sessionKey
	id   Identity
	ends time.Time
}

// NewSessions returns none yet.
func NewSessions(now func() time.Time) *Sessions {
	return &Sessions{now: now, all: map[sessionKey]*list.Element{}, order: list.New(), of: map[auth.Principal]int{}}
}

func keyOf(secret string) sessionKey { return sha256.Sum256([]byte(secret)) }

func (s *session) cost() int { return sessionBytes + len(s.id.Principal) + len(s.id.Proof) }

// Begin remembers someone, and returns the secret by which they are known from now on.
func (s *Sessions) Begin(id Identity) (secret string, ends time.Time) {
	var random [sessionSecret]byte
	_, _ = rand.Read(random[:]) // It never fails.
	secret = base64.RawURLEncoding.EncodeToString(random[:])
	now := s.now()
	ends = now.Add(sessionLasts)
	if !id.Ends.IsZero() && id.Ends.Before(ends) {
		ends = id.Ends
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	added := &session{key: keyOf(secret), id: id, ends: ends}
	s.all[added.key] = s.order.PushBack(added)
	s.of[id.Principal]++
	s.bytes += added.cost()
	s.bound(id.Principal)
	return secret, ends
}

// bound sends away the oldest of someone who is here too often, and then the oldest of
// all while there are too many. The lock is held.
func (s *Sessions) bound(who auth.Principal) {
	for e := s.order.Front(); e != nil && s.of[who] > maxSessionsOfOne; {
		next := e.Next()
		if e.Value.(*session).id.Principal == who {
			s.remove(e)
		}
		e = next
	}
	for s.bytes > maxSessionBytes {
		s.remove(s.order.Front())
	}
}

func (s *Sessions) remove(e *list.Element) {
	gone := s.order.Remove(e).(*session)
	delete(s.all, gone.key)
	s.bytes -= gone.cost()
	if s.of[gone.id.Principal]--; s.of[gone.id.Principal] == 0 {
		delete(s.of, gone.id.Principal)
	}
}

// Find returns whose secret it is.
func (s *Sessions) Find(secret string) (id Identity, ends time.Time, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all[keyOf(secret)]
	if e == nil {
		return Identity{}, time.Time{}, false
	}
	it := e.Value.(*session)
	if !s.now().Before(it.ends) {
		s.remove(e)
		return Identity{}, time.Time{}, false
	}
	return it.id, it.ends, true
}

// End forgets someone, and returns who it was.
func (s *Sessions) End(secret string) (id Identity, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all[keyOf(secret)]
	if e == nil {
		return Identity{}, false
	}
	s.remove(e)
	return e.Value.(*session).id, true
}
