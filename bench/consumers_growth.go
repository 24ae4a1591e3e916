package main

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
)

// settleMeasure is a measure of a consumer group of so many members, with twice as
// many partitions.
type settleMeasure struct {
	name             string
	members          int
	total, each, cpu metric
	heap             metric
}

func newSettleMeasure(members int) *settleMeasure {
	name := fmt.Sprintf("groups settle %d", members)
	return &settleMeasure{
		name: name, members: members,
		total: metric{name, fmt.Sprintf("first heartbeat to all settled, %s partitions", thousands(2*members)), "ms", noAim},
		each:  metric{name, "per member", "µs", noAim},
		cpu:   metric{name, "per member, processor time", "CPU-µs", noAim},
		heap:  metric{name, "heap per member", "KB", noAim},
	}
}

// consumerGrowth measures whether a member of a large consumer group costs more than
// one of a group of a tenth of its size. The broker is the package inside this program,
// since it must be told to collect its garbage.
func (b *bench) consumerGrowth() error {
	most := slices.Max(b.group.members)
	few, many := newSettleMeasure(max(2, most/10)), newSettleMeasure(most)
	if !b.wanted(few.name) && !b.wanted(many.name) {
		return nil
	}
	for range b.rounds {
		for _, m := range []*settleMeasure{few, many} {
			if !b.wanted(m.name) {
				continue
			}
			if err := b.inScratch(func(folder string) error { return b.settleRound(m, filepath.Join(folder, "broker")) }); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	for _, c := range []struct {
		what      string
		few, many metric
	}{
		{"time per member to settle", few.each, many.each},
		{"processor time per member to settle", few.cpu, many.cpu},
		{"heap per member", few.heap, many.heap},
	} {
		name := fmt.Sprintf("%s, %s members against %s", c.what, thousands(many.members), thousands(few.members))
		b.compare(metric{"groups settle all", name, "times", noAim}, c.few, c.many)
	}
	return nil
}

// settleRound has one group of a new broker settle.
func (b *bench) settleRound(m *settleMeasure, data string) error {
	start := func(data string, set ...string) (*process, error) {
		return b.startEmbedded(data, append(set, consumerIntervals(ours)...)...)
	}
	p, err := b.startGroups(start, data)
	if err != nil {
		return err
	}
	defer p.kill()
	if err := b.warmUp(p, m.members); err != nil {
		return err
	}
	const topic = "bench-settle"
	if err := b.onePeer(p, func(c net.Conn) error { return createTopic(c, topic, 2*m.members) }); err != nil {
		return err
	}
	before, err := b.heap(p, "before settling")
	if err != nil {
		return err
	}
	conns, err := b.peers(p, m.members)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	s, err := b.spend(p, m.name, func() error {
		_, err := settle(newConsumers(m.name, topic, conns), 2*m.members)
		return err
	})
	if err != nil {
		return err
	}
	wall, used := s.micros(m.members)
	b.report.add(m.total, broker, wall*float64(m.members)/1000)
	b.report.add(m.each, broker, wall)
	b.report.add(m.cpu, broker, used)
	b.say("%s", b.report.line(m.total))
	closeAll(conns)
	after, err := b.heap(p, "settled")
	if err != nil {
		return err
	}
	b.report.add(m.heap, broker, after.sub(before).heap/float64(m.members))
	return p.stop()
}
