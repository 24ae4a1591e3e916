package explain

import (
	"encoding/json"
	"testing"
	"time"

	"muster/internal/journal"
)

func TestEntriesOfTransactionsInWords(t *testing.T) {
	app1, app2 := &journal.Holder{ClientID: "app-1", Host: "10.0.0.5"}, &journal.Holder{ClientID: "app-2", Host: "10.0.0.7"}
	three, many := []string{"a-0", "a-1", "b-0"}, []string{"a-0", "a-1"}
	node := int32(2)
	epoch := func(n int16) *journal.Producer { return &journal.Producer{ID: 7, Epoch: n} }
	for _, c := range []struct {
		e    journal.Txn
		want string
	}{
		{
			journal.Txn{Kind: journal.TxnFenced, Holder: app1, By: app2, Open: 12 * time.Second, Partitions: many, PartitionN: 30},
			"fenced: app-2 (10.0.0.7) took the id; app-1 (10.0.0.5) had held 30 partitions for 12s",
		},
		{
			journal.Txn{Kind: journal.TxnFenced, Holder: app1, By: app1, Open: 12 * time.Second, Partitions: three, PartitionN: 3},
			"fenced: app-1 (10.0.0.5) started again; what it had left open in a-0, a-1 and b-0 for 12s was aborted",
		},
		{journal.Txn{Kind: journal.TxnFenced, Holder: app1, By: app2}, "fenced: app-2 (10.0.0.7) took the id from app-1 (10.0.0.5); no transaction was open"},
		{
			journal.Txn{Kind: journal.TxnFenced, By: app2, Open: time.Second, Partitions: three[:1], PartitionN: 1, LeftOut: 4},
			"fenced: app-2 (10.0.0.7) took the id; someone had held a-0 for 1s (4 before this left out)",
		},
		{
			journal.Txn{Kind: journal.TxnOperator, Holder: app1, By: app2, Open: time.Second, Partitions: three[:1], PartitionN: 1},
			"aborted by an operator: app-2 (10.0.0.7); app-1 (10.0.0.5) had held a-0 for 1s",
		},
		{journal.Txn{Kind: journal.TxnOperator, Holder: app1, By: app2}, "fenced by an operator: app-2 (10.0.0.7); no transaction was open"},
		{
			journal.Txn{Kind: journal.TxnTimedOut, Holder: app1, Open: time.Minute, Partitions: three[:1], PartitionN: 1},
			"timed out: app-1 (10.0.0.5) had held a-0 for 1m, longer than it may; it was aborted",
		},
		{
			journal.Txn{Kind: journal.TxnRefused, Was: *epoch(4), Now: epoch(6), Holder: app2, By: app1, Request: "EndTxn"},
			"refused: app-1 (10.0.0.5) sent EndTxn with epoch 4; the id is at epoch 6, which app-2 (10.0.0.7) has",
		},
		{journal.Txn{Kind: journal.TxnRefused, Was: *epoch(4), Now: epoch(6), Holder: app1, By: app1}, "refused: app-1 (10.0.0.5) came with epoch 4; the id is at epoch 6"},
		{
			journal.Txn{Kind: journal.TxnRefused, Was: *epoch(9), Now: epoch(6), Request: "AddPartitionsToTxn"},
			"refused: a producer sent AddPartitionsToTxn with epoch 9, but the coordinator knows of epoch 6 only: the end of __transaction_state may be lost",
		},
		{
			journal.Txn{Kind: journal.TxnRefused, Was: journal.Producer{ID: 5, Epoch: 1}, Now: epoch(6), Request: "EndTxn", By: &journal.Holder{Host: "h"}},
			"refused: a client at h sent EndTxn as producer 5, epoch 1; the id belongs to producer 7 now",
		},
		{journal.Txn{Kind: journal.TxnExpired, Idle: 168 * time.Hour, Holder: app1}, "id expired: no one had used it for 7d; last held by app-1 (10.0.0.5)"},
		{
			journal.Txn{Kind: journal.TxnResolved, Broker: &node, Open: 20 * time.Minute, Partitions: three[:1], PartitionN: 1},
			"orphan resolved: broker 2 aborted what had been open in a-0 for 20m and no coordinator knew",
		},
		{
			journal.Txn{Kind: journal.TxnMarked, By: &journal.Holder{ClientID: "x"}, Partitions: three[:1], PartitionN: 1},
			"ended by an operator: x wrote an abort marker to a-0, past the coordinator",
		},
		{
			journal.Txn{Kind: journal.TxnMarked, Committed: true, Partitions: three[:1], PartitionN: 1},
			"ended by an operator: someone wrote a commit marker to a-0, past the coordinator",
		},
		{journal.Txn{Kind: "eclipse"}, "something that this version of muster has no words for (eclipse)"},
	} {
		value, err := json.Marshal(c.e)
		if err != nil {
			t.Fatal(err)
		}
		e, err := ReadTxnEntry([]byte("7"), value)
		if err != nil || e.Line() != c.want || e.Name() != "producer 7" {
			t.Errorf("%s: %q, %v; want %q", e.Name(), e.Line(), err, c.want)
		}
	}
	if _, err := ReadTxnEntry(nil, []byte("{")); err == nil {
		t.Error("half an entry is one")
	}
	for _, kind := range []journal.TxnKind{journal.TxnFenced, journal.TxnOperator, journal.TxnTimedOut, journal.TxnLost, journal.TxnRefused, journal.TxnExpired, journal.TxnResolved, journal.TxnMarked} {
		if e := (TxnEntry{Txn: journal.Txn{Kind: kind, ID: "x"}}); e.Line() == "" || e.Name() != "x" {
			t.Errorf("%s of an entry without anything: %q", kind, e.Line()) // Of a later version, say.
		}
	}
}
