package fleet

import (
	"sync"
	"time"
)

// peer is what is remembered of another broker while it is asked.
type peer struct {
	mu          sync.Mutex
	incarnation string
	asking      int
	silent      time.Time // Since when it has not answered; zero if it has.
}

func (f *Fleet) peer(node int32) *peer {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.peers[node]
	if p == nil {
		p = &peer{}
		f.peers[node] = p
	}
	return p
}

// begin counts a question, unless there are too many, or it is silent and someone
// tries already.
func (p *peer) begin(incarnation string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.incarnation != incarnation {
		p.incarnation, p.silent = incarnation, time.Time{} // It was started anew.
	}
	switch {
	case !p.silent.IsZero() && p.asking > 0:
		return unreachable("it has not answered since %s", p.silent.UTC().Format(time.RFC3339))
	case p.asking >= maxPerBroker:
		return unreachable("it is asked as many questions at a time as it may")
	}
	p.asking++
	return nil
}

// outcome is how a question ended.
type outcome int

const (
	answered outcome = iota // Whatever the answer was.
	silent
	gaveUp // Who asked did not wait, which says nothing of the broker.
)

// end says how a question ended.
func (p *peer) end(o outcome, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asking--
	switch {
	case o == answered:
		p.silent = time.Time{}
	case o == silent && p.silent.IsZero():
		p.silent = now
	}
}
