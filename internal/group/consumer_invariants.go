package group

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// checkConsumers says what is wrong with a consumer group.
func (g *consumerGroup) checkConsumers() error {
	if g.targetEpoch > g.epoch {
		return fmt.Errorf("target epoch %d is above the group's, %d", g.targetEpoch, g.epoch)
	}
	held, targets := map[part]string{}, map[part]string{}
	for i, m := range g.members {
		if i > 0 && g.members[i-1].id >= m.id {
			return errors.New("members are not in order")
		}
		if err := g.checkMember(m, held); err != nil {
			return fmt.Errorf("member %q: %w", m.id, err)
		}
		if err := g.checkTarget(m, targets); err != nil {
			return fmt.Errorf("member %q: %w", m.id, err)
		}
	}
	if len(held) != len(g.owners) {
		return fmt.Errorf("%d partitions are held, %d have an owner", len(held), len(g.owners))
	}
	return g.checkCounts()
}

func (g *consumerGroup) checkMember(m *consumerMember, held map[part]string) error {
	now := m.now()
	switch {
	case m.says == nil:
		return errors.New("has records and has not joined")
	case now.epoch > g.targetEpoch:
		return fmt.Errorf("is in epoch %d, the target in %d", now.epoch, g.targetEpoch)
	case now.epoch < 0 && (now.epoch != epochLeaveStatic || m.says.Instance == nil || len(now.pending) > 0):
		return errors.New("has left as only a static member does, without anything to let go of")
	case m.timerSeq == 0 || m.timerAt.After(m.deadline):
		return errors.New("nobody waits for its next heartbeat")
	case m.says.Classic == nil && (m.joinSeq != 0 || m.syncSeq != 0):
		return errors.New("is waited for to join or sync, and does neither")
	case (now.state == memberUnrevoked && m.says.Classic == nil) != (m.revokeSeq != 0):
		return errors.New("a timer runs and it has nothing to let go of, or none runs and it has")
	case now.state.isKnown() && (now.state == memberUnrevoked) != (len(now.pending) > 0):
		return errors.New("its state says something else than what it has to let go of")
	case m.says.Instance != nil && g.instances[*m.says.Instance] != m:
		return errors.New("another member has its instance id")
	}
	for _, list := range [][]heldPart{now.assigned, now.pending} {
		for _, p := range list {
			if other, ok := held[p.part]; ok {
				return fmt.Errorf("partition %d of %x is %q's as well", p.n, p.topic, other)
			}
			if held[p.part] = m.id; g.owners[p.part] != m {
				return fmt.Errorf("partition %d of %x is held by nobody", p.n, p.topic)
			}
			if p.since > max(now.epoch, 0) {
				return fmt.Errorf("partition %d of %x was given to it in epoch %d, which is to come", p.n, p.topic, p.since)
			}
		}
	}
	return nil
}

// checkTarget says what is wrong with what a member is to have. Targets are made for
// all members at once; when they are as new as the group, no two of them overlap, and
// who is stable has what of its target it subscribes to. What the topics are was last
// looked at with a heartbeat; before the first there is nothing to compare with.
func (g *consumerGroup) checkTarget(m *consumerMember, targets map[part]string) error {
	if g.targetEpoch < g.epoch {
		return nil
	}
	for _, p := range m.target {
		if other, ok := targets[p]; ok {
			return fmt.Errorf("partition %d of %x is to be %q's as well", p.n, p.topic, other)
		}
		targets[p] = m.id
	}
	now := m.now()
	if now.epoch != g.targetEpoch || now.state != memberStable || g.seen == nil {
		return nil
	}
	_, surplus, missing := split(now.assigned, g.wanted(m, g.seen))
	if len(surplus) > 0 || len(missing) > 0 {
		return fmt.Errorf("is stable with %d partitions too many and %d too few", len(surplus), len(missing))
	}
	return nil
}

// checkCounts compares what is counted with what there is.
func (g *consumerGroup) checkCounts() error {
	again := newConsumerGroup(base{})
	for _, m := range g.members {
		if again.count(m, 1); m.unheard {
			again.unheard++
		}
	}
	switch {
	case again.bytes != g.bytes:
		return fmt.Errorf("members hold %d bytes, counted are %d", again.bytes, g.bytes)
	case again.present != g.present:
		return fmt.Errorf("%d members, counted are %d", again.present, g.present)
	case again.classic != g.classic || !again.supportsLike(g):
		return fmt.Errorf("%d members of the classic protocol with %v, counted are %d with %v", again.classic, again.supported, g.classic, g.supported)
	case again.unheard != g.unheard:
		return fmt.Errorf("%d members were not heard of since the load, counted are %d", again.unheard, g.unheard)
	case !maps.Equal(again.names, g.names):
		return fmt.Errorf("topics %v, counted are %v", again.names, g.names)
	case !maps.Equal(again.patterns, g.patterns):
		return fmt.Errorf("patterns %v, counted are %v", again.patterns, g.patterns)
	case !maps.Equal(again.instances, g.instances):
		return fmt.Errorf("%d static members, known are %d", len(again.instances), len(g.instances))
	case g.run != nil && g.run.parked != nil && g.member(g.run.parked.member) == nil:
		return fmt.Errorf("a heartbeat waits whose member is gone")
	}
	for _, p := range slices.Sorted(maps.Keys(g.regexes)) {
		if g.patterns[p] == 0 {
			return fmt.Errorf("it is known what %q matches, which nobody subscribes to", p)
		}
	}
	return nil
}

// supportsLike says whether two count the protocols of their members alike.
func (g *consumerGroup) supportsLike(other *consumerGroup) bool {
	for _, m := range other.members {
		if m.says == nil || m.says.Classic == nil {
			continue
		}
		for _, p := range m.says.Classic.Protocols {
			if g.supported.of(p.Name) != other.supported.of(p.Name) {
				return false
			}
		}
	}
	return g.supported.len() == other.supported.len()
}
