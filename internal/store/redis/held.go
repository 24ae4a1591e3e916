package redis

import "sync/atomic"

// heldBytes counts what was read and not yet sent to the client. A client that
// reads slowly, or not at all, keeps it in memory, so the more there is the less the
// next read gets; but never so little that it could not go on.
type heldBytes struct{ atomic.Int64 }

const (
	maxHeld  = 64 << 20
	minRead  = 64 << 10
	heldPart = 8 // One read gets at most this part of what is left.
)

// take reserves room for a read that wants n bytes at most, and says how many it
// gets.
func (h *heldBytes) take(n int) int {
	n = min(n, max(int(maxHeld-h.Load())/heldPart, minRead))
	h.add(n)
	return n
}

func (h *heldBytes) add(n int) { h.Add(int64(n)) }
