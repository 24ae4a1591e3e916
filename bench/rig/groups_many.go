package rig

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"
)

// crowd is many groups of one member each.
type crowd struct {
	members []*GroupMember // without connections
}

func crowdGroup(i int) string { return fmt.Sprintf("crowd-%06d", i) }

// Gather makes many groups.
func (b *Bench) Gather(p *Process, n int) (*crowd, error) {
	conns, err := b.Peers(p, min(n, b.Group.Makers))
	if err != nil {
		return nil, err
	}
	defer CloseAll(conns)
	x := &crowd{members: make([]*GroupMember, n)}
	began := time.Now()
	err = b.Profile(p, fmt.Sprintf("groups make %d", n), func() error {
		return Together(conns, func(at int, c net.Conn) error { return x.make(c, at, len(conns)) })
	})
	if err != nil {
		return nil, fmt.Errorf("make groups: %w\n%s", err, p.Stderr)
	}
	b.Say("%s groups made in %.1f s", Thousands(n), time.Since(began).Seconds())
	return x, nil
}

// make makes every so many groups.
func (x *crowd) make(c net.Conn, first, stride int) error {
	for i := first; i < len(x.members); i += stride {
		m := &GroupMember{Conn: c, Roster: &roster{Group: crowdGroup(i), size: 1}}
		if err := m.Enter(); err != nil {
			return err
		}
		if err := m.settle(); err != nil {
			return err
		}
		m.Conn, x.members[i] = nil, m
	}
	return nil
}

// Frames returns the heartbeat of each group.
func (x *crowd) Frames() [][]byte {
	var out [][]byte
	for _, m := range x.members {
		out = append(out, RequestFrame(m.heartbeat(), 0))
	}
	return out
}

// manyGroups measures memory, heartbeats and load. They share the largest
// number of groups, because it takes long to make them.
func (b *Bench) manyGroups() error {
	var measures []beatMeasure
	var sizes []int
	for _, n := range b.Group.groups {
		if m := newBeatMeasure(n); b.Wanted(m.name) {
			measures, sizes = append(measures, m), append(sizes, n)
		}
	}
	most := slices.Max(b.Group.groups)
	needed := slices.Contains(sizes, most) || b.Wanted(groupMemory) || b.Wanted(groupLoad)
	if len(measures) == 0 && !needed {
		return nil
	}
	return b.InScratch(func(folder string) error {
		var all *crowd
		data := filepath.Join(folder, "most")
		if needed {
			var err error
			if all, err = b.groupMemory(data, most); err != nil {
				return fmt.Errorf("%s: %w", groupMemory, err)
			}
		}
		if len(measures) > 0 {
			if err := b.beatRounds(folder, data, measures, sizes, all); err != nil {
				return fmt.Errorf("groups heartbeat: %w", err)
			}
		}
		if b.Wanted(groupLoad) {
			if err := b.groupLoads(data, all); err != nil {
				return fmt.Errorf("%s: %w", groupLoad, err)
			}
		}
		return nil
	})
}

// beatRounds starts a broker for each number of groups, the largest on the data
// that is there, and beats.
func (b *Bench) beatRounds(folder, data string, measures []beatMeasure, sizes []int, all *crowd) error {
	var beaters []*beater
	for i, n := range sizes {
		some := filepath.Join(folder, fmt.Sprint(n))
		if all != nil && n == len(all.members) {
			some = data
		}
		p, err := b.startGroups(b.StartBroker, some)
		if err != nil {
			return err
		}
		defer p.Kill() //nolint:gocritic // All of them, three at most, are needed until the end.
		x := all
		if some != data {
			if x, err = b.Gather(p, n); err != nil {
				return err
			}
		}
		beats, err := b.NewBeater(p, x.Frames())
		if err != nil {
			return err
		}
		defer CloseAll(beats.Conns) //nolint:gocritic // All of them, three at most, are needed until the end.
		beaters = append(beaters, beats)
		b.Say("%s: ready", measures[i].name)
	}
	if err := b.beats(measures, beaters); err != nil {
		return err
	}
	for _, x := range beaters {
		CloseAll(x.Conns)
		if err := x.p.Stop(); err != nil {
			return err
		}
	}
	last := len(measures) - 1
	for i := range last {
		name := fmt.Sprintf("processor time per heartbeat, %s groups against %s", Thousands(sizes[last]), Thousands(sizes[i]))
		b.compare(metric{"groups heartbeat all", name, "times", ratioAim(flat)}, measures[i].cpu, measures[last].cpu)
	}
	return nil
}
