package fleet

import (
	"container/heap"
	"errors"
	"sync"
	"time"
)

// maxNonces is how many are remembered, each for a minute, in some 40 MB. Only brokers have
// them remembered, and these ask some thousand times a second at most.
const maxNonces = 1 << 18

// errFull is that more cannot be remembered.
var errFull = errors.New("other brokers ask too often")

// nonces remembers what was used, until it would be too old anyway.
type nonces struct {
	max int

	mu   sync.Mutex
	used map[string]struct{}
	ends ends
}

func newNonces(most int) *nonces { return &nonces{max: most, used: map[string]struct{}{}} }

// add remembers one until a time. It is an error if it was used before.
func (n *nonces) add(nonce string, now, until time.Time) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for len(n.ends) > 0 && n.ends[0].at.Before(now) {
		delete(n.used, heap.Pop(&n.ends).(end).nonce)
	}
	_, again := n.used[nonce]
	switch {
	case again:
		return errReplayed
	case len(n.used) >= n.max:
		return errFull
	}
	n.used[nonce] = struct{}{}
	heap.Push(&n.ends, end{until, nonce})
	return nil
}

// end is when something may be forgotten.
type end struct {
	at    time.Time
	nonce string
}

// ends implements heap.Interface, the first to be forgotten first.
type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }

// Pop implements heap.Interface.
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}
