package main

import (
	"fmt"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// contestBatch is how large a batch is at most: what a Java producer that is
// busy sends by default.
const contestBatch = 16 << 10

// contestPasses is how often fetch reads what was produced.
const contestPasses = 6

// newShape says how records of a size are laid out.
func newShape(record, partitions int) shape {
	s := shape{partitions: partitions, record: record, records: contestBatch / record}
	for len(newBatch(s.records, record, 0)) > contestBatch {
		s.records--
	}
	return s
}

// moving is a measure of producing or fetching.
type moving struct {
	shape
	name, topic string
	acks        int16
	set         []string // of the topic
	speed, cpu  pairMetric
}

func newMoving(verb, suffix, rule string, s shape, aim float64) *moving {
	name := fmt.Sprintf("%s %s, %s%s", verb, sizeName(s.record), count(s.partitions, "partition"), suffix)
	return &moving{
		shape: s, name: name,
		topic: fmt.Sprintf("bench-%d-%d", s.record, s.partitions),
		speed: pairMetric{group: name, name: "throughput", unit: "MB/s", rule: rule, more: true},
		cpu:   pairMetric{group: name, name: "processor time", unit: "CPU-s/GB", rule: rule, aim: aim},
	}
}

func sizeName(n int) string {
	if n%1024 == 0 {
		return fmt.Sprintf("%d KB", n/1024)
	}
	return fmt.Sprintf("%d B", n)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// contestShapes are the layouts that are measured.
func contestShapes() []shape {
	return []shape{newShape(100, 1), newShape(100, 12), newShape(1024, 1), newShape(1024, 12)}
}

// produces lists the measures of producing. Those with acks=all come last, since
// fetch reads what they have produced.
func produces() []*moving {
	var out []*moving
	for _, acks := range []int16{1, -1} {
		for _, s := range contestShapes() {
			m := newMoving("produce", map[int16]string{1: ", acks=1", -1: ", acks=all"}[acks], fromCache, s, 3)
			m.acks = acks
			m.topic += fmt.Sprintf("-%d", acks+1)
			out = append(out, m)
		}
	}
	return out
}

// durableProduces lists the same with every append on disk.
func durableProduces() []*moving {
	var out []*moving
	for _, s := range contestShapes() {
		m := newMoving("durable produce", ", acks=all", onDisk, s, 3)
		m.acks = -1
		m.topic += "-disk"
		out = append(out, m)
	}
	return out
}

const underLoad = "memory under load"

// data measures produce, fetch and latency on one broker.
func (c *contest) data(s *subject, folder string) error {
	puts, durable := produces(), durableProduces()
	names := []string{underLoad, latencyCache.name, latencyDisk.name}
	for _, m := range append(puts, durable...) {
		names = append(names, m.name, fetchOf(m).name)
	}
	if !c.anyWanted(names...) {
		return nil
	}
	x, err := c.open(s, folder)
	if err != nil {
		return err
	}
	defer x.p.kill()
	if err := x.dataSteps(puts, durable); err != nil {
		return fmt.Errorf("%w\n%s", err, x.p.stderr)
	}
	return nil
}

func (x *session) dataSteps(puts, durable []*moving) error {
	if err := x.warmUp(); err != nil {
		return err
	}
	for _, m := range puts {
		if err := x.produceAndFetch(m); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	peak, err := x.p.status("VmHWM")
	if err != nil {
		return err
	}
	x.note(pairMetric{group: underLoad, name: "highest while it produced and fetched", unit: "MB"}, peak)
	if err := x.latency(latencyCache); err != nil {
		return fmt.Errorf("%s: %w", latencyCache.name, err)
	}
	if err := x.makeDurable(durable); err != nil {
		return err
	}
	for _, m := range durable {
		if err := x.produceAndFetch(m); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	if err := x.latency(latencyDisk); err != nil {
		return fmt.Errorf("%s: %w", latencyDisk.name, err)
	}
	return nil
}

// makeDurable has every append on disk before its answer, from now on: muster by
// its default, Kafka by a setting of the topics.
func (x *session) makeDurable(later []*moving) error {
	if x.side == theirs {
		for _, m := range later {
			m.set = append(m.set, flushEach)
		}
		return nil
	}
	return x.withConn(func(c net.Conn) error { return alter(c, kmsg.ConfigResourceTypeBroker, "", pageRule+"=true") })
}

// flushEach has Kafka sync after each append.
const flushEach = "flush.messages=1"

// withConn runs fn with a connection of its own.
func (x *session) withConn(fn func(net.Conn) error) error {
	c, err := x.p.dial(x.ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}

// warmUp produces and fetches in all layouts for a while, which counts for
// nothing. Java compiles what is used often, and that takes a while.
func (x *session) warmUp() error {
	for _, s := range contestShapes() {
		m := newMoving("warm", "", "", s, 0)
		l := s.load("warm-"+m.topic, -1)
		err := x.withConn(func(c net.Conn) error { return x.newTopic(c, "warm-"+m.topic, s.partitions) })
		if err != nil {
			return err
		}
		conns, err := x.connect(x.p, connections)
		if err != nil {
			return err
		}
		defer closeAll(conns) //nolint:gocritic // There are four of them.
		sent, each := 0, max(2, int(2e6)/l.bytes())
		for end := time.Now().Add(x.o.warm); time.Now().Before(end) && sent*l.bytes() < int(x.size*0.5e9); sent += each {
			if err := l.pump(conns, each, true, produced(s)); err != nil {
				return err
			}
		}
		f := newFetcher(conns[0], "warm-"+m.topic, l, int64(sent*s.records))
		for end := time.Now().Add(x.o.warm / 2); time.Now().Before(end); {
			if err := f.pass(); err != nil {
				return err
			}
		}
	}
	return x.flush()
}

// produced checks an answer to Produce version 12.
func produced(s shape) func([]byte) error {
	return func(body []byte) error {
		if len(body) == 0 || body[0] != 0 {
			return fmt.Errorf("tags in the header of a Produce answer")
		}
		return checkProduced(body[1:], 12, s.partitions)
	}
}

// fetchOf is the measure of fetching what another has produced.
func fetchOf(m *moving) *moving {
	f := newMoving("fetch", "", "", m.shape, 2)
	f.topic = m.topic
	return f
}

func (x *session) produceAndFetch(m *moving) error {
	f := fetchOf(m)
	fetched := m.acks == -1 && len(m.set) == 0 && m.speed.rule == fromCache && x.wanted(f.name)
	if !x.wanted(m.name) && !fetched {
		return nil
	}
	l := m.load(m.topic, m.acks)
	conns, err := x.connect(x.p, connections)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	if err := x.newTopic(conns[0], m.topic, m.partitions, m.set...); err != nil {
		return err
	}
	n, err := x.produce(m, l, conns)
	if err != nil {
		return err
	}
	end := int64(n * m.records)
	if err := checkEnds(conns[0], m.topic, m.partitions, end); err != nil {
		return err
	}
	if err := x.flush(); err != nil {
		return err
	}
	if !fetched {
		return nil
	}
	return x.fetch(f, newFetcher(conns[0], m.topic, l, end))
}

// produce sends a little to warm up, which also shows how much there is time
// for, and then what is measured. It returns how many requests that was in all.
func (x *session) produce(m *moving, l *load, conns []net.Conn) (int, error) {
	n := max(int(x.size*1e9)/l.bytes(), 2*connections*inFlight)
	warm, began := max(n/20, 1), time.Now()
	if err := l.pump(conns, warm, true, produced(m.shape)); err != nil {
		return 0, err
	}
	affordable := float64(warm) * x.o.budget.Seconds() / time.Since(began).Seconds()
	n = int(math.Min(float64(n), math.Max(affordable, 2*connections*inFlight)))
	err := x.move(m, func() (int64, error) {
		return int64(n * l.bytes()), l.pump(conns, n, true, produced(m.shape))
	})
	return warm + n, err
}

// fetch reads everything: once to look at every batch, and then to be measured.
func (x *session) fetch(m *moving, f *fetcher) error {
	f.verify = true
	if err := f.pass(); err != nil {
		return err
	}
	f.verify, f.read = false, 0
	return x.move(m, func() (int64, error) {
		for range contestPasses {
			if err := f.pass(); err != nil {
				return 0, err
			}
		}
		return f.read, nil
	})
}

// move runs fn, which moves some bytes, and notes what it cost. What muster does
// in the background after its last answer counts, what Kafka does so does not.
func (x *session) move(m *moving, fn func() (int64, error)) error {
	before, err := x.p.cpu()
	if err != nil {
		return err
	}
	began := time.Now()
	var n int64
	var took time.Duration
	err = x.profile(x.p, m.name, func() error {
		n, err = fn()
		took = time.Since(began)
		return err
	})
	if err != nil {
		return err
	}
	after, err := x.p.cpu()
	if x.side == ours {
		after, err = x.settle(x.p)
	}
	if err != nil {
		return err
	}
	x.note(m.speed, float64(n)/1e6/took.Seconds())
	x.note(m.cpu, after.sub(before).total().Seconds()/(float64(n)/1e9))
	return nil
}

// flush puts what was written on disk, so that this is no burden on what is
// measured next.
func (x *session) flush() error {
	return filepath.WalkDir(x.data, func(name string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) || err == nil && (d.IsDir() || filepath.Ext(name) != ".log") {
			return nil
		}
		if err != nil {
			return err
		}
		f, err := os.Open(name)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }() // It was only read.
		return datasync(f)
	})
}
