package listener

import (
	"container/list"
	"sync"
	"time"
)

const (
	// answerBudget is how much memory answers may take, over all connections,
	// that were made and are not yet written.
	answerBudget = 512 << 20
	// unreadPatience is how long a connection may take for an answer even while
	// there are too many.
	unreadPatience = time.Second
)

// answers counts the large answers that are not yet written. When there are too
// many, the connections that have left theirs unread for longest are closed.
type answers struct {
	budget int

	mu    sync.Mutex
	bytes int
	slow  *list.List // of *unread, in the order of their last progress
}

// unread is a connection's part in answers.
type unread struct {
	conn  *conn
	bytes int
	since time.Time     // the last answer was written, or the first one made
	place *list.Element // nil if there is nothing unread
}

func newAnswers(budget int) *answers { return &answers{budget: budget, slow: list.New()} }

// add counts an answer, and returns the connections to be cut off for it.
func (a *answers) add(u *unread, bytes int, now time.Time) (cut []*conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bytes += bytes
	u.bytes += bytes
	if u.place == nil {
		u.place, u.since = a.slow.PushBack(u), now
	}
	left := a.bytes
	for e := a.slow.Front(); e != nil && left > a.budget; e = e.Next() {
		slow := e.Value.(*unread)
		if now.Sub(slow.since) < unreadPatience {
			break
		}
		left -= slow.bytes
		cut = append(cut, slow.conn)
	}
	return cut
}

// remove counts an answer out that was written, or never will be.
func (a *answers) remove(u *unread, bytes int, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.bytes -= bytes
	u.bytes -= bytes
	u.since = now
	if u.bytes > 0 {
		a.slow.MoveToBack(u.place)
		return
	}
	a.slow.Remove(u.place)
	u.place = nil
}
