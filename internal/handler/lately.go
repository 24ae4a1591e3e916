package handler

import (
	"container/list"
	"sync"
	"time"

	"muster/internal/coordinator"
	"muster/internal/metadata/config"
)

const (
	// latelyClients is how many clients are remembered.
	latelyClients = 1000
	// latelyFor is for how long.
	latelyFor = 10 * time.Minute
)

// lately remembers which clients have lately asked for something transactional.
// Metadata requests do not say what their client is up to, but a topic that is
// created by one of a transactional producer had better be able to hold
// transactions. That is a guess: another broker may have been asked.
type lately struct {
	mu    sync.Mutex
	seen  map[coordinator.Client]*list.Element
	order *list.List // of sighting, the oldest first
}

type sighting struct {
	client coordinator.Client
	at     time.Time
}

func (l *lately) note(client coordinator.Client, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen, l.order = map[coordinator.Client]*list.Element{}, list.New()
	}
	if e := l.seen[client]; e != nil {
		e.Value = sighting{client, now}
		l.order.MoveToBack(e)
		return
	}
	l.seen[client] = l.order.PushBack(sighting{client, now})
	if len(l.seen) > latelyClients {
		oldest := l.order.Remove(l.order.Front()).(sighting)
		delete(l.seen, oldest.client)
	}
}

func (l *lately) has(client coordinator.Client, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.seen[client]
	return e != nil && now.Sub(e.Value.(sighting).at) < latelyFor
}

// layoutFor returns the settings of a topic that is created because a client asks
// for it: one that a transactional producer is about to use can hold transactions.
func (h *Handler) layoutFor(c *call) map[string]string {
	usual := config.NewTopic(h.opts.Controller.Image().Config, nil)
	if usual.Traits.Transactions || !h.lately.has(c.client(), h.opts.Now()) {
		return nil
	}
	return map[string]string{"muster.redis.layout": config.TransactionalLayout}
}
