package contest

import (
	"fmt"
	"net"
	"time"

	"muster/bench/rig"
)

// Each side as it comes. What muster does here more than Kafka is to wait for the
// disk before it answers.
const (
	shippedProduce = "wild defaults produce"
	shippedWide    = "wild defaults partitions"
	shippedCommits = "wild defaults commits"
	shippedCreate  = "wild defaults create"
	shippedTail    = "wild defaults tail"
)

var shippedNames = []string{shippedProduce, shippedWide, shippedCommits, shippedCreate, shippedTail}

// smallRecord is the size of a small one.
const smallRecord = 100

func (x *session) shipped() error {
	if err := x.warm("wild-warm", rig.Shape{Partitions: rig.Partitions, Record: rig.RecordSize, Records: rig.BatchRecords}); err != nil {
		return fmt.Errorf("warm up: %w", err)
	}
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{shippedProduce, x.shippedProduce},
		{shippedCreate, x.createWide},
		{shippedWide, x.wide},
		{shippedCommits, x.shippedCommits},
		{shippedTail, x.besideWide},
	} {
		if !x.wanted(step.name) {
			continue
		}
		if err := step.run(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := x.flush(); err != nil {
			return err
		}
	}
	return nil
}

// shippedProduce sends batches of 64 KB to six partitions.
func (x *session) shippedProduce() error {
	m := wildMoving(shippedProduce, byDefault)
	m.topic, m.acks = "wild-produce", -1
	return x.produceThenFetch(m, nil, m.Load(m.topic, m.acks))
}

// wildMoving is a measure of moving batches of 64 KB in six partitions.
func wildMoving(name, rule string) *moving {
	return &moving{
		Shape: rig.Shape{Partitions: rig.Partitions, Record: rig.RecordSize, Records: rig.BatchRecords}, name: name,
		speed: pairMetric{group: name, name: "64 KB, 6 partitions, throughput", unit: "MB/s", rule: rule, more: true},
		cpu:   pairMetric{group: name, name: "64 KB, 6 partitions, processor time", unit: "CPU-s/GB", rule: rule},
	}
}

// createWide creates topics of many partitions, and appends the first record to each
// partition.
func (x *session) createWide() error {
	n := x.o.wild.partitions
	var created, appended []float64
	for i := range 3 {
		topic := fmt.Sprintf("wild-create-%d", i)
		l := rig.Shape{Partitions: n, Record: smallRecord, Records: 1}.Load(topic, -1)
		err := x.withConn(func(c net.Conn) error {
			began := time.Now()
			if err := x.NewTopic(c, topic, n); err != nil {
				return err
			}
			created, began = append(created, rig.Millis(time.Since(began))), time.Now()
			if err := l.Pump([]net.Conn{c}, 1, true, rig.Produced(l.Shape)); err != nil {
				return err
			}
			appended = append(appended, rig.Millis(time.Since(began)))
			return rig.CheckEnds(c, topic, n, 1)
		})
		if err != nil {
			return err
		}
	}
	metric := func(name string) pairMetric {
		return pairMetric{group: shippedCreate, name: name, unit: "ms", rule: byDefault}
	}
	x.note(metric(fmt.Sprintf("a topic of %s, until all are there", rig.Count(n, "partition"))), rig.Median(created))
	x.note(metric("the first record to each of them, in one request"), rig.Median(appended))
	return nil
}

