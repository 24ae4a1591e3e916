package broker

import (
	"context"
	"hash/maphash"
	"sync"

	"muster/internal/web"
)

const (
	// maxLogins is how many logins over HTTP that need a password derived there are at a
	// time, maxLoginsFrom how many of one address, and maxLoginsAs how many of one address
	// with one name: behind a proxy all have one address.
	maxLogins     = 64
	maxLoginsFrom = 24
	maxLoginsAs   = 4
	// maxKnownLogins is the reserve for names that were let in before from their address.
	maxKnownLogins = 16
	// rememberAdmitted is how many of these are remembered.
	rememberAdmitted = 4096
)

// loginQueue has passwords derived one at a time, so that those who guess them take no
// more than a processor. Who logged in lately is remembered, and does not wait at all. Of
// the places of the others no address has more than a share, and those who were let in
// before have a reserve, so that who guesses does not keep others out. It implements
// sasl.Limiter.
type loginQueue struct {
	turn chan struct{}
	seed maphash.Seed

	mu sync.Mutex
	// strangers and known are how many wait, of which from is by address, and as by address
	// and name.
	strangers, known int
	from             map[string]int
	as, knownAs      map[uint64]int
	// admittedBefore are the marks of those who were let in, and order has them by age, the
	// oldest at next once it is full.
	admittedBefore map[uint64]bool
	order          []uint64
	next           int
}

func newLoginQueue() *loginQueue {
	return &loginQueue{
		turn: make(chan struct{}, 1), seed: maphash.MakeSeed(), from: map[string]int{},
		as: map[uint64]int{}, knownAs: map[uint64]int{}, admittedBefore: map[uint64]bool{},
	}
}

// loginKey is the key under which a context has its loginWait.
type loginKey struct{}

// loginWait is a login that may need a password derived.
type loginWait struct {
	from, name string // its address, as a share counts it
	derived    bool
	leave      func() // nil if it has no place
}

// end gives back the place.
func (l *loginWait) end() {
	if l.leave != nil {
		l.leave()
	}
}

// mark stands for a name at an address, without keeping either.
func (q *loginQueue) mark(l *loginWait) uint64 {
	return maphash.Comparable(q.seed, [2]string{l.from, l.name})
}

// Acquire implements sasl.Limiter.
func (q *loginQueue) Acquire(ctx context.Context) error {
	l, ok := ctx.Value(loginKey{}).(*loginWait)
	if !ok || !q.enter(l) {
		return web.ErrLoginBusy
	}
	select {
	case q.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	l.derived = true
	return nil
}

// Release implements sasl.Limiter.
func (q *loginQueue) Release() { <-q.turn }

// enter takes a place, and says whether there was one.
func (q *loginQueue) enter(l *loginWait) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.mark(l)
	switch {
	case q.admittedBefore[m] && q.known < maxKnownLogins && q.knownAs[m] < maxLoginsAs:
		q.known++
		q.knownAs[m]++
		l.leave = func() { q.left(&q.known, func() { lower(q.knownAs, m) }) }
	case q.strangers < maxLogins && q.from[l.from] < maxLoginsFrom && q.as[m] < maxLoginsAs:
		q.strangers++
		q.from[l.from]++
		q.as[m]++
		l.leave = func() { q.left(&q.strangers, func() { lower(q.from, l.from); lower(q.as, m) }) }
	default:
		return false
	}
	return true
}

func (q *loginQueue) left(count *int, of func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	*count--
	of()
}

// lower counts one less, and forgets what is not there any more.
func lower[K comparable](counts map[K]int, k K) {
	if counts[k]--; counts[k] == 0 {
		delete(counts, k)
	}
}

// admitted remembers that somebody was let in.
func (q *loginQueue) admitted(l *loginWait) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.mark(l)
	if q.admittedBefore[m] {
		return
	}
	if len(q.order) < rememberAdmitted {
		q.order = append(q.order, m)
	} else {
		delete(q.admittedBefore, q.order[q.next])
		q.order[q.next] = m
		q.next = (q.next + 1) % rememberAdmitted
	}
	q.admittedBefore[m] = true
}
