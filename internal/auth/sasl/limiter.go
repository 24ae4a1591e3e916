package sasl

import "context"

// A Limiter bounds how many derivations run at once. Without it, wrong passwords
// would take all processors from clients that have long logged in.
type Limiter interface {
	// Acquire waits for a place, or returns the error of ctx.
	Acquire(ctx context.Context) error
	Release()
}

// NewLimiter makes a limiter with a number of places, handed out in the order
// in which they were asked for. Nobody needs to bound who waits: a connection
// asks once and is not read meanwhile, and connections are bounded.
func NewLimiter(places int) Limiter { return make(limiter, places) }

type limiter chan struct{}

func (l limiter) Acquire(ctx context.Context) error {
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l limiter) Release() { <-l }
