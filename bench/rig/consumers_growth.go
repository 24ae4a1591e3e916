package rig

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
		total: metric{name, fmt.Sprintf("first heartbeat to all settled, %s partitions", Thousands(2*members)), "ms", noAim},
		each:  metric{name, "per member", "µs", noAim},
		cpu:   metric{name, "per member, processor time", "CPU-µs", noAim},
		heap:  metric{name, "heap per member", "KB", noAim},
	}
}

// consumerGrowth measures whether a member of a large consumer group costs more than
// one of a group of a tenth of its size. The broker is the package inside this program,
// since it must be told to collect its garbage.
func (b *Bench) consumerGrowth() error {
	most := slices.Max(b.Group.members)
	few, many := newSettleMeasure(max(2, most/10)), newSettleMeasure(most)
	if !b.Wanted(few.name) && !b.Wanted(many.name) {
		return nil
	}
	for range b.Rounds {
		for _, m := range []*settleMeasure{few, many} {
			if !b.Wanted(m.name) {
				continue
			}
			if err := b.InScratch(func(folder string) error { return b.settleRound(m, filepath.Join(folder, "broker")) }); err != nil {
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
		name := fmt.Sprintf("%s, %s members against %s", c.what, Thousands(many.members), Thousands(few.members))
		b.compare(metric{"groups settle all", name, "times", noAim}, c.few, c.many)
	}
	return nil
}

// settleRound has one group of a new broker settle.
func (b *Bench) settleRound(m *settleMeasure, data string) error {
	start := func(data string, set ...string) (*Process, error) {
		return b.startEmbedded(data, append(set, ConsumerIntervals(Ours)...)...)
	}
	p, err := b.startGroups(start, data)
	if err != nil {
		return err
	}
	defer p.Kill()
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
	conns, err := b.Peers(p, m.members)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	s, err := b.spend(p, m.name, func() error {
		_, err := Settle(NewConsumers(m.name, topic, conns), 2*m.members)
		return err
	})
	if err != nil {
		return err
	}
	wall, used := s.micros(m.members)
	b.Report.add(m.total, broker, wall*float64(m.members)/1000)
	b.Report.add(m.each, broker, wall)
	b.Report.add(m.cpu, broker, used)
	b.Say("%s", b.Report.line(m.total))
	CloseAll(conns)
	after, err := b.heap(p, "settled")
	if err != nil {
		return err
	}
	b.Report.add(m.heap, broker, after.sub(before).heap/float64(m.members))
	return p.Stop()
}
