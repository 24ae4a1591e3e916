package group

import (
	"errors"
	"fmt"
)

// checkConsumers says what is wrong with a consumer group.
func (g *group) checkConsumers() error {
	c := g.consumer
	switch {
	case g.hard != nil || g.members.len() > 0:
		return errors.New("is both a classic and a consumer group")
	case c.targetEpoch > c.epoch:
		return fmt.Errorf("target epoch %d is above the group's, %d", c.targetEpoch, c.epoch)
	}
	held := map[part]string{}
	for i, m := range c.members {
		if i > 0 && c.members[i-1].id >= m.id {
			return errors.New("members are not in order")
		}
		if err := c.checkMember(m, held); err != nil {
			return fmt.Errorf("member %q: %w", m.id, err)
		}
	}
	if len(held) != len(c.owners) {
		return fmt.Errorf("%d partitions are held, %d have an owner", len(held), len(c.owners))
	}
	return nil
}

func (c *consumer) checkMember(m *consumerMember, held map[part]string) error {
	now := m.now()
	switch {
	case m.says == nil:
		return errors.New("has records and has not joined")
	case now.epoch > c.targetEpoch:
		return fmt.Errorf("is in epoch %d, the target in %d", now.epoch, c.targetEpoch)
	case m.timerSeq == 0:
		return errors.New("nobody waits for its next heartbeat")
	case (now.state == memberUnrevoked) != (m.revokeSeq != 0):
		return errors.New("a timer runs and it has nothing to let go of, or none runs and it has")
	case (now.state == memberUnrevoked) != (len(now.pending) > 0):
		return errors.New("its state says something else than what it has to let go of")
	case m.says.Instance != nil && c.instances[*m.says.Instance] != m:
		return errors.New("another member has its instance id")
	}
	for _, list := range [][]heldPart{now.assigned, now.pending} {
		for _, p := range list {
			if other, ok := held[p.part]; ok {
				return fmt.Errorf("partition %d of %x is %q's as well", p.n, p.topic, other)
			}
			if held[p.part] = m.id; c.owners[p.part] != m {
				return fmt.Errorf("partition %d of %x is held by nobody", p.n, p.topic)
			}
		}
	}
	return nil
}
