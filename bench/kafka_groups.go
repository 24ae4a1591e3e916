package main

import (
	"fmt"
	"net"
	"time"
)

// rebalancing is a measure with so many members.
type rebalancing struct {
	name                   string
	members                int
	form, come, leave, cpu pairMetric
}

func newRebalancing(members int) *rebalancing {
	return rebalancingOf(fmt.Sprintf("group of %d", members), members, 5,
		"first join to last assignment", "one joins, all others rejoin", "one leaves, all others rejoin")
}

// rebalancingOf makes a measure of a group that forms, gets a member, and loses it. The
// aim is for a group of 1,000.
func rebalancingOf(name string, members int, aim float64, form, come, leave string) *rebalancing {
	metric := func(what, unit string) pairMetric {
		return pairMetric{group: name, name: what, unit: unit, rule: fromCache}
	}
	r := &rebalancing{
		name: name, members: members,
		form: metric(form, "ms"), come: metric(come, "ms"), leave: metric(leave, "ms"), cpu: metric("all three, processor time", "CPU-ms"),
	}
	if members == 1000 {
		r.form.aim, r.come.aim, r.leave.aim = aim, aim, aim
	}
	return r
}

// rate is a measure of how many requests are answered.
type rate struct {
	name       string
	speed, cpu pairMetric
}

func newRate(name, what, rule string) rate {
	return rate{
		name:  name,
		speed: pairMetric{group: name, name: what, unit: "1/s", rule: rule, more: true},
		cpu:   pairMetric{group: name, name: what + ", processor time", unit: "CPU-s/million", rule: rule},
	}
}

const beatName = "heartbeats"

// coordinator measures consumer groups on one broker.
func (c *contest) coordinator(s *subject, folder string) error {
	names := []string{beatName, commitName, durableCommitName}
	for _, n := range c.o.members {
		names = append(names, newRebalancing(n).name)
	}
	if !c.anyWanted(names...) {
		return nil
	}
	x, err := c.open(s, folder, noDelay)
	if err != nil {
		return err
	}
	defer x.p.kill()
	if err := x.coordinatorSteps(); err != nil {
		return fmt.Errorf("%w\n%s", err, x.p.stderr)
	}
	return nil
}

func (x *session) coordinatorSteps() error {
	if err := x.withConn(findCoordinator); err != nil {
		return err
	}
	conns, err := x.peers(x.p, x.group.connections)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	if err := x.newTopic(conns[0], groupTopic, len(conns)); err != nil {
		return err
	}
	if err := x.loaded(conns[0]); err != nil {
		return err
	}
	for _, step := range []func([]net.Conn) error{x.rebalances, x.heartbeats, x.commits} {
		if err := step(conns); err != nil {
			return err
		}
	}
	return nil
}

// loaded waits until the coordinator answers for each of the groups that commit,
// and so for most partitions of __consumer_offsets.
func (x *session) loaded(c net.Conn) error {
	for _, m := range committings("", "", x.group.connections) {
		for i := range x.group.connections {
			err := x.await(func() error { return commit(c, m.group(i), 0, 1) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// rebalances forms groups, and lets one more member come and go.
func (x *session) rebalances([]net.Conn) error {
	var wanted []*rebalancing
	for _, n := range x.o.members {
		if m := newRebalancing(n); x.wanted(m.name) {
			wanted = append(wanted, m)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	conns, err := x.peers(x.p, wanted[len(wanted)-1].members+1)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	if err := together(conns, func(_ int, c net.Conn) error { return greet(c) }); err != nil {
		return err
	}
	for i, end := 0, time.Now().Add(x.o.warm); time.Now().Before(end); i++ { // to warm up
		members := newMembers(fmt.Sprintf("warm-%d", i), conns[:min(100, len(conns)-1)])
		if err := x.await(func() error { return form(members) }); err != nil {
			return err
		}
		if err := comeAndGo(members, &groupMember{conn: conns[len(members)], roster: members[0].roster}); err != nil {
			return err
		}
	}
	for _, m := range wanted {
		if err := x.rebalance(m, conns); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// rebalance measures several groups of a size.
func (x *session) rebalance(m *rebalancing, conns []net.Conn) error {
	return x.repeat(m, max(3, min(1000/m.members, x.o.timesLimit)), func(i int) (took [3]float64, err error) {
		members := newMembers(fmt.Sprintf("%s-%d", m.name, i), conns[:m.members])
		late := &groupMember{conn: conns[m.members], roster: members[0].roster}
		for j, step := range []func() error{
			func() error { return form(members) },
			func() error { return come(members, late) },
			func() error { return leave(members, late) },
		} {
			began := time.Now()
			if err := step(); err != nil {
				return took, err
			}
			took[j] = millis(time.Since(began))
		}
		return took, checkStable(conns[0], members[0].roster.group, m.members)
	})
}

// repeat notes the medians over some groups of a size: of how long each took to form, to
// get a member and to lose it.
func (x *session) repeat(m *rebalancing, times int, one func(i int) (took [3]float64, err error)) error {
	var took [3][]float64
	before, err := x.p.cpu()
	if err != nil {
		return err
	}
	err = x.profile(x.p, m.name, func() error {
		for i := range times {
			t, err := one(i)
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

// heartbeats beats for groups of one member, with one heartbeat in flight on each
// connection.
func (x *session) heartbeats([]net.Conn) error {
	if !x.wanted(beatName) {
		return nil
	}
	crowd, err := x.gather(x.p, x.o.beating)
	if err != nil {
		return err
	}
	return x.beats(newRate(beatName, "heartbeats", ""), crowd.frames(), false)
}

// beats sends heartbeats, of a flexible version or not, again and again.
func (x *session) beats(r rate, frames [][]byte, flexible bool) error {
	beats, err := x.newBeater(x.p, frames)
	if err != nil {
		return err
	}
	defer closeAll(beats.conns)
	beats.flexible = flexible
	if _, err := beats.beat(x.o.warm / 2); err != nil {
		return err
	}
	return x.count(r, func() (int, error) { return beats.beat(x.group.time) })
}

// count runs fn, which sends so many requests, and notes what they cost.
func (x *session) count(r rate, fn func() (int, error)) error {
	var n int
	s, err := x.cost(r.speed.title(), func() (err error) {
		n, err = fn()
		return err
	})
	if err != nil {
		return err
	}
	x.note(r.speed, float64(n)/s.wall.Seconds())
	x.note(r.cpu, s.cpu.Seconds()/float64(n)*1e6)
	return nil
}
