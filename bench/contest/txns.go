package contest

import (
	"fmt"

	"muster/bench/rig"
)

// txns measures transactions on one broker.
func (c *contest) txns(s *subject, folder string) error {
	if !c.anyWanted(c.Txn.Names()...) {
		return nil
	}
	x, err := c.open(s, folder)
	if err != nil {
		return err
	}
	defer x.p.Kill()
	if err := x.txnSteps(); err != nil {
		return fmt.Errorf("%w\n%s", err, x.p.Stderr)
	}
	return nil
}

func (x *session) txnSteps() error {
	// To warm up, one after the other, for the sake of Java.
	for _, t := range []rig.TxnTask{{Records: 100, Partitions: 12, IDs: 8}, {Records: 1, Partitions: 1, IDs: 8}} {
		if err := x.txnTask(t, "warm", nil); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	for _, t := range x.Txn.Tasks() {
		if !x.wanted(t.Name()) {
			continue
		}
		if err := x.txnTask(t, "txns", x.txnMeasure); err != nil {
			return fmt.Errorf("%s: %w", t.Name(), err)
		}
	}
	if !x.anyWanted(rig.CommittedName, rig.UncommittedName) {
		return nil
	}
	return x.txnFetches()
}

// TxnTask makes transactions: for long to warm up, or shortly before they are
// measured.
func (x *session) txnTask(t rig.TxnTask, kind string, measure func(*rig.TxnCrew) error) error {
	crew, err := x.NewTxnCrew(x.p, t, t.Topic(kind), kind)
	if err != nil {
		return err
	}
	defer crew.Close()
	d := x.o.warm / 2
	if measure != nil {
		d = x.Txn.Warm
	}
	if _, err := crew.ProduceFor(d); err != nil {
		return err
	}
	if measure != nil {
		if err := measure(crew); err != nil {
			return err
		}
	}
	if err := x.withConn(crew.Check); err != nil {
		return err
	}
	return x.flush()
}

// txnMeasure notes how fast transactions are, and what they cost.
func (x *session) txnMeasure(crew *rig.TxnCrew) error {
	speed := pairMetric{group: crew.Name(), name: "transactions", unit: "1/s", rule: fromCache, more: true}
	cost := pairMetric{group: crew.Name(), name: "per transaction, processor time", unit: "CPU-ms", rule: fromCache}
	var n int
	s, err := x.cost(speed.title(), func() (err error) {
		n, err = crew.ProduceFor(x.Txn.Time)
		return err
	})
	if err != nil {
		return err
	}
	x.note(speed, float64(n)/s.Wall.Seconds())
	x.note(cost, rig.Millis(s.CPU)/float64(n))
	return nil
}

// txnFetches reads a topic with aborted transactions as both kinds of consumers
// do.
func (x *session) txnFetches() error {
	end, err := x.FillTxns(x.p)
	if err != nil {
		return err
	}
	if err := x.flush(); err != nil {
		return err
	}
	names := []string{rig.UncommittedName, rig.CommittedName}
	for i := range names {
		name := names[(i+x.round)%2]
		if !x.wanted(name) {
			continue
		}
		err := x.WithTxnReader(x.p, end, name == rig.CommittedName, func(r *rig.TxnReader) error { return x.txnFetch(name, r) })
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (x *session) txnFetch(name string, r *rig.TxnReader) error {
	var n int64
	s, err := x.cost(name, func() (err error) {
		n, err = r.ReadFor(x.Txn.Time)
		return err
	})
	if err != nil {
		return err
	}
	x.note(pairMetric{group: name, name: "throughput", unit: "MB/s", more: true}, float64(n)/1e6/s.Wall.Seconds())
	x.note(pairMetric{group: name, name: "processor time", unit: "CPU-s/GB"}, s.CPU.Seconds()/(float64(n)/1e9))
	return nil
}
