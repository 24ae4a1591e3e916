package rig

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
	Time    time.Duration // for each measure
	Warm    time.Duration // before each
	ids     []int         // how many transactional ids are used at a time
	aborted int           // transactions in the topic that is read; 0: transactions are not measured
	topic   float64       // GB in it
	fillers int           // transactional ids that write it
}

func DefaultTxnSizes() txnSizes {
	return txnSizes{Time: 3 * time.Second, Warm: time.Second / 2, ids: []int{8, 1}, aborted: 10_000, topic: 0.5, fillers: 32}
}

// TinyTxnSizes are for tests.
func TinyTxnSizes() txnSizes {
	return txnSizes{Time: time.Millisecond, Warm: time.Millisecond, ids: []int{2, 1}, aborted: 8, topic: 0.0002, fillers: 2}
}

// TxnTask is a kind of transaction, and how many clients make them.
type TxnTask struct{ Records, Partitions, IDs int }

func (t TxnTask) Name() string {
	return fmt.Sprintf("txns of %s, %s, %s", Count(t.Records, "record"), Count(t.Partitions, "partition"), Count(t.IDs, "id"))
}

// Topic names a topic that only one measure writes to, so that its ends tell
// whether all is there.
func (t TxnTask) Topic(kind string) string {
	return fmt.Sprintf("bench-%s-%d-%d-%d", kind, t.Records, t.Partitions, t.IDs)
}

// markers is how many partitions a transaction ends in.
func (t TxnTask) markers() int { return min(t.Records, t.Partitions) }

// Tasks lists what is measured of producing.
func (s txnSizes) Tasks() []TxnTask {
	var out []TxnTask
	for _, ids := range s.ids {
		for _, records := range []int{100, 1} {
			for _, partitions := range []int{1, 12} {
				out = append(out, TxnTask{records, partitions, ids})
			}
		}
	}
	return out
}

// The measures of reading a topic with aborted transactions.
const (
	CommittedName   = "txns read_committed"
	UncommittedName = "txns read_uncommitted"
)

// Names lists all measures of transactions.
func (s txnSizes) Names() []string {
	if s.aborted == 0 {
		return nil
	}
	out := []string{CommittedName, UncommittedName}
	for _, t := range s.Tasks() {
		out = append(out, t.Name())
	}
	return out
}

// txns measures transactions.
func (b *Bench) txns() error {
	if !slices.ContainsFunc(b.Txn.Names(), b.Wanted) {
		return nil
	}
	for round := range b.Rounds {
		if err := b.InScratch(func(folder string) error { return b.txnRound(round, folder) }); err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return nil
}

// txnRound measures everything once. Who comes first changes from round to
// round.
func (b *Bench) txnRound(round int, folder string) error {
	p, err := b.StartBroker(filepath.Join(folder, "broker"))
	if err != nil {
		return err
	}
	defer p.Kill()
	for _, t := range b.Txn.Tasks() {
		if !b.Wanted(t.Name()) {
			continue
		}
		for i := range 2 {
			if err := b.txnOnce(p, t, (i+round)%2 == 0); err != nil {
				return fmt.Errorf("%s: %w", t.Name(), err)
			}
		}
		b.Say("round %d, %s", round+1, b.Report.line(txnRate(t)))
	}
	if b.Wanted(CommittedName) {
		if err := b.txnFetches(p, round); err != nil {
			return fmt.Errorf("%s: %w", CommittedName, err)
		}
	}
	return p.Stop()
}

func txnRate(t TxnTask) metric { return metric{t.Name(), "transactions", "1/s", noAim} }
func txnCost(t TxnTask) metric {
	return metric{t.Name(), "per transaction, processor time", "CPU-ms", noAim}
}

// txnOnce produces for a while, in transactions or without.
func (b *Bench) txnOnce(p *Process, t TxnTask, transactional bool) error {
	s, prefix := bare, ""
	if transactional {
		s, prefix = broker, "bench"
	}
	crew, err := b.NewTxnCrew(p, t, t.Topic("txns"+prefix), prefix)
	if err != nil {
		return err
	}
	defer crew.Close()
	if _, err := crew.ProduceFor(b.Txn.Warm); err != nil {
		return err
	}
	n := 0
	spent, err := b.spend(p, fmt.Sprintf("%s, %s", t.Name(), s), func() (err error) {
		n, err = crew.ProduceFor(b.Txn.Time)
		return err
	})
	if err != nil {
		return err
	}
	b.Report.add(txnRate(t), s, float64(n)/spent.Wall.Seconds())
	b.Report.add(txnCost(t), s, Millis(spent.CPU)/float64(n))
	return b.withProcess(p, crew.Check)
}

// withProcess runs fn with a connection of its own.
func (b *Bench) withProcess(p *Process, fn func(net.Conn) error) error {
	c, err := p.Dial(b.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}

// readSum is what one kind of consumer got, and what it cost the broker.
type readSum struct {
	Spent
	bytes int64
}

// txnFetches reads a topic with aborted transactions as both kinds of consumers
// do, in the order a, b, b, a: who comes first would pay for what the system
// does about a file that is read for the first time.
func (b *Bench) txnFetches(p *Process, round int) error {
	end, err := b.FillTxns(p)
	if err != nil {
		return err
	}
	sums := map[Side]*readSum{broker: {}, bare: {}}
	order := []Side{broker, bare, bare, broker}
	if round%2 == 1 {
		order = []Side{bare, broker, broker, bare}
	}
	for _, s := range order {
		err := b.WithTxnReader(p, end, s == broker, func(r *TxnReader) error { return b.txnFetch(p, s, r, sums[s]) })
		if err != nil {
			return err
		}
	}
	cost := metric{CommittedName, "processor time", "CPU-s/GB", ratioAim(1.2)}
	speed := metric{CommittedName, "throughput", "MB/s", noAim}
	for s, sum := range sums {
		b.Report.add(cost, s, sum.CPU.Seconds()/(float64(sum.bytes)/1e9))
		b.Report.add(speed, s, float64(sum.bytes)/1e6/sum.Wall.Seconds())
	}
	b.Say("round %d, %s", round+1, b.Report.line(cost))
	return nil
}

// txnFetch reads for half of the time.
func (b *Bench) txnFetch(p *Process, s Side, r *TxnReader, sum *readSum) error {
	spent, err := b.spend(p, fmt.Sprintf("%s, %s", CommittedName, s), func() error {
		n, err := r.ReadFor(b.Txn.Time / 2)
		sum.bytes += n
		return err
	})
	sum.Wall += spent.Wall
	sum.CPU += spent.CPU
	return err
}
