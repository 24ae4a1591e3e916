package main

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"
)

// Transactions are measured with franz-go, which adds partitions to a
// transaction by producing to them, and gets a new epoch with each (transaction
// version 2). Beside a broker with transactions stands the same broker without
// them: the same records from the same client without a transactional id, and the
// same topic read with read_uncommitted. Those are in the column "bare".

// txnSizes say how much is measured of transactions.
type txnSizes struct {
	time    time.Duration // for each measure
	warm    time.Duration // before each
	ids     []int         // how many transactional ids are used at a time
	aborted int           // transactions in the topic that is read; 0: transactions are not measured
	topic   float64       // GB in it
	fillers int           // transactional ids that write it
}

func defaultTxnSizes() txnSizes {
	return txnSizes{time: 3 * time.Second, warm: time.Second / 2, ids: []int{8, 1}, aborted: 10_000, topic: 0.5, fillers: 32}
}

// txnTask is a kind of transaction, and how many clients make them.
type txnTask struct{ records, partitions, ids int }

func (t txnTask) name() string {
	return fmt.Sprintf("txns of %s, %s, %s", count(t.records, "record"), count(t.partitions, "partition"), count(t.ids, "id"))
}

// topic names a topic that only one measure writes to, so that its ends tell
// whether all is there.
func (t txnTask) topic(kind string) string {
	return fmt.Sprintf("bench-%s-%d-%d-%d", kind, t.records, t.partitions, t.ids)
}

// markers is how many partitions a transaction ends in.
func (t txnTask) markers() int { return min(t.records, t.partitions) }

// tasks lists what is measured of producing.
func (s txnSizes) tasks() []txnTask {
	var out []txnTask
	for _, ids := range s.ids {
		for _, records := range []int{100, 1} {
			for _, partitions := range []int{1, 12} {
				out = append(out, txnTask{records, partitions, ids})
			}
		}
	}
	return out
}

// The measures of reading a topic with aborted transactions.
const (
	committedName   = "txns read_committed"
	uncommittedName = "txns read_uncommitted"
)

// names lists all measures of transactions.
func (s txnSizes) names() []string {
	if s.aborted == 0 {
		return nil
	}
	out := []string{committedName, uncommittedName}
	for _, t := range s.tasks() {
		out = append(out, t.name())
	}
	return out
}

// txns measures transactions.
func (b *bench) txns() error {
	if !slices.ContainsFunc(b.txn.names(), b.wanted) {
		return nil
	}
	for round := range b.rounds {
		if err := b.inScratch(func(folder string) error { return b.txnRound(round, folder) }); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return nil
}

// txnRound measures everything once. Who comes first changes from round to
// round.
func (b *bench) txnRound(round int, folder string) error {
	p, err := b.startBroker(filepath.Join(folder, "broker"))
	if err != nil {
		return err
	}
	defer p.kill()
	for _, t := range b.txn.tasks() {
		if !b.wanted(t.name()) {
			continue
		}
		for i := range 2 {
			if err := b.txnOnce(p, t, (i+round)%2 == 0); err != nil {
				return fmt.Errorf("%s: %w", t.name(), err)
			}
		}
		b.say("round %d, %s", round+1, b.report.line(txnRate(t)))
	}
	if b.wanted(committedName) {
		if err := b.txnFetches(p, round); err != nil {
			return fmt.Errorf("%s: %w", committedName, err)
		}
	}
	return p.stop()
}

func txnRate(t txnTask) metric { return metric{t.name(), "transactions", "1/s", noAim} }
func txnCost(t txnTask) metric {
	return metric{t.name(), "per transaction, processor time", "CPU-ms", noAim}
}

// txnOnce produces for a while, in transactions or without.
func (b *bench) txnOnce(p *process, t txnTask, transactional bool) error {
	s, prefix := bare, ""
	if transactional {
		s, prefix = broker, "bench"
	}
	crew, err := b.newTxnCrew(p, t, t.topic("txns"+prefix), prefix)
	if err != nil {
		return err
	}
	defer crew.close()
	if _, err := crew.produceFor(b.txn.warm); err != nil {
		return err
	}
	n := 0
	spent, err := b.spend(p, fmt.Sprintf("%s, %s", t.name(), s), func() (err error) {
		n, err = crew.produceFor(b.txn.time)
		return err
	})
	if err != nil {
		return err
	}
	b.report.add(txnRate(t), s, float64(n)/spent.wall.Seconds())
	b.report.add(txnCost(t), s, millis(spent.cpu)/float64(n))
	return b.withProcess(p, crew.check)
}

// withProcess runs fn with a connection of its own.
func (b *bench) withProcess(p *process, fn func(net.Conn) error) error {
	c, err := p.dial(b.ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}

// readSum is what one kind of consumer got, and what it cost the broker.
type readSum struct {
	spent
	bytes int64
}

// txnFetches reads a topic with aborted transactions as both kinds of consumers
// do, in the order a, b, b, a: who comes first would pay for what the system
// does about a file that is read for the first time.
func (b *bench) txnFetches(p *process, round int) error {
	end, err := b.fillTxns(p)
	if err != nil {
		return err
	}
	sums := map[side]*readSum{broker: {}, bare: {}}
	order := []side{broker, bare, bare, broker}
	if round%2 == 1 {
		order = []side{bare, broker, broker, bare}
	}
	for _, s := range order {
		err := b.withTxnReader(p, end, s == broker, func(r *txnReader) error { return b.txnFetch(p, s, r, sums[s]) })
		if err != nil {
			return err
		}
	}
	cost := metric{committedName, "processor time", "CPU-s/GB", ratioAim(1.2)}
	speed := metric{committedName, "throughput", "MB/s", noAim}
	for s, sum := range sums {
		b.report.add(cost, s, sum.cpu.Seconds()/(float64(sum.bytes)/1e9))
		b.report.add(speed, s, float64(sum.bytes)/1e6/sum.wall.Seconds())
	}
	b.say("round %d, %s", round+1, b.report.line(cost))
	return nil
}

// txnFetch reads for half of the time.
func (b *bench) txnFetch(p *process, s side, r *txnReader, sum *readSum) error {
	spent, err := b.spend(p, fmt.Sprintf("%s, %s", committedName, s), func() error {
		n, err := r.readFor(b.txn.time / 2)
		sum.bytes += n
		return err
	})
	sum.wall += spent.wall
	sum.cpu += spent.cpu
	return err
}
