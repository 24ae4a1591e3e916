package consumer

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
)

// checkState says what is wrong with a consumer group.
func (g *Group) checkState() error {
	if g.TargetEpoch > g.Epoch {
		return fmt.Errorf("target epoch %d is above the group's, %d", g.TargetEpoch, g.Epoch)
	}
	held, targets := map[modern.Partition]string{}, map[modern.Partition]string{}
	for i, m := range g.Members {
		if i > 0 && g.Members[i-1].ID >= m.ID {
			return errors.New("members are not in order")
		}
		if err := g.checkMember(m, held); err != nil {
			return fmt.Errorf("member %q: %w", m.ID, err)
		}
		if err := g.checkTarget(m, targets); err != nil {
			return fmt.Errorf("member %q: %w", m.ID, err)
		}
	}
	if len(held) != len(g.Owners) {
		return fmt.Errorf("%d partitions are held, %d have an owner", len(held), len(g.Owners))
	}
	return g.checkCounts()
}

func (g *Group) checkMember(m *Member, held map[modern.Partition]string) error {
	now := m.Now()
	switch {
	case m.Metadata == nil:
		return errors.New("has records and has not joined")
	case now.Epoch > g.TargetEpoch:
		return fmt.Errorf("is in epoch %d, the target in %d", now.Epoch, g.TargetEpoch)
	case now.Epoch < 0 && (now.Epoch != modern.EpochLeaveStatic || m.Metadata.Instance == nil || len(now.Pending) > 0):
		return errors.New("has left as only a static member does, without anything to let go of")
	case m.TimerSeq == 0 || m.TimerAt.After(m.Deadline):
		return errors.New("nobody waits for its next heartbeat")
	case m.Metadata.Classic == nil && (m.JoinSeq != 0 || m.SyncSeq != 0):
		return errors.New("is waited for to join or sync, and does neither")
	case (now.State == modern.Unrevoked && m.Metadata.Classic == nil) != (m.RevokeSeq != 0):
		return errors.New("a timer runs and it has nothing to let go of, or none runs and it has")
	case now.State.IsKnown() && (now.State == modern.Unrevoked) != (len(now.Pending) > 0):
		return errors.New("its state says something else than what it has to let go of")
	case m.Metadata.Instance != nil && g.Instances[*m.Metadata.Instance] != m:
		return errors.New("another member has its instance id")
	}
	for _, list := range [][]modern.Held{now.Assigned, now.Pending} {
		for _, p := range list {
			if other, ok := held[p.Partition]; ok {
				return fmt.Errorf("partition %d of %x is %q's as well", p.Number, p.Topic, other)
			}
			if held[p.Partition] = m.ID; g.Owners[p.Partition] != m {
				return fmt.Errorf("partition %d of %x is held by nobody", p.Number, p.Topic)
			}
			if p.Since > max(now.Epoch, 0) {
				return fmt.Errorf("partition %d of %x was given to it in epoch %d, which is to come", p.Number, p.Topic, p.Since)
			}
		}
	}
	return nil
}

// checkTarget says what is wrong with what a member is to have. Targets are made for
// all members at once; when they are as new as the group, no two of them overlap, and
// who is stable has what of its target it subscribes to. What the topics are was last
// looked at with a heartbeat; before the first there is nothing to compare with.
func (g *Group) checkTarget(m *Member, targets map[modern.Partition]string) error {
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
	if now.Epoch != g.TargetEpoch || now.State != modern.Stable || g.seen == nil {
		return nil
	}
	_, surplus, missing := modern.Split(now.Assigned, g.wantedPartitions(m, g.seen))
	if len(surplus) > 0 || len(missing) > 0 {
		return fmt.Errorf("is stable with %d partitions too many and %d too few", len(surplus), len(missing))
	}
	return nil
}

// checkCounts compares what is counted with what there is.
func (g *Group) checkCounts() error {
	again := New(kind.Base{})
	for _, m := range g.Members {
		if again.count(m, 1); m.Unheard {
			again.unheard++
		}
	}
	switch {
	case again.bytes != g.bytes:
		return fmt.Errorf("members hold %d bytes, counted are %d", again.bytes, g.bytes)
	case again.Present != g.Present:
		return fmt.Errorf("%d members, counted are %d", again.Present, g.Present)
	case again.Classic != g.Classic || !again.supportsLike(g):
		return fmt.Errorf("%d members of the classic protocol with %v, counted are %d with %v", again.Classic, again.Supported, g.Classic, g.Supported)
	case again.unheard != g.unheard:
		return fmt.Errorf("%d members were not heard of since the load, counted are %d", again.unheard, g.unheard)
	case !maps.Equal(again.Names, g.Names):
		return fmt.Errorf("topics %v, counted are %v", again.Names, g.Names)
	case !maps.Equal(again.Patterns, g.Patterns):
		return fmt.Errorf("patterns %v, counted are %v", again.Patterns, g.Patterns)
	case !maps.Equal(again.Instances, g.Instances):
		return fmt.Errorf("%d static members, known are %d", len(again.Instances), len(g.Instances))
	case g.Run != nil && g.Run.Parked != nil && g.Member(g.Run.Parked.Member) == nil:
		return fmt.Errorf("a heartbeat waits whose member is gone")
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
