package contest

import (
	"fmt"
	"net"
	"slices"
	"time"

	"muster/bench/rig"
)

const consumerBeatName = "consumer heartbeats"

// newConsuming is a measure of a consumer group of so many members.
func newConsuming(members int) *rebalancing {
	return rebalancingOf(fmt.Sprintf("consumer group of %d", members), members, 3,
		"first heartbeat to all settled", "one joins, to all settled", "one leaves, to all settled")
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
	x, err := c.open(s, folder, append(rig.ConsumerIntervals(s.side), rig.NoDelay)...)
	if err != nil {
		return err
	}
	defer x.p.Kill()
	err = x.withConn(rig.FindCoordinator)
	for _, m := range wanted {
		if err == nil {
			err = x.consuming(m)
		}
	}
	if err == nil && c.wanted(consumerBeatName) {
		err = x.consumerBeats()
	}
	if err != nil {
		return fmt.Errorf("consumer groups: %w\n%s", err, x.p.Stderr)
	}
	return nil
}

// consuming measures several groups of a size, after one that does not count.
func (x *session) consuming(m *rebalancing) error {
	conns, err := x.Peers(x.p, m.members+1)
	if err != nil {
		return err
	}
	defer rig.CloseAll(conns)
	if err := rig.Together(conns, func(_ int, c net.Conn) error { return rig.Greet(c) }); err != nil {
		return err
	}
	// With one more member everybody has two partitions; before that two have three.
	topic, partitions := fmt.Sprintf("bench-consumers-%d", m.members), 2*(m.members+1)
	if err := x.NewTopic(conns[0], topic, partitions); err != nil {
		return err
	}
	one := func(i int) ([3]float64, error) {
		return consumersComeAndGo(rig.NewConsumers(fmt.Sprintf("%s-%d", topic, i), topic, conns), partitions)
	}
	if err := x.Await(func() error { _, err := one(-1); return err }); err != nil { // to warm up
		return err
	}
	return x.repeat(m, max(3, min(300/m.members, x.o.timesLimit)), one)
}

// consumersComeAndGo forms a group of all members but the last, has that join and
// leave, and returns how long each took. Then all leave.
func consumersComeAndGo(all []*rig.ConsumerMember, partitions int) (took [3]float64, err error) {
	members, late := all[:len(all)-1], all[len(all)-1]
	for i, step := range []func() (time.Time, error){
		func() (time.Time, error) { return rig.Settle(members, partitions) },
		func() (time.Time, error) { return rig.Settle(all, partitions) },
		func() (time.Time, error) {
			if err := late.Leave(); err != nil {
				return time.Time{}, err
			}
			return rig.Settle(members, partitions)
		},
	} {
		began := time.Now()
		at, err := step()
		if err != nil {
			return took, err
		}
		took[i] = rig.Millis(at.Sub(began))
	}
	for _, m := range slices.Backward(members) {
		if err := m.Leave(); err != nil {
			return took, err
		}
	}
	return took, nil
}

// consumerBeats beats for consumer groups of one member, who has nothing to say.
func (x *session) consumerBeats() error {
	conns, err := x.Peers(x.p, 1)
	if err != nil {
		return err
	}
	defer rig.CloseAll(conns)
	frames, err := x.ConsumerFrames(conns[0], x.o.beating)
	if err != nil {
		return err
	}
	return x.beats(newRate(consumerBeatName, "heartbeats of the consumer protocol", ""), frames, true)
}
