package interop

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// eachVersion runs a test with clients of both versions of transactions, each
// with a broker of its own that has a topic "out".
func eachVersion(t *testing.T, settings []string, test func(t *testing.T, b *process, opts []kgo.Opt)) {
	t.Helper()
	for name, opts := range transactionVersions {
		t.Run(name, func(t *testing.T) {
			b := serve(t, t.TempDir(), settings...)
			createTopic(t, b.addr(), "out", 2)
			test(t, b, opts)
		})
	}
}

func TestANewInstanceOfAProducerFencesTheOlderOne(t *testing.T) {
	eachVersion(t, nil, func(t *testing.T, b *process, opts []kgo.Opt) {
		older := transactional(t, b.addr(), "x", opts...)
		inTransaction(t, older, kgo.TryCommit, "a1", "a2")
		must(t, older.BeginTransaction())
		must(t, older.ProduceSync(t.Context(), recordsOf([]string{"lost1", "lost2"})...).FirstErr())
		newer := transactional(t, b.addr(), "x", opts...)
		inTransaction(t, newer, kgo.TryCommit, "b1", "b2")
		if err := errors.Join(older.ProduceSync(t.Context(), recordsOf([]string{"late"})...).FirstErr(), older.EndTransaction(t.Context(), kgo.TryCommit)); err == nil {
			t.Error("the older instance committed")
		}
		inTransaction(t, newer, kgo.TryCommit, "c1")
		wantTopic(t, b.addr(), "out", kgo.ReadCommitted(), "a1", "a2", "b1", "b2", "c1")
	})
}

func TestATransactionWhoseTimeIsUpIsAborted(t *testing.T) {
	settings := []string{"--set", "transaction.abort.timed.out.transaction.cleanup.interval.ms=50"}
	eachVersion(t, settings, func(t *testing.T, b *process, opts []kgo.Opt) {
		slow := transactional(t, b.addr(), "slow", append(opts, kgo.TransactionTimeout(5*time.Second))...)
		must(t, slow.BeginTransaction())
		must(t, slow.ProduceSync(t.Context(), recordsOf([]string{"lost1", "lost2"})...).FirstErr())
		wantTopic(t, b.addr(), "out", kgo.ReadCommitted()) // Which waits for the end of the transaction.
		// The coordinator has raised the epoch by one, as for a retry of version 2:
		// that an abort would be repeated is possible there, that a commit would is not.
		err := slow.EndTransaction(t.Context(), kgo.TryCommit)
		if !errors.Is(err, kerr.ProducerFenced) && !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.InvalidTxnState) {
			t.Errorf("a commit after the timeout: %v", err)
		}
		other := transactional(t, b.addr(), "other", opts...)
		inTransaction(t, other, kgo.TryCommit, "a1", "a2")
		wantTopic(t, b.addr(), "out", kgo.ReadCommitted(), "a1", "a2")
	})
}

func TestTransactionsSurviveKills(t *testing.T) {
	for name, opts := range transactionVersions {
		t.Run(name, func(t *testing.T) { transactionsAndKills(t, opts) })
	}
}

// transactionsAndKills commits and aborts while the broker is killed again and
// again, with an idle transaction open over each kill. What a client was told
// holds; of what it was not told, all or nothing is there.
func transactionsAndKills(t *testing.T, opts []kgo.Opt) {
	data, addr := t.TempDir(), fixedPort(t)
	start := func() *process {
		return serve(t, data, append([]string{"--listen", addr, "--set", "transaction.abort.timed.out.transaction.cleanup.interval.ms=100"}, shortLease...)...)
	}
	b := start()
	createTopic(t, addr, "out", 2)
	var committed []string
	open := map[string]bool{} // of which no one knows how they ended
	for n := range often(6) {
		cl := transactional(t, addr, fmt.Sprintf("x%d", n%2), append(opts, kgo.TransactionTimeout(20*time.Second))...)
		for i := range 3 {
			v := fmt.Sprintf("%d.%d", n, i)
			inTransaction(t, cl, kgo.TryCommit, v+"a", v+"b")
			committed = append(committed, v+"a", v+"b")
			inTransaction(t, cl, kgo.TryAbort, "aborted"+v)
		}
		ended := make(chan error, 1)
		v := fmt.Sprintf("%d.last", n)
		go func() { ended <- tryTransaction(t.Context(), cl, kgo.TryCommit, v+"a", v+"b") }()
		b.kill()
		b = start()
		if err := <-ended; err == nil {
			committed = append(committed, v+"a", v+"b")
		} else {
			t.Logf("killed during a transaction: %v", err)
			open[v] = true
		}
		cl.Close()
	}
	allDecided(t, addr, "out")
	got := valuesIn(t, addr, "out", kgo.ReadCommitted())
	for v := range open {
		if count(got, v+"a") == 1 && count(got, v+"b") == 1 {
			committed = append(committed, v+"a", v+"b")
		}
	}
	wantTopic(t, addr, "out", kgo.ReadCommitted(), committed...)
}

func count(values []string, v string) (n int) {
	for _, x := range values {
		if x == v {
			n++
		}
	}
	return n
}
