package broker

import (
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/coordinator"
	"muster/internal/handler"
	"muster/internal/journal"
)

// Whoever writes markers without end fills no more of the journal than that.
func TestTheJournalOfMarkersOfOperatorsIsBounded(t *testing.T) {
	var told []journal.Txn
	m := marked{tell: func(e []journal.Txn) { told = append(told, e...) }}
	at := time.Unix(1000, 0)
	for range maxMarked + 5 {
		m.addAt(at, coordinator.Client{ID: "c", Host: "/h"}, handler.Marked{ProducerID: 7, Partitions: []string{"t-0"}, Count: 1})
	}
	m.addAt(at.Add(time.Minute), coordinator.Client{}, handler.Marked{ProducerID: 8, Count: 1})
	assert.MustTrue(t, len(told) == maxMarked+1 && told[0].LeftOut == 0 && told[maxMarked].LeftOut == 5, "%d entries", len(told))
	if e := told[0]; e.Key != "7" || e.Kind != journal.TxnMarked || *e.By != (journal.Holder{ClientID: "c", Host: "h"}) {
		t.Errorf("the first is %+v", e)
	}
}
