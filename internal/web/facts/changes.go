package facts

import (
	"sync"

	"muster/internal/journal"
)

// maxChanges is how many changes of groups are remembered for those who watch.
const maxChanges = 4096

// groupChanges remembers which groups something happened to lately. Who watches asks for
// what came after the last that it was told of.
type groupChanges struct {
	mu   sync.Mutex
	ring [maxChanges]string
	next uint64
}

// add notes the groups of entries. It takes no longer than to copy their names.
func (c *groupChanges) add(entries []journal.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range entries {
		c.ring[c.next%maxChanges] = entries[i].Group
		c.next++
	}
}

// from returns what came since.
func (c *groupChanges) from(number uint64) (groups []string, next uint64, missed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next-min(number, c.next) > maxChanges {
		return nil, c.next, true
	}
	for ; number < c.next; number++ {
		groups = append(groups, c.ring[number%maxChanges])
	}
	return groups, c.next, false
}

// Happened notes what happened to groups. It is called under a lock, and must not block.
func (r *Facts) Happened(entries []journal.Entry) { r.changes.add(entries) }

// Changes implements web.Reads.
func (r *Facts) Changes(from uint64) (groups []string, next uint64, missed bool) {
	return r.changes.from(from)
}
