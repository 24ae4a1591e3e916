// Package meter counts what passes through the broker, so cheaply that the way of a
// request does not notice: no lock and no memory for each, only additions to numbers
// that connections seldom share.
//
//	listener → Requests (which, how many, how long)
//	handler  → Topics   (records and bytes in and out)
//	broker   → Groups   (rebalances), Vector (logins, denials, waits), Histogram (flushes)
//	                     ↓
//	web/metrics reads them all, when somebody asks
//
// The package owns the numbers and nothing else: it knows no names of metrics, starts
// nothing, and whoever counts says what.
package meter

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// stripes is over how many places a number is spread that many connections add to, so
// that processors do not wait for one another's memory. It is a power of two.
const stripes = 8

// Meters is everything that a broker counts.
type Meters struct {
	Requests Requests
	Topics   Topics
	Groups   Groups
	// Logins are counted by listener, mechanism and result, Denials by operation and
	// type of resource, Throttled is in seconds by what the quota is of.
	Logins, Denials, Throttled Vector
	// Flushes is how long the disk takes to have records for good.
	Flushes *Histogram
	// JournalDropped is how many entries of journals were left out.
	JournalDropped atomic.Uint64
	// Panics is how many defects were met, and survived.
	Panics atomic.Uint64
}

// CountDenial counts that someone may not do something.
func (m *Meters) CountDenial(operation, resource string) {
	m.Denials.Add(Labels{strings.ToLower(operation), strings.ToLower(resource)}, 1)
}

// Panicked counts one.
func (m *Meters) Panicked() { m.Panics.Add(1) }

// New returns meters that have counted nothing.
func New() *Meters {
	m := &Meters{Groups: Groups{groups: map[string]*rebalances{}, phases: map[string]*Histogram{}}, Flushes: NewHistogram(Fast)}
	for _, phase := range []string{Join, Sync, Reconcile} {
		m.Groups.phases[phase] = NewHistogram(Slow)
	}
	return m
}

// Labels say what a number of a Vector is of.
type Labels [3]string

// vectorMost is how many numbers a vector keeps. What labels say is for the broker to
// choose, not for clients, so there are never nearly as many.
const vectorMost = 1000

// Vector is numbers by labels. It takes a lock, so it is for what happens seldom, or
// costs much more anyway.
type Vector struct {
	mu     sync.Mutex
	counts map[Labels]float64
}

// Add adds to the number of these labels. Zero makes it known.
func (v *Vector) Add(l Labels, n float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.counts == nil {
		v.counts = map[Labels]float64{}
	}
	if _, known := v.counts[l]; known || len(v.counts) < vectorMost {
		v.counts[l] += n
	}
}

// Read returns all numbers.
func (v *Vector) Read() map[Labels]float64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := make(map[Labels]float64, len(v.counts))
	maps.Copy(out, v.counts)
	return out
}
