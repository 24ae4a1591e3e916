package records

import (
	"context"
	"sync"
)

// budget is memory that several share. Who wants more than there is waits; who wants more
// than there will ever be gets all of it.
type budget struct {
	mu    sync.Mutex
	all   int64
	free  int64
	freed chan struct{} // Closed when something was given back.
}

func newBudget(bytes int64) *budget {
	return &budget{all: bytes, free: bytes, freed: make(chan struct{})}
}

// take waits for some of it, and returns how to give it back.
func (b *budget) take(ctx context.Context, bytes int64) (give func(), err error) {
	bytes = min(bytes, b.all)
	for {
		b.mu.Lock()
		if b.free >= bytes {
			b.free -= bytes
			b.mu.Unlock()
			return func() { b.give(bytes) }, nil
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// portion is what someone has of a budget.
type portion struct {
	of   *budget
	give func()
}

// set makes the share another one. It is given back before: someone who waited for more
// and kept what he had could wait for himself, or others for each other.
func (s *portion) set(ctx context.Context, bytes int64) error {
	s.end()
	give, err := s.of.take(ctx, bytes)
	s.give = give
	return err
}

// end gives it back.
func (s *portion) end() {
	if s.give != nil {
		s.give()
		s.give = nil
	}
}

func (b *budget) give(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += bytes
	close(b.freed)
	b.freed = make(chan struct{})
}
