package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/txns"
	"muster/internal/watch/explain"
)

// transaction begins a transaction and writes records to a partition.
func (s *shell) transaction(id, topic string, partition int32, values ...string) *kgo.Client {
	s.t.Helper()
	c := s.client(kgo.TransactionalID(id), kgo.ClientID("payer"), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.TransactionTimeout(10*time.Minute))
	must(s.t, c.BeginTransaction())
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	for _, v := range values {
		must(s.t, c.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: partition, Value: []byte(v)}).FirstErr())
	}
	return c
}

func TestTxnsListAndDescribe(t *testing.T) {
	s := newShell(t)
	same(t, "stderr without any", s.run("txns", "list").err, "there are no transactional ids\n")
	s.run("topics", "create", "orders", "-p", "2").ok()
	s.pipe("a\nb\n", "produce", "orders", "-p", "1").ok()
	open := s.transaction("pay", "orders", 1, "c", "d", "e")
	done := s.transaction("done", "orders", 0, "x")
	must(t, done.EndTransaction(t.Context(), kgo.TryCommit))

	list := decode[[]txns.State](s.run("txns", "list", "--json"))
	if len(list) != 2 || list[1].ID != "pay" || list[1].State != "Ongoing" || list[1].StartedAt == nil || len(list[1].Partitions) != 1 {
		t.Errorf("the list is %+v", list)
	}
	for _, c := range []struct{ args, want string }{
		{"", "done pay"}, {"^p", "pay"}, {"--open", "pay"}, {"--state ongoing", "pay"}, {"--open --longer-than 1h", ""}, {"--longer-than 1ns", "pay"},
	} {
		var ids []string
		for _, x := range decode[[]txns.State](s.run(append([]string{"txns", "list", "--json"}, strings.Fields(c.args)...)...)) {
			ids = append(ids, x.ID)
		}
		same(t, "txns list "+c.args, strings.Join(ids, " "), c.want)
	}
	says(t, s.run("txns", "list", "--open").ok(), "TRANSACTIONAL ID  STATE", "pay               Ongoing")
	s.run("txns", "list", "--state", "Open").fails(exitUsage, "--state is one of Empty, Ongoing")
	s.run("txns", "list", "(").fails(exitUsage, "no regular expression")

	out := oneLine(s.run("txns", "describe", "pay").ok())
	says(t, out, "Transactional id: pay", "State: Ongoing", "Timeout: 10m", "Held by: payer at 127.0.0.1", "Its transaction has been open for",
		"in 1 partition: orders-1.", "Readers of committed records see orders-1 up to offset 2, 3 offsets before its end.",
		"by muster txns abort pay, or else by its timeout in", "orders-1 2 2 5 3")
	says(t, oneLine(s.run("txns", "describe", "done").ok()), "No transaction of done is open; it holds nothing back.")
	s.run("txns", "describe", "nobody").fails(exitFailed, `there is no transactional id "nobody"`)
	s.run("txns", "describe").fails(exitUsage, "needs an argument")

	says(t, s.run("txns", "find-hanging", "--older-than", "0s").err, "no transaction hangs; 1 transaction is open")
	must(t, open.EndTransaction(t.Context(), kgo.TryAbort))
}

func TestTxnsAbortEndsTheTransactionAndFencesItsProducer(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "orders").ok()
	c := s.transaction("pay", "orders", 0, "a")
	s.run("txns", "abort", "pay").fails(exitUsage, "add --yes")
	s.run("txns", "abort", "nobody", "--yes").fails(exitFailed, `there is no transactional id "nobody"`)
	s.run("txns", "abort").fails(exitUsage, "give a transactional id")
	s.run("txns", "abort", "--partition", "orders-0").fails(exitUsage, "--partition and --producer-id go together")
	s.run("txns", "abort", "pay", "--yes").prints("fenced pay: the transaction was aborted, and its producer must start again\n")
	same(t, "what is open", s.run("txns", "list", "--open", "--json").ok(), "[]\n")
	if err := c.EndTransaction(t.Context(), kgo.TryCommit); !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) {
		t.Errorf("the fenced producer commits: %v", err)
	}
	same(t, "what is read", s.run("consume", "orders", "--isolation", "read_committed").ok(), "")
	s.run("txns", "abort", "pay", "--yes").prints("fenced pay: no transaction was open, and its producer must start again\n")
}

func TestTxnsAbortLeavesAKnownTransactionToItsCoordinator(t *testing.T) {
	s := newShell(t)
	s.run("topics", "create", "orders").ok()
	s.transaction("pay", "orders", 0, "a")
	list := decode[[]txns.State](s.run("txns", "list", "--json"))
	id := fmt.Sprint(list[0].ProducerID)
	s.run("txns", "abort", "--partition", "orders-0", "--producer-id", id, "--yes").fails(exitFailed, "the transaction is that of pay")
	s.run("txns", "abort", "--partition", "orders-0", "--producer-id", "1", "--yes").fails(exitFailed, "producer 1 has no transaction open in orders-0")
	s.run("txns", "abort", "--partition", "orders", "--producer-id", "1", "--yes").fails(exitUsage, "write it as TOPIC-NUMBER")
}

func TestGroupsExplainLagOfAnOpenTransaction(t *testing.T) {
	s := newGroupShell(t)
	s.run("topics", "create", "orders").ok()
	s.pipe("a\nb\n", "produce", "orders").ok()
	s.transaction("pay", "orders", 0, "c", "d")
	offsets := kadm.Offsets{}
	offsets.Add(kadm.Offset{Topic: "orders", Partition: 0, At: 2, LeaderEpoch: -1})
	must(t, kadm.NewClient(s.client()).CommitAllOffsets(t.Context(), "g", offsets))
	x := decode[explain.Explanation](s.run("groups", "explain", "g", "--json"))
	var text []string
	for _, f := range x.Findings {
		text = append(text, f.ID+": "+f.Text)
	}
	says(t, strings.Join(text, "\n"), "open-transaction: The transaction of pay, open for", "holds back orders-0", "its lag of 2 is not its own")
}
