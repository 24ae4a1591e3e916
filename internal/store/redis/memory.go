package redis

import (
	"slices"
	"sync"
	"sync/atomic"

	"muster/internal/buffer"
)

// What appends in the stream layout hold in memory from when they are unpacked until Redis
// has them, over all logs of a store. A batch that is small and packed may unpack to very
// much, and a record in memory is a command of many words.
const (
	entryMemory = 256 << 20 // over all logs
	// smallEntries is how much is small; large appends leave smallMemory to those.
	smallEntries = 1 << 20
	smallMemory  = 64 << 20
	// maxEntries is how much one append may hold.
	maxEntries = entryMemory - smallMemory
	// maxUnpacked bounds what a packed batch may unpack to. Redis does nothing else
	// while it takes it.
	maxUnpacked = 64 << 20
	// recordMemory and wordMemory are about what a record and each of its words take.
	recordMemory = 400
	wordMemory   = 64
)

// memory is shared by those who need some of it for a while. They wait for it in the order
// in which they ask, small ones and large ones apart.
type memory struct {
	mu           sync.Mutex
	free         int64
	small, large []*waiter
	// spare is what others have given back of buffers too large for package buffer, while
	// someone waits for a large amount: no more than one append may hold, however late the
	// garbage collector comes.
	spare [][]byte
}

type waiter struct {
	n     int64
	ready chan struct{}
}

func newMemory() *memory { return &memory{free: entryMemory} }

// class returns those who wait for amounts like n, and what is to stay free.
func (m *memory) class(n int64) (waiting *[]*waiter, reserve int64) {
	if n <= smallEntries {
		return &m.small, 0
	}
	return &m.large, smallMemory
}

// try takes n bytes, no more than maxEntries, if that is possible without waiting.
func (m *memory) try(n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.take(n)
}

func (m *memory) take(n int64) bool {
	waiting, reserve := m.class(n)
	if len(*waiting) > 0 || m.free-n < reserve {
		return false
	}
	m.free -= n
	return true
}

// wait takes n bytes, no more than maxEntries, as soon as they are there. Whoever waits must
// hold none, so that no two wait for each other.
func (m *memory) wait(n int64) {
	m.mu.Lock()
	if m.take(n) {
		m.mu.Unlock()
		return
	}
	w := &waiter{n, make(chan struct{})}
	waiting, _ := m.class(n)
	*waiting = append(*waiting, w)
	m.mu.Unlock()
	<-w.ready
}

// buffer returns an empty buffer with room for n bytes, or for up to twice as many. It is
// given back whole, since what it takes is what it was made with.
func (m *memory) buffer(n int) []byte {
	if n <= buffer.Most {
		return buffer.Empty(n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, b := range m.spare {
		if n <= cap(b) && cap(b) <= 2*n {
			m.spare = slices.Delete(m.spare, i, i+1)
			return b[:0]
		}
	}
	return make([]byte, 0, n)
}

// give gives bytes back, and a buffer, nil if there is none.
func (m *memory) give(n int64, b []byte) {
	buffer.Free(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free += n
	if len(m.large) == 0 {
		m.spare = nil
	} else if cap(b) > buffer.Most {
		kept := cap(b)
		for _, s := range m.spare {
			kept += cap(s)
		}
		if kept <= maxEntries {
			m.spare = append(m.spare, b)
		}
	}
	m.admit(&m.small, 0)
	m.admit(&m.large, smallMemory)
}

// admit lets those go on for whom there is enough.
func (m *memory) admit(waiting *[]*waiter, reserve int64) {
	for len(*waiting) > 0 && m.free-(*waiting)[0].n >= reserve {
		m.free -= (*waiting)[0].n
		close((*waiting)[0].ready)
		*waiting = (*waiting)[1:]
	}
}

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
