package broker

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"muster/internal/coordinator"
	"muster/internal/handler"
	"muster/internal/journal"
)

// What happens to a transaction outside of its coordinator is keyed by its producer id
// in the journal: its transactional id is not known there.

// maxMarked is how many markers of operators the journal tells of in a minute.
const maxMarked = 100

// marked tells the journal of markers that operators write to partitions.
type marked struct {
	tell func([]journal.Txn)

	mu    sync.Mutex
	since time.Time
	count int // since then
	left  int // left out since the last one
}

func (m *marked) add(from coordinator.Client, x handler.Marked) { m.addAt(time.Now(), from, x) }

func (m *marked) addAt(now time.Time, from coordinator.Client, x handler.Marked) {
	left, ok := m.allow(now)
	if !ok {
		return
	}
	m.tell([]journal.Txn{{
		Key: strconv.FormatInt(x.ProducerID, 10), Time: now, Kind: journal.TxnMarked, Committed: x.Commit,
		Was: journal.Producer{ID: x.ProducerID, Epoch: x.ProducerEpoch}, LeftOut: left,
		By:         &journal.Holder{ClientID: from.ID[:min(len(from.ID), 255)], Host: strings.TrimPrefix(from.Host, "/")},
		Partitions: x.Partitions, PartitionN: x.Count,
	}})
}

// allow says whether there is room for another entry, and how many were left out
// before it.
func (m *marked) allow(now time.Time) (left int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ago := now.Sub(m.since); ago >= time.Minute || ago < 0 {
		m.since, m.count = now, 0
	}
	if m.count == maxMarked {
		m.left++
		return 0, false
	}
	m.count++
	left, m.left = m.left, 0
	return left, true
}
