package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster"
	"muster/cmd/muster/internal/txns"
	"muster/internal/assert"
	"muster/internal/journal"
	"muster/internal/redistest"
)

// txnHistory waits until the journal has so many lines, and returns them.
func (s *shell) txnHistory(lines int, args ...string) []string {
	s.t.Helper()
	var out []string
	eventually(s.t, func() error {
		r := s.run(append([]string{"txns", "history"}, args...)...)
		if out = strings.Split(strings.TrimSuffix(r.ok(), "\n"), "\n"); len(out) != lines || r.stdout == "" {
			return fmt.Errorf("%d lines in\n%s%s", len(out), r.stdout, r.err)
		}
		return nil
	})
	return out
}

// upset has two producers fight for an id, and an operator end it.
func (s *shell) upset() {
	s.t.Helper()
	old := s.transaction("pay", "orders", 1, "a")
	taker := s.client(kgo.TransactionalID("pay"), kgo.ClientID("taker"))
	if _, _, err := taker.ProducerID(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	assert.MustError(s.t, old.EndTransaction(s.t.Context(), kgo.TryCommit), "a producer that was fenced commits")
	end := kmsg.NewPtrEndTxnRequest() // As one that tries again and again.
	id, epoch, _ := old.ProducerID(s.t.Context())
	end.TransactionalID, end.ProducerID, end.ProducerEpoch = "pay", id, epoch
	for range 5 {
		if _, err := end.RequestWith(s.t.Context(), old); err != nil {
			s.t.Fatal(err)
		}
	}
	s.run("txns", "abort", "pay", "--yes").ok()
}

// wantUpset wants the journal to tell so.
func wantUpset(t *testing.T, lines []string) {
	t.Helper()
	says(t, lines[0], " pay: fenced: taker (127.0.0.1) took the id; payer (127.0.0.1) had held orders-1 for ")
	says(t, lines[1], " pay: refused: payer (127.0.0.1) sent EndTxn with epoch 0; the id is at epoch ", ", which taker (127.0.0.1) has")
	says(t, lines[2], " pay: fenced by an operator: muster (127.0.0.1); no transaction was open")
}

func TestTxnsHistory(t *testing.T) {
	s := newShell(t)
	r := s.run("txns", "history")
	same(t, "stdout without a journal", r.ok(), "")
	same(t, "stderr without a journal", r.err, "the journal says nothing about transactions in the last day; --since looks further back\n")
	s.run("topics", "create", "orders", "-p", "2").ok()
	done := s.transaction("done", "orders", 0, "x")
	must(t, done.EndTransaction(t.Context(), kgo.TryCommit))
	s.upset()
	wantUpset(t, s.txnHistory(3))
	s.transaction("other", "orders", 0, "b")
	s.run("txns", "abort", "other", "--yes").ok()
	all := s.txnHistory(4)
	says(t, all[3], " other: aborted by an operator: muster (127.0.0.1); payer (127.0.0.1) had held orders-0 for ")
	wantUpset(t, s.txnHistory(3, "pay"))
	r = s.run("txns", "history", "--limit", "1")
	same(t, "--limit 1", r.ok(), all[3]+"\n")
	same(t, "stderr of --limit 1", r.err, "3 earlier entries are left out; --limit shows more\n")
	says(t, s.run("txns", "history", "done").err, `the journal says nothing about "done" in the last day`)
	for _, line := range s.txnHistory(4, "--json") {
		var e journal.Txn
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.ID == "" || e.Kind == "" || e.Time.IsZero() || e.By == nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	s.run("txns", "history", "--since", "x").fails(exitUsage, "--since takes how long")
	s.run("txns", "history", "--limit", "-1").fails(exitUsage, "--limit cannot be negative")
	s.run("txns", "history", "a", "b").fails(exitUsage, "takes other arguments")

	out := s.run("txns", "describe", "pay").ok()
	says(t, out, "Lately:\n", " refused: payer (127.0.0.1) sent EndTxn")
	if strings.Contains(out, "other") || strings.Contains(s.run("txns", "describe", "done").ok(), "Lately") {
		t.Errorf("others are described, too:\n%s", out)
	}
	if got := decode[[]txns.State](s.run("txns", "describe", "pay", "done", "--json")); len(got[0].History) != 3 || len(got[1].History) != 0 {
		t.Errorf("described are %+v", got)
	}
}

func TestTxnsHistoryTellsOfMarkersOfOperators(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "orders").ok()
	s.transaction("pay", "orders", 0, "a")
	req := kmsg.NewPtrWriteTxnMarkersRequest() // As kafka-transactions.sh sends it.
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	topic := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	topic.Topic, topic.Partitions = "orders", []int32{0}
	m.ProducerID, m.ProducerEpoch, m.Topics = decode[[]txns.State](s.run("txns", "list", "--json"))[0].ProducerID, 0, append(m.Topics, topic)
	req.Markers = append(req.Markers, m)
	if _, err := req.RequestWith(t.Context(), s.client(kgo.ClientID("tool"))); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprint(m.ProducerID)
	says(t, s.txnHistory(1, id)[0], " producer "+id+": ended by an operator: tool (127.0.0.1) wrote an abort marker to orders-0, past the coordinator")
}

func TestTxnsHistorySurvivesARestart(t *testing.T) {
	folder := t.TempDir()
	start := func() (*shell, *muster.Broker) {
		b := startBroker(t, muster.Config{Data: folder})
		return &shell{t, b.Addr()}, b
	}
	s, b := start()
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.upset()
	before := s.txnHistory(3, "pay")
	wantUpset(t, before)
	must(t, b.Close())
	s, _ = start()
	same(t, "the journal after a restart", strings.Join(s.txnHistory(3, "pay"), "\n"), strings.Join(before, "\n"))
}

// Either broker shows the journal, whoever led the transaction.
func TestTxnsHistoryInRedis(t *testing.T) {
	shells, _ := twoShells(t, redistest.Single(t), "transaction.state.log.num.partitions", "5")
	shells[0].run("topics", "create", "orders", "-p", "2", "-c", "muster.redis.layout=log").ok()
	shells[0].upset()
	for _, s := range shells {
		wantUpset(t, s.txnHistory(3))
		says(t, s.run("txns", "describe", "pay").ok(), "Lately:\n", " refused: payer (127.0.0.1) sent EndTxn")
	}
}
