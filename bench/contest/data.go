package contest

import (
	"fmt"
	"net"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/bench/rig"
)

// contestPasses is how often fetch reads what was produced.
const contestPasses = 6

// moving is a measure of producing or fetching.
type moving struct {
	rig.Shape
	name, topic string
	acks        int16
	set         []string // of the topic
	expands     float64  // how many times larger batches are when they are decompressed, 0 if they are not compressed
	speed, cpu  pairMetric
}

func newMoving(verb, suffix, rule string, s rig.Shape, aim float64) *moving {
	name := fmt.Sprintf("%s %s, %s%s", verb, rig.SizeName(s.Record), rig.Count(s.Partitions, "partition"), suffix)
	return &moving{
		Shape: s, name: name,
		topic: fmt.Sprintf("bench-%d-%d", s.Record, s.Partitions),
		speed: pairMetric{group: name, name: "throughput", unit: "MB/s", rule: rule, more: true},
		cpu:   pairMetric{group: name, name: "processor time", unit: "CPU-s/GB", rule: rule, aim: aim},
	}
}

// contestShapes are the layouts that are measured.
func contestShapes() []rig.Shape {
	return []rig.Shape{rig.NewShape(100, 1), rig.NewShape(100, 12), rig.NewShape(1024, 1), rig.NewShape(1024, 12)}
}

// produces lists the measures of producing. Their order changes from round to
// round, since Java gets faster as it runs.
func produces(round int) []*moving {
	var out []*moving
	both := []int16{1, -1}
	for _, s := range contestShapes() {
		for i := range both {
			acks := both[(i+round)%2]
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
	puts, durable := produces(c.round), durableProduces()
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
	defer x.p.Kill()
	if err := x.dataSteps(puts, durable); err != nil {
		return fmt.Errorf("%w\n%s", err, x.p.Stderr)
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
	peak, err := x.p.Status("VmHWM")
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
	if x.side == rig.Theirs {
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
	c, err := x.p.Dial(x.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	return fn(c)
}
