package main

import "fmt"

// txns measures transactions on one broker.
func (c *contest) txns(s *subject, folder string) error {
	if !c.anyWanted(c.txn.names()...) {
		return nil
	}
	x, err := c.open(s, folder)
	if err != nil {
		return err
	}
	defer x.p.kill()
	if err := x.txnSteps(); err != nil {
		return fmt.Errorf("%w\n%s", err, x.p.stderr)
	}
	return nil
}

func (x *session) txnSteps() error {
	// To warm up, one after the other, for the sake of Java.
	for _, t := range []txnTask{{100, 12, 8}, {1, 1, 8}} {
		if err := x.txnTask(t, "warm", nil); err != nil {
			return fmt.Errorf("warm up: %w", err)
		}
	}
	for _, t := range x.txn.tasks() {
		if !x.wanted(t.name()) {
			continue
		}
		if err := x.txnTask(t, "txns", x.txnMeasure); err != nil {
			return fmt.Errorf("%s: %w", t.name(), err)
		}
	}
	if !x.anyWanted(committedName, uncommittedName) {
		return nil
	}
	return x.txnFetches()
}

// txnTask makes transactions: for long to warm up, or shortly before they are
// measured.
func (x *session) txnTask(t txnTask, kind string, measure func(*txnCrew) error) error {
	crew, err := x.newTxnCrew(x.p, t, t.topic(kind), kind)
	if err != nil {
		return err
	}
	defer crew.close()
	d := x.o.warm / 2
	if measure != nil {
		d = x.txn.warm
	}
	if _, err := crew.produceFor(d); err != nil {
		return err
	}
	if measure != nil {
		if err := measure(crew); err != nil {
			return err
		}
	}
	if err := x.withConn(crew.check); err != nil {
		return err
	}
	return x.flush()
}

// txnMeasure notes how fast transactions are, and what they cost.
func (x *session) txnMeasure(crew *txnCrew) error {
	speed := pairMetric{group: crew.name(), name: "transactions", unit: "1/s", rule: fromCache, more: true}
	cost := pairMetric{group: crew.name(), name: "per transaction, processor time", unit: "CPU-ms", rule: fromCache}
	var n int
	s, err := x.cost(speed.title(), func() (err error) {
		n, err = crew.produceFor(x.txn.time)
		return err
	})
	if err != nil {
		return err
	}
	x.note(speed, float64(n)/s.wall.Seconds())
	x.note(cost, millis(s.cpu)/float64(n))
	return nil
}

// txnFetches reads a topic with aborted transactions as both kinds of consumers
// do.
func (x *session) txnFetches() error {
	end, err := x.fillTxns(x.p)
	if err != nil {
		return err
	}
	if err := x.flush(); err != nil {
		return err
	}
	names := []string{uncommittedName, committedName}
	for i := range names {
		name := names[(i+x.round)%2]
		if !x.wanted(name) {
			continue
		}
		err := x.withTxnReader(x.p, end, name == committedName, func(r *txnReader) error { return x.txnFetch(name, r) })
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (x *session) txnFetch(name string, r *txnReader) error {
	var n int64
	s, err := x.cost(name, func() (err error) {
		n, err = r.readFor(x.txn.time)
		return err
	})
	if err != nil {
		return err
	}
	x.note(pairMetric{group: name, name: "throughput", unit: "MB/s", more: true}, float64(n)/1e6/s.wall.Seconds())
	x.note(pairMetric{group: name, name: "processor time", unit: "CPU-s/GB"}, s.cpu.Seconds()/(float64(n)/1e9))
	return nil
}
