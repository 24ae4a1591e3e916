package main

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"time"
)

// crowd is many groups of one member each.
type crowd struct {
	members []*groupMember // without connections
}

func crowdGroup(i int) string { return fmt.Sprintf("crowd-%06d", i) }

// gather makes many groups.
func (b *bench) gather(p *process, n int) (*crowd, error) {
	conns, err := b.peers(p, min(n, b.group.makers))
	if err != nil {
		return nil, err
	}
	defer closeAll(conns)
	x := &crowd{members: make([]*groupMember, n)}
	began := time.Now()
	err = b.profile(p, fmt.Sprintf("groups make %d", n), func() error {
		return together(conns, func(at int, c net.Conn) error { return x.make(c, at, len(conns)) })
	})
	if err != nil {
		return nil, fmt.Errorf("make groups: %w\n%s", err, p.stderr)
	}
	b.say("%s groups made in %.1f s", thousands(n), time.Since(began).Seconds())
	return x, nil
}

// make makes every so many groups.
func (x *crowd) make(c net.Conn, first, stride int) error {
	for i := first; i < len(x.members); i += stride {
		m := &groupMember{conn: c, roster: &roster{group: crowdGroup(i), size: 1}}
		if err := m.enter(); err != nil {
			return err
		}
		if err := m.settle(); err != nil {
			return err
		}
		m.conn, x.members[i] = nil, m
	}
	return nil
}

// frames returns the heartbeat of each group.
func (x *crowd) frames() [][]byte {
	var out [][]byte
	for _, m := range x.members {
		out = append(out, requestFrame(m.heartbeat(), 0))
	}
	return out
}

// manyGroups measures memory, heartbeats and load. They share the largest
// number of groups, because it takes long to make them.
func (b *bench) manyGroups() error {
	var measures []beatMeasure
	var sizes []int
	for _, n := range b.group.groups {
		if m := newBeatMeasure(n); b.wanted(m.name) {
			measures, sizes = append(measures, m), append(sizes, n)
		}
	}
	most := slices.Max(b.group.groups)
	needed := slices.Contains(sizes, most) || b.wanted(groupMemory) || b.wanted(groupLoad)
	if len(measures) == 0 && !needed {
		return nil
	}
	return b.inScratch(func(folder string) error {
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
		if b.wanted(groupLoad) {
			if err := b.groupLoads(data, all); err != nil {
				return fmt.Errorf("%s: %w", groupLoad, err)
			}
		}
		return nil
	})
}

// beatRounds starts a broker for each number of groups, the largest on the data
// that is there, and beats.
func (b *bench) beatRounds(folder, data string, measures []beatMeasure, sizes []int, all *crowd) error {
	var beaters []*beater
	for i, n := range sizes {
		some := filepath.Join(folder, fmt.Sprint(n))
		if all != nil && n == len(all.members) {
			some = data
		}
		p, err := b.startGroups(b.startBroker, some)
		if err != nil {
			return err
		}
		defer p.kill() //nolint:gocritic // There are three of them.
		x := all
		if some != data {
			if x, err = b.gather(p, n); err != nil {
				return err
			}
		}
		beats, err := b.newBeater(p, x.frames())
		if err != nil {
			return err
		}
		defer closeAll(beats.conns) //nolint:gocritic // There are three of them.
		beaters = append(beaters, beats)
		b.say("%s: ready", measures[i].name)
	}
	if err := b.beats(measures, beaters); err != nil {
		return err
	}
	for _, x := range beaters {
		closeAll(x.conns)
		if err := x.p.stop(); err != nil {
			return err
		}
	}
	last := len(measures) - 1
	for i := range last {
		name := fmt.Sprintf("processor time per heartbeat, %s groups against %s", thousands(sizes[last]), thousands(sizes[i]))
		b.compare(metric{"groups heartbeat all", name, "times", ratioAim(flat)}, measures[i].cpu, measures[last].cpu)
	}
	return nil
}
