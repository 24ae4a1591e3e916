package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
)

// Check says what is wrong with a consumer group.
func (g *Group) Check() error {
	if err := g.Group.Check(); err != nil {
		return err
	}
	held, targets := map[Partition]string{}, map[Partition]string{}
	for _, m := range g.Members {
		if err := cmp.Or(g.checkHeld(m, held), g.checkTarget(m, targets)); err != nil {
			return fmt.Errorf("member %q: %w", m.ID, err)
		}
	}
	if len(held) != len(g.Owners) {
		return fmt.Errorf("%d partitions are held, %d have an owner", len(held), len(g.Owners))
	}
	return g.checkCounts()
}

// checkHeld says what is wrong with what a member has.
func (g *Group) checkHeld(m *Member, held map[Partition]string) error {
	if m.Metadata.Classic == nil && (m.JoinSeq != 0 || m.SyncSeq != 0) {
		return errors.New("is waited for to join or sync, and does neither")
	}
	now := m.Now()
	for _, list := range [][]Held{now.Assigned, now.Pending} {
		for _, p := range list {
			if other, ok := held[p.Part]; ok {
				return fmt.Errorf("partition %d of %x is %q's as well", p.Part.Number, p.Part.Topic, other)
			}
			if held[p.Part] = m.ID; g.Owners[p.Part] != m {
				return fmt.Errorf("partition %d of %x is held by nobody", p.Part.Number, p.Part.Topic)
			}
		}
	}
	return nil
}

// checkTarget says what is wrong with what a member is to have. Targets are made for
// all members at once; when they are as new as the group, no two of them overlap, and
// who is stable has what of its target it subscribes to. What the topics are was last
// looked at with a heartbeat; before the first there is nothing to compare with.
func (g *Group) checkTarget(m *Member, targets map[Partition]string) error {
	if g.TargetEpoch < g.Epoch {
		return nil
	}
	for _, p := range m.Target {
		if other, ok := targets[p]; ok {
			return fmt.Errorf("partition %d of %x is to be %q's as well", p.Number, p.Topic, other)
		}
		targets[p] = m.ID
	}
	now := m.Now()
	if now.Epoch != g.TargetEpoch || now.State != modern.Stable || g.Seen == nil {
		return nil
	}
	_, surplus, missing := modern.Split(now.Assigned, g.wantedPartitions(m, g.Seen))
	if len(surplus) > 0 || len(missing) > 0 {
		return fmt.Errorf("is stable with %d partitions too many and %d too few", len(surplus), len(missing))
	}
	return nil
}

// checkCounts compares what is counted with what there is.
func (g *Group) checkCounts() error {
	again := New(kind.Base{})
	for _, m := range g.Members {
		again.Count(m, 1)
	}
	switch {
	case again.bytes != g.bytes:
		return fmt.Errorf("members hold %d bytes, counted are %d", again.bytes, g.bytes)
	case again.Classic != g.Classic || !again.supportsLike(g):
		return fmt.Errorf("%d members of the classic protocol with %v, counted are %d with %v", again.Classic, again.Supported, g.Classic, g.Supported)
	case !maps.Equal(again.Names, g.Names):
		return fmt.Errorf("topics %v, counted are %v", again.Names, g.Names)
	case !maps.Equal(again.Patterns, g.Patterns):
		return fmt.Errorf("patterns %v, counted are %v", again.Patterns, g.Patterns)
	}
	for _, p := range slices.Sorted(maps.Keys(g.Regexes)) {
		if g.Patterns[p] == 0 {
			return fmt.Errorf("it is known what %q matches, which nobody subscribes to", p)
		}
	}
	return nil
}

// supportsLike says whether two count the protocols of their members alike.
func (g *Group) supportsLike(other *Group) bool {
	for _, m := range other.Members {
		if m.Metadata == nil || m.Metadata.Classic == nil {
			continue
		}
		for _, p := range m.Metadata.Classic.Protocols {
			if g.Supported.Of(p.Name) != other.Supported.Of(p.Name) {
				return false
			}
		}
	}
	return g.Supported.Len() == other.Supported.Len()
}
