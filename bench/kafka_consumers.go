package main

import (
	"fmt"
	"net"
	"slices"
	"time"
)

const consumerBeatName = "consumer heartbeats"

// newConsuming is a measure of a consumer group of so many members.
func newConsuming(members int) *rebalancing {
	name := fmt.Sprintf("consumer group of %d", members)
	r := &rebalancing{
		name: name, members: members,
		form:  pairMetric{group: name, name: "first heartbeat to all settled", unit: "ms", rule: fromCache},
		come:  pairMetric{group: name, name: "one joins, to all settled", unit: "ms", rule: fromCache},
		leave: pairMetric{group: name, name: "one leaves, to all settled", unit: "ms", rule: fromCache},
		cpu:   pairMetric{group: name, name: "all three, processor time", unit: "CPU-ms", rule: fromCache},
	}
	if members == 1000 {
		r.form.aim, r.come.aim, r.leave.aim = 3, 3, 3
	}
	return r
}

// consumers measures groups of the consumer protocol (KIP-848) on one broker, whose
// intervals are short.
func (c *contest) consumers(s *subject, folder string) error {
	var wanted []*rebalancing
	for _, n := range c.o.members {
		if m := newConsuming(n); c.wanted(m.name) {
			wanted = append(wanted, m)
		}
	}
	if len(wanted) == 0 && !c.wanted(consumerBeatName) {
		return nil
	}
	x, err := c.open(s, folder, append(consumerIntervals(s.side), noDelay)...)
	if err != nil {
		return err
	}
	defer x.p.kill()
	err = x.withConn(findCoordinator)
	for _, m := range wanted {
		if err == nil {
			err = x.consuming(m)
		}
	}
	if err == nil && c.wanted(consumerBeatName) {
		err = x.consumerBeats()
	}
	if err != nil {
		return fmt.Errorf("consumer groups: %w\n%s", err, x.p.stderr)
	}
	return nil
}

// newConsumers makes members of a group that have not joined.
func newConsumers(group, topic string, conns []net.Conn) []*consumerMember {
	var members []*consumerMember
	for i, c := range conns {
		members = append(members, &consumerMember{conn: c, group: group, topic: topic, id: fmt.Sprintf("%s-%d", group, i)})
	}
	return members
}

// consuming notes the median over several groups of a size, after one that does not
// count.
func (x *session) consuming(m *rebalancing) error {
	conns, err := x.peers(x.p, m.members+1)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	if err := together(conns, func(_ int, c net.Conn) error { return greet(c) }); err != nil {
		return err
	}
	// With one more member everybody has two partitions; before that two have three.
	topic, partitions := fmt.Sprintf("bench-consumers-%d", m.members), 2*(m.members+1)
	if err := x.newTopic(conns[0], topic, partitions); err != nil {
		return err
	}
	one := func(i int) (took [3]float64, err error) {
		all := newConsumers(fmt.Sprintf("%s-%d", topic, i), topic, conns)
		return consumersComeAndGo(all, partitions)
	}
	if err := x.await(func() error { _, err := one(0); return err }); err != nil { // to warm up
		return err
	}
	times := max(3, min(300/m.members, x.o.timesLimit))
	var took [3][]float64
	before, err := x.p.cpu()
	if err != nil {
		return err
	}
	err = x.profile(x.p, m.name, func() error {
		for i := range times {
			t, err := one(i + 1)
			if err != nil {
				return err
			}
			for j := range took {
				took[j] = append(took[j], t[j])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	after, err := x.p.cpu()
	if err != nil {
		return err
	}
	x.note(m.form, median(took[0]))
	x.note(m.come, median(took[1]))
	x.note(m.leave, median(took[2]))
	x.note(m.cpu, millis(after.sub(before).total())/float64(times))
	return nil
}

// consumersComeAndGo forms a group of all members but the last, has that join and
// leave, and returns how long each took. Then all leave.
func consumersComeAndGo(all []*consumerMember, partitions int) (took [3]float64, err error) {
	members, late := all[:len(all)-1], all[len(all)-1]
	for i, step := range []func() (time.Time, error){
		func() (time.Time, error) { return settle(members, partitions) },
		func() (time.Time, error) { return settle(all, partitions) },
		func() (time.Time, error) {
			if err := late.leave(); err != nil {
				return time.Time{}, err
			}
			return settle(members, partitions)
		},
	} {
		began := time.Now()
		at, err := step()
		if err != nil {
			return took, err
		}
		took[i] = millis(at.Sub(began))
	}
	for _, m := range slices.Backward(members) {
		if err := m.leave(); err != nil {
			return took, err
		}
	}
	return took, nil
}

// consumerBeats beats for consumer groups of one member, who has nothing to say.
func (x *session) consumerBeats() error {
	conns, err := x.peers(x.p, 1)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	frames, err := x.consumerFrames(conns[0], x.o.beating)
	if err != nil {
		return err
	}
	beats, err := x.newBeater(x.p, frames)
	if err != nil {
		return err
	}
	defer closeAll(beats.conns)
	beats.flexible = true
	if _, err := beats.beat(x.o.warm / 2); err != nil {
		return err
	}
	return x.count(newRate(consumerBeatName, "heartbeats of the consumer protocol", ""), func() (int, error) { return beats.beat(x.group.time) })
}

// consumerFrames makes consumer groups of one member each, and returns the heartbeat
// of each.
func (b *bench) consumerFrames(c net.Conn, groups int) ([][]byte, error) {
	const topic = "bench-consumers"
	if err := b.newTopic(c, topic, 1); err != nil {
		return nil, err
	}
	var frames [][]byte
	for i := range groups {
		m := newConsumers(fmt.Sprintf("idle-%d", i), topic, []net.Conn{c})
		if err := b.await(func() error { _, err := settle(m, 1); return err }); err != nil {
			return nil, err
		}
		frames = append(frames, requestFrame(m[0].heartbeat(), 0))
	}
	return frames, nil
}
