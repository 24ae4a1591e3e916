// Package quota counts what clients take against what they may: bytes, changes,
// connections. It is pure: it is told the time, takes no lock and starts nothing;
// who uses it does that.
//
// A Bucket fills at a rate, up to what a number of windows of that rate hold (11 of
// one second, as in Kafka), and whoever takes from it takes at once: what is not
// there is owed. Kafka counts changes so (KIP-599), but sums up bytes over the last
// windows: there a client that sends far too much, and comes back on a new
// connection eleven seconds later, owes nothing, and one that takes eleven seconds'
// worth every eleven seconds is a tenth over its rate in half a minute.
//
// A Book keeps the buckets of all who have a quota, and forgets those that were not
// used for long.
package quota

import (
	"math"
	"time"
)

// Longest is the longest time that anybody is told to wait. What is owed beyond it
// stays owed, so that the next request waits again.
const Longest = 10 * time.Minute

// Limit is how much may be taken.
type Limit struct {
	// PerSecond is the rate. Nothing at all may be taken if it is not positive.
	PerSecond float64
	// Windows and Window say how much a bucket holds: so many windows of the rate
	// (quota.window.num, quota.window.size.seconds).
	Windows int
	Window  time.Duration
	// Full says that a new bucket is full. Otherwise it has one window's worth: the first
	// request passes, as in Kafka, and then the rate holds.
	Full bool
}

// window is what one window fills.
func (l Limit) window() float64 { return l.PerSecond * l.Window.Seconds() }

// most is what a bucket holds.
func (l Limit) most() float64 { return l.window() * float64(max(l.Windows, 1)) }

// sane returns a limit that one can count with.
func (l Limit) sane() Limit {
	if !(l.PerSecond > 0) { // Also what is not a number.
		l.PerSecond = 0
	}
	return l
}

// Bucket is what someone may take at a time. Less than nothing is a debt.
type Bucket struct {
	limit Limit
	level float64
	at    time.Time // of level
}

// NewBucket returns a bucket of someone who was never seen before.
func NewBucket(l Limit, now time.Time) *Bucket {
	b := &Bucket{limit: l.sane(), at: now}
	if b.level = b.limit.window(); l.Full {
		b.level = b.limit.most()
	}
	return b
}

// Alter changes what may be taken from now on. A debt shrinks to what a bucket of
// the new limit holds: an operator who raises a quota wants the client to go on.
func (b *Bucket) Alter(l Limit, now time.Time) {
	if l = l.sane(); l == b.limit {
		return
	}
	b.fill(now)
	b.limit = l
	b.level = min(b.level, l.most())
	b.Forgive(now)
}

// Forgive has a debt shrink to what a bucket holds, and so to what all windows are worth.
func (b *Bucket) Forgive(now time.Time) {
	b.fill(now)
	b.level = max(b.level, -b.limit.most())
}

// fill brings the bucket to a time. A clock that goes back fills nothing.
func (b *Bucket) fill(now time.Time) {
	passed := now.Sub(b.at)
	if passed <= 0 {
		return
	}
	b.at = now
	b.level = min(b.level+b.limit.PerSecond*passed.Seconds(), b.limit.most())
}

// Level returns how much there is.
func (b *Bucket) Level(now time.Time) float64 {
	b.fill(now)
	return b.level
}

// Take takes, whether it is there or not, and returns how long whoever took it has
// to wait until nothing is owed.
func (b *Bucket) Take(n float64, now time.Time) (wait time.Duration) {
	b.fill(now)
	b.level -= n
	return b.until(0)
}

// TakeUnlessOwing takes unless something is owed already; then it takes nothing and
// returns how long that will be so. Who owes nothing may take more than there is: a
// topic with more partitions than the bucket holds could never be created otherwise.
// These are Kafka's rules for changes (KIP-599).
func (b *Bucket) TakeUnlessOwing(n float64, now time.Time) (wait time.Duration) {
	b.fill(now)
	return b.takeFrom(0, n)
}

// Owing returns how long something is owed.
func (b *Bucket) Owing(now time.Time) time.Duration {
	b.fill(now)
	return b.until(0)
}

// TakeIfThere takes what is there, and otherwise nothing, and returns how long to
// wait for it. More than a window of the rate need not be there: a record batch
// that is larger than the whole bucket could never be fetched otherwise.
func (b *Bucket) TakeIfThere(n float64, now time.Time) (wait time.Duration) {
	b.fill(now)
	return b.takeFrom(min(n, b.limit.window()), n)
}

// takeFrom takes if the bucket is at a level at least.
func (b *Bucket) takeFrom(level, n float64) (wait time.Duration) {
	if b.limit.PerSecond == 0 && n > 0 {
		return Longest
	}
	if wait = b.until(level); wait == 0 {
		b.level -= n
	}
	return wait
}

// Room returns how much it makes sense to ask TakeIfThere for.
func (b *Bucket) Room(now time.Time) float64 {
	b.fill(now)
	return max(b.level, b.limit.window())
}

// rounding is the part of a second whose worth may be missing: who has waited as told
// shall not wait again because sums of fractions are not exact.
const rounding = 1e-6

// until returns how long it takes until there is so much: whole milliseconds,
// since that is what clients are told, and enough of them.
func (b *Bucket) until(level float64) time.Duration {
	missing := level - b.level
	if missing <= b.limit.PerSecond*rounding {
		return 0
	}
	millis := math.Ceil(missing / b.limit.PerSecond * 1000) // Infinite without a rate.
	if millis >= float64(Longest/time.Millisecond) {
		return Longest
	}
	return time.Duration(millis) * time.Millisecond
}
