package contest

import (
	"fmt"
	"net"
	"time"

	"muster/bench/rig"
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
	x, err := c.open(s, folder, rig.NoDelay)
	if err != nil {
		return err
	}
	defer x.p.Kill()
	if err := x.coordinatorSteps(); err != nil {
		return fmt.Errorf("%w\n%s", err, x.p.Stderr)
	}
	return nil
}

func (x *session) coordinatorSteps() error {
	if err := x.withConn(rig.FindCoordinator); err != nil {
		return err
	}
	conns, err := x.Peers(x.p, x.Group.Connections)
	if err != nil {
		return err
	}
	defer rig.CloseAll(conns)
	if err := x.NewTopic(conns[0], rig.GroupTopic, len(conns)); err != nil {
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
	for _, m := range committings("", "", x.Group.Connections) {
		for i := range x.Group.Connections {
			err := x.Await(func() error { return rig.Commit(c, m.group(i), 0, 1) })
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
	conns, err := x.Peers(x.p, wanted[len(wanted)-1].members+1)
	if err != nil {
		return err
	}
	defer rig.CloseAll(conns)
	if err := rig.Together(conns, func(_ int, c net.Conn) error { return rig.Greet(c) }); err != nil {
		return err
	}
	for i, end := 0, time.Now().Add(x.o.warm); time.Now().Before(end); i++ { // to warm up
		members := rig.NewMembers(fmt.Sprintf("warm-%d", i), conns[:min(100, len(conns)-1)])
		if err := x.Await(func() error { return rig.Form(members) }); err != nil {
			return err
		}
		if err := rig.ComeAndGo(members, &rig.GroupMember{Conn: conns[len(members)], Roster: members[0].Roster}); err != nil {
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
		members := rig.NewMembers(fmt.Sprintf("%s-%d", m.name, i), conns[:m.members])
		late := &rig.GroupMember{Conn: conns[m.members], Roster: members[0].Roster}
		for j, step := range []func() error{
			func() error { return rig.Form(members) },
			func() error { return rig.Come(members, late) },
			func() error { return rig.Leave(members, late) },
		} {
			began := time.Now()
			if err := step(); err != nil {
				return took, err
			}
			took[j] = rig.Millis(time.Since(began))
		}
		return took, rig.CheckStable(conns[0], members[0].Roster.Group, m.members)
	})
}

// repeat notes the medians over some groups of a size: of how long each took to form, to
// get a member and to lose it.
func (x *session) repeat(m *rebalancing, times int, one func(i int) (took [3]float64, err error)) error {
	var took [3][]float64
	before, err := x.p.CPU()
	if err != nil {
		return err
	}
	err = x.Profile(x.p, m.name, func() error {
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
	after, err := x.p.CPU()
	if err != nil {
		return err
	}
	x.note(m.form, rig.Median(took[0]))
	x.note(m.come, rig.Median(took[1]))
	x.note(m.leave, rig.Median(took[2]))
	x.note(m.cpu, rig.Millis(after.Sub(before).Total())/float64(times))
	return nil
}

// heartbeats beats for groups of one member, with one heartbeat in flight on each
// connection.
func (x *session) heartbeats([]net.Conn) error {
	if !x.wanted(beatName) {
		return nil
	}
	crowd, err := x.Gather(x.p, x.o.beating)
	if err != nil {
		return err
	}
	return x.beats(newRate(beatName, "heartbeats", ""), crowd.Frames(), false)
}

// beats sends heartbeats, of a flexible version or not, again and again.
func (x *session) beats(r rate, frames [][]byte, flexible bool) error {
	beats, err := x.NewBeater(x.p, frames)
	if err != nil {
		return err
	}
	defer rig.CloseAll(beats.Conns)
	beats.Flexible = flexible
	if _, err := beats.Beat(x.o.warm / 2); err != nil {
		return err
	}
	return x.count(r, func() (int, error) { return beats.Beat(x.Group.Time) })
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
	x.note(r.speed, float64(n)/s.Wall.Seconds())
	x.note(r.cpu, s.CPU.Seconds()/float64(n)*1e6)
	return nil
}
