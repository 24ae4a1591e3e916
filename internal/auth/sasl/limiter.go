package sasl

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
)

// A Limiter bounds how many derivations run at once. Without it, wrong passwords
// would take all processors from clients that have long logged in.
type Limiter interface {
	// Acquire waits for a turn of a user, or returns the error of ctx, or ErrBusy.
	Acquire(ctx context.Context, name string) error
	Release()
	// Admitted says that the password of a user was right.
	Admitted(ctx context.Context, name string)
}

// ErrBusy is that too many are logging in.
var ErrBusy = errors.New("too many are logging in")

// Limits of a limiter.
type Limits struct {
	// Turns is how many passwords are derived at once.
	Turns int
	// Logins is how many logins there are at a time, From how many of one address, and As
	// how many of one address with one name: behind a proxy all have one address. Known is
	// the reserve for names that were let in before from their address. With zeros all
	// wait, for a caller who bounds them by connections.
	Logins, From, As, Known int
}

// Login is a login by a password, as a limiter counts it. A context has it.
type Login struct {
	From    string // its address, as a share counts it
	Derived bool   // it had to have the password derived
	leave   func() // nil if it has no place
}

type loginKey struct{}

// With returns a context of the login. End must follow.
func (l *Login) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, loginKey{}, l)
}

// End gives back the place.
func (l *Login) End() {
	if l.leave != nil {
		l.leave()
		l.leave = nil
	}
}

// loginOf returns the login of a context, or one from nowhere.
func loginOf(ctx context.Context) *Login {
	if l, ok := ctx.Value(loginKey{}).(*Login); ok {
		return l
	}
	return &Login{}
}

// rememberAdmitted is how many of those who were let in are remembered.
const rememberAdmitted = 4096

// limiter hands out turns, not in the order in which they were asked for: addresses
// take turns, of an address the names do, and those who were let in before do with all
// others, so that who guesses passwords delays himself, whatever number of connections
// he has.
type limiter struct {
	limits Limits
	seed   maphash.Seed

	mu             sync.Mutex
	free           int // turns
	known, unknown turns
	knownLast      bool // the last turn was of one who was let in before

	// knowns and logins are how many have places, of which from is by address, and as by
	// address and name.
	knowns, logins int
	from           map[string]int
	as, knownAs    map[uint64]int
	// admitted are the marks of those who were let in, and order has them by age, the
	// oldest at next once it is full.
	admitted map[uint64]bool
	order    []uint64
	next     int
}

// NewLimiter makes a limiter.
func NewLimiter(limits Limits) Limiter { return newLimiter(limits) }

func newLimiter(limits Limits) *limiter {
	return &limiter{
		limits: limits, seed: maphash.MakeSeed(), free: limits.Turns, from: map[string]int{},
		as: map[uint64]int{}, knownAs: map[uint64]int{}, admitted: map[uint64]bool{},
	}
}

// mark stands for a name at an address, without keeping either.
func (q *limiter) mark(from, name string) uint64 {
	return maphash.Comparable(q.seed, [2]string{from, name})
}

// Acquire implements Limiter.
func (q *limiter) Acquire(ctx context.Context, name string) error {
	l := loginOf(ctx)
	w, err := q.enter(l, name)
	if err != nil {
		return err
	}
	if w != nil {
		select {
		case <-w.turn:
		case <-ctx.Done():
			if q.giveUp(w) {
				return ctx.Err()
			}
			// It got its turn at the same moment.
		}
	}
	l.Derived = true
	return nil
}

// enter takes a place and a turn, or returns the waiter of one.
func (q *limiter) enter(l *Login, name string) (*waiter, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.mark(l.From, name)
	in, ok := q.place(l, m)
	switch {
	case !ok:
		return nil, ErrBusy
	case q.free > 0:
		q.free--
		return nil, nil
	}
	return in.push(l.From, m), nil
}

// place takes a place, and returns where its owner waits.
func (q *limiter) place(l *Login, m uint64) (in *turns, ok bool) {
	most := q.limits
	switch {
	case most.Logins == 0 && q.admitted[m]:
		return &q.known, true
	case most.Logins == 0:
		return &q.unknown, true
	case q.admitted[m] && q.knowns < most.Known && q.knownAs[m] < most.As:
		q.knowns++
		q.knownAs[m]++
		l.leave = func() { q.left(&q.knowns, func() { lower(q.knownAs, m) }) }
		return &q.known, true
	case q.logins < most.Logins && q.from[l.From] < most.From && q.as[m] < most.As:
		q.logins++
		q.from[l.From]++
		q.as[m]++
		l.leave = func() { q.left(&q.logins, func() { lower(q.from, l.From); lower(q.as, m) }) }
		return &q.unknown, true
	}
	return nil, false
}

func (q *limiter) left(count *int, of func()) {
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

// giveUp ends a wait; false says that it was over.
func (q *limiter) giveUp(w *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return w.leave()
}

// Release implements Limiter.
func (q *limiter) Release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.pop()
	if w == nil {
		q.free++
		return
	}
	close(w.turn)
}

// pop returns who is next. Each kind has every other turn, if both wait.
func (q *limiter) pop() *waiter {
	first, second := &q.known, &q.unknown
	if q.knownLast {
		first, second = second, first
	}
	w := first.pop()
	if w == nil {
		first, w = second, second.pop()
	}
	q.knownLast = first == &q.known
	return w
}

// Admitted implements Limiter.
func (q *limiter) Admitted(ctx context.Context, name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	m := q.mark(loginOf(ctx).From, name)
	if q.admitted[m] {
		return
	}
	if len(q.order) < rememberAdmitted {
		q.order = append(q.order, m)
	} else {
		delete(q.admitted, q.order[q.next])
		q.order[q.next] = m
		q.next = (q.next + 1) % rememberAdmitted
	}
	q.admitted[m] = true
}
