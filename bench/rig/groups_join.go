package rig

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
)

// joinMeasure is a measure with so many members.
type joinMeasure struct {
	name                            string
	members                         int
	total, each, cpu                metric // of forming the group
	againTotal, againEach, againCPU metric // of everybody rejoining it
}

func newJoinMeasure(members int) *joinMeasure {
	name := fmt.Sprintf("groups join %d", members)
	return &joinMeasure{
		name: name, members: members,
		total:      metric{name, "first join to last assignment", "ms", noAim},
		each:       metric{name, "per member", "µs", noAim},
		cpu:        metric{name, "per member, processor time", "CPU-µs", noAim},
		againTotal: metric{name, "one joins or leaves, all others rejoin", "ms", noAim},
		againEach:  metric{name, "rejoin per member", "µs", noAim},
		againCPU:   metric{name, "rejoin per member, processor time", "CPU-µs", noAim},
	}
}

// From this size on the time per member should stay the same: smaller groups
// mostly wait.
const flatFrom = 100

// joins measures how long groups take to form, and to form again.
func (b *Bench) joins() error {
	var wanted []*joinMeasure
	for _, n := range b.Group.members {
		if m := newJoinMeasure(n); b.Wanted(m.name) {
			wanted = append(wanted, m)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	err := b.InScratch(func(folder string) error { return b.joinRounds(folder, wanted) })
	if err != nil {
		return fmt.Errorf("groups join: %w", err)
	}
	b.compareJoins(wanted)
	return nil
}

func (b *Bench) joinRounds(folder string, wanted []*joinMeasure) error {
	p, err := b.startGroups(b.StartBroker, filepath.Join(folder, "broker"))
	if err != nil {
		return err
	}
	defer p.Kill()
	conns, err := b.Peers(p, wanted[len(wanted)-1].members+1)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	if err := Together(conns, func(_ int, c net.Conn) error { return Greet(c) }); err != nil { // to warm up
		return err
	}
	for round := range b.Rounds {
		for _, m := range wanted {
			if err := b.joinRound(p, m, round, conns); err != nil {
				return fmt.Errorf("%d members: %w\n%s", m.members, err, p.Stderr)
			}
		}
	}
	for _, m := range wanted {
		b.Say("%s", b.Report.line(m.each))
	}
	CloseAll(conns)
	return p.Stop()
}

// joinRound forms some groups of a size, and lets the last one form again.
func (b *Bench) joinRound(p *Process, m *joinMeasure, round int, conns []net.Conn) error {
	var members []*GroupMember
	times := max(1, min(4000/m.members, 200))
	s, err := b.spend(p, m.name, func() error {
		for i := range times {
			members = NewMembers(fmt.Sprintf("%s-%d-%d", m.name, round, i), conns[:m.members])
			if err := Form(members); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	m.note(b, broker, s, times, m.total, m.each, m.cpu)
	if err := CheckStable(conns[0], members[0].Roster.Group, m.members); err != nil {
		return err
	}
	late := &GroupMember{Conn: conns[m.members], Roster: members[0].Roster}
	if s, err = b.spend(p, m.name+" again", func() error {
		for range times {
			if err := ComeAndGo(members, late); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	m.note(b, broker, s, 2*times, m.againTotal, m.againEach, m.againCPU)
	if err := CheckStable(conns[0], members[0].Roster.Group, m.members); err != nil {
		return err
	}
	return b.meet(m, times)
}

func (m *joinMeasure) note(b *Bench, who Side, s Spent, times int, total, each, cpu metric) {
	wall, used := s.micros(times * m.members)
	b.Report.add(total, who, wall*float64(m.members)/1000)
	b.Report.add(each, who, wall)
	b.Report.add(cpu, who, used)
}

// meet does with a bare program what is left of forming a group, and of forming
// it again, without the group: three requests of each member, of which the last
// two are answered when all have come.
func (b *Bench) meet(m *joinMeasure, times int) error {
	p, err := b.startBare("_meet", "100", fmt.Sprint(m.members))
	if err != nil {
		return err
	}
	defer p.Kill()
	conns, err := b.Peers(p, m.members)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	member := &GroupMember{Roster: &roster{Group: m.name}, id: "bench-00000000-0000-0000-0000-000000000000"}
	frame := RequestFrame(member.joinRequest(), 0)
	exchange := func(_ int, c net.Conn) error {
		if _, err := c.Write(frame); err != nil {
			return err
		}
		_, _, err := ReadFrame(c, nil)
		return err
	}
	form := func() error {
		if err := Together(conns, exchange); err != nil {
			return err
		}
		return Together(conns, func(i int, c net.Conn) error {
			if err := exchange(i, c); err != nil {
				return err
			}
			return exchange(i, c)
		})
	}
	if err := form(); err != nil { // to warm up
		return err
	}
	s, err := b.spend(p, "", func() error {
		for range times {
			if err := form(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	m.note(b, bare, s, times, m.total, m.each, m.cpu)
	m.note(b, bare, s, times, m.againTotal, m.againEach, m.againCPU)
	return p.Stop()
}

func NewMembers(group string, conns []net.Conn) []*GroupMember {
	r := &roster{Group: group}
	var members []*GroupMember
	for _, c := range conns {
		members = append(members, &GroupMember{Conn: c, Roster: r})
	}
	return members
}

func ConnsOf(members []*GroupMember) []net.Conn {
	var conns []net.Conn
	for _, m := range members {
		conns = append(conns, m.Conn)
	}
	return conns
}

// Form makes a group of members: all ask for an id, and when all have one they
// join with it. Without that order the number of generations, each of which
// all members must join, would be a matter of luck.
func Form(members []*GroupMember) error {
	conns := ConnsOf(members)
	members[0].Roster.expect(len(members))
	if err := Together(conns, func(i int, _ net.Conn) error { return members[i].Enter() }); err != nil {
		return err
	}
	if err := Together(conns, func(i int, _ net.Conn) error { return members[i].settle() }); err != nil {
		return err
	}
	return checkAssigned(members)
}

// ComeAndGo lets one more member join, and leave when all are assigned.
func ComeAndGo(members []*GroupMember, late *GroupMember) error {
	if err := Come(members, late); err != nil {
		return err
	}
	return Leave(members, late)
}

// Come lets one more member join, until all are assigned.
func Come(members []*GroupMember, late *GroupMember) error {
	r := members[0].Roster
	all := append(slices.Clone(members), late)
	r.expect(len(all))
	if err := late.Enter(); err != nil {
		return err
	}
	begun := make(chan struct{})
	err := Together(ConnsOf(all), func(i int, _ net.Conn) error {
		switch i {
		case len(members):
			return late.settle()
		case 0:
			return members[0].notice(begun)
		}
		<-begun
		return members[i].rejoin()
	})
	if err != nil {
		return err
	}
	return checkAssigned(all)
}

// Leave lets the late member leave, until all others are assigned.
func Leave(members []*GroupMember, late *GroupMember) error {
	members[0].Roster.expect(len(members))
	if err := late.Leave(); err != nil {
		return err
	}
	if err := Together(ConnsOf(members), func(i int, _ net.Conn) error { return members[i].rejoin() }); err != nil {
		return err
	}
	return checkAssigned(members)
}

// notice beats until the group rebalances, says so, and rejoins.
func (m *GroupMember) notice(begun chan struct{}) error {
	for {
		ok, err := m.beat()
		if err != nil || !ok {
			close(begun) // Those who wait find their connections closed if it failed.
		}
		if err != nil {
			return err
		}
		if !ok {
			return m.settle()
		}
	}
}

// rejoin beats once, which tells that the group rebalances, and rejoins.
func (m *GroupMember) rejoin() error {
	ok, err := m.beat()
	if err != nil {
		return err
	}
	if ok {
		return fmt.Errorf("heartbeat of %s: nothing of the rebalance", m.id)
	}
	return m.settle()
}

// compareJoins compares the largest groups with smaller ones. More connections
// cost more each, also with the bare program, so the aim is to grow no more than
// that does.
func (b *Bench) compareJoins(wanted []*joinMeasure) {
	i := slices.IndexFunc(wanted, func(m *joinMeasure) bool { return m.members >= flatFrom })
	if i < 0 || i == len(wanted)-1 {
		return
	}
	few, many := wanted[i], wanted[len(wanted)-1]
	for _, c := range []struct {
		what      string
		few, many metric
	}{
		{"time per member", few.each, many.each},
		{"processor time per member", few.cpu, many.cpu},
		{"time per member to rejoin", few.againEach, many.againEach},
		{"processor time per member to rejoin", few.againCPU, many.againCPU},
	} {
		name := fmt.Sprintf("%s, %s members against %s", c.what, Thousands(many.members), Thousands(few.members))
		b.compare(metric{"groups join all", name, "times", ratioAim(flat)}, c.few, c.many)
	}
}