// wide appends small records to many partitions, and as many to one.
func (x *session) wide() error {
	n := x.o.wild.partitions
	for _, m := range []struct {
		name, topic string
		rig.Shape
	}{
		{fmt.Sprintf("records, 1 to each of %d partitions in a request", n), "wild-wide", rig.Shape{Partitions: n, Record: smallRecord, Records: 1}},
		{fmt.Sprintf("records, %d to 1 partition in a request", n), "wild-narrow", rig.Shape{Partitions: 1, Record: smallRecord, Records: n}},
	} {
		if err := x.wideRequests(newRate(shippedWide, m.name, byDefault), m.topic, m.Shape); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	for _, m := range []struct {
		name, topic string
		partitions  int
	}{
		{fmt.Sprintf("requests of 1 record, to %d partitions in turn", n), "wild-turns", n},
		{"requests of 1 record, to 1 partition", "wild-one", 1},
	} {
		if err := x.singles(newRate(shippedWide, m.name, byDefault), m.topic, m.partitions); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// wideRequests counts the records of large requests.
func (x *session) wideRequests(r rate, topic string, s rig.Shape) error {
	conns, err := x.Connect(x.p, rig.Connections)
	if err != nil {
		return err
	}
	defer rig.CloseAll(conns)
	if err := x.NewTopic(conns[0], topic, s.Partitions); err != nil {
		return err
	}
	l := s.Load(topic, -1)
	warm, err := l.PumpFor(conns, x.o.warm/2)
	if err != nil {
		return err
	}
	sent := 0
	err = x.count(r, func() (int, error) {
		sent, err = l.PumpFor(conns, x.o.wild.time)
		return sent * s.Partitions * s.Records, err
	})
	if err != nil {
		return err
	}
	return rig.CheckEnds(conns[0], topic, s.Partitions, int64((warm+sent)*s.Records))
}

// appenders is how many connections send small requests, one at a time each.
const appenders = 16

// singles counts requests of one record each.
func (x *session) singles(r rate, topic string, partitions int) error {
	conns, err := x.Peers(x.p, appenders)
	if err != nil {
		return err
	}
	defer rig.CloseAll(conns)
	if err := x.NewTopic(conns[0], topic, partitions); err != nil {
		return err
	}
	frames := smallFrames(topic, partitions)
	warm, err := appendFor(conns, frames, x.o.warm/2)
	if err != nil {
		return err
	}
	sent := 0
	err = x.count(r, func() (int, error) {
		sent, err = appendFor(conns, frames, x.o.wild.time)
		return sent, err
	})
	if err != nil {
		return err
	}
	return x.AwaitSum(conns[0], topic, partitions, int64(warm+sent))
}

// smallFrames encodes a request with one record for each partition.
func smallFrames(topic string, partitions int) [][]byte {
	var frames [][]byte
	for i := range partitions {
		frames = append(frames, rig.Shape{Partitions: 1, Record: smallRecord, Records: 1}.LoadFor(topic, -1, []int32{int32(i)}).Frame)
	}
	return frames
}

// appendFor has each connection send one request after the other for a while, to
// partitions in turn, and returns how many were answered.
func appendFor(conns []net.Conn, frames [][]byte, d time.Duration) (int, error) {
	sent := make([]int, len(conns))
	end := time.Now().Add(d)
	check := rig.Produced(rig.Shape{Partitions: 1})
	err := rig.Together(conns, func(i int, c net.Conn) error {
		var buf []byte
		for sent[i] == 0 || time.Now().Before(end) {
			if _, err := c.Write(frames[(i+sent[i]*len(conns))%len(frames)]); err != nil {
				return err
			}
			_, body, err := rig.ReadFrame(c, buf)
			if err != nil {
				return err
			}
			buf = body
			if err := check(body); err != nil {
				return err
			}
			sent[i]++
		}
		return nil
	})
	total := 0
	for _, n := range sent {
		total += n
	}
	return total, err
}

// commitGroups is how many groups commit, from as many connections as append.
const commitGroups = 64

// shippedCommits has each connection commit for its groups in turn.
func (x *session) shippedCommits() error {
	if err := x.withConn(rig.FindCoordinator); err != nil {
		return err
	}
	conns, err := x.Peers(x.p, appenders)
	if err != nil {
		return err
	}
	defer rig.CloseAll(conns)
	if err := x.NewTopic(conns[0], rig.GroupTopic, commitGroups); err != nil {
		return err
	}
	group := func(i int) string { return fmt.Sprintf("wild-%03d", i) }
	for i := range commitGroups {
		if err := x.Await(func() error { return rig.Commit(conns[0], group(i), int32(i), 1) }); err != nil {
			return err
		}
	}
	if _, err := commitInTurn(conns, group, x.o.warm/2, 0); err != nil {
		return err
	}
	const first = 1 << 32
	var last []int64
	r := newRate(shippedCommits, fmt.Sprintf("%d groups, %d connections", commitGroups, appenders), byDefault)
	err = x.count(r, func() (n int, err error) {
		last, err = commitInTurn(conns, group, x.o.wild.time, first)
		for _, offset := range last {
			n += int(offset - first)
		}
		return n, err
	})
	if err != nil {
		return err
	}
	for i, offset := range last {
		if err := rig.CheckCommitted(conns[0], group(i), []int32{int32(i)}, func(int32) int64 { return offset }); err != nil {
			return err
		}
	}
	return nil
}

// commitInTurn commits for a while, the offsets that follow first, and returns the last
// one of each group.
func commitInTurn(conns []net.Conn, group func(int) string, d time.Duration, first int64) ([]int64, error) {
	last := make([]int64, commitGroups)
	end := time.Now().Add(d)
	err := rig.Together(conns, func(i int, c net.Conn) error {
		var all []*committer
		for g := i; g < commitGroups; g += len(conns) {
			all = append(all, newCommitter(group(g), int32(g)))
			last[g] = first
		}
		for n := 0; n < len(all) || time.Now().Before(end); n++ {
			g := i + n%len(all)*len(conns)
			last[g]++
			if err := all[n%len(all)].commit(c, last[g]); err != nil {
				return err
			}
		}
		return nil
	})
	return last, err
}
