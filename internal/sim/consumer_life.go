package sim

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
)

// planLife has things happen to a client in the chaotic phase.
func (c *consumer) planLife() {
	w := c.w
	w.Every(w.plan.faults.client/2, func() {
		if !c.up || c.leaving {
			return
		}
		session := w.plan.config.Consumer.Session
		switch w.Rand.IntN(10) {
		case 0, 1:
			w.Count("consumer crashed")
			c.stop()
			c.startLater(w.About(session))
		case 2, 3:
			w.Count("consumer paused")
			c.pausedUntil = w.Now + w.About(session)
		case 4, 5:
			c.leave(c.instance != nil && w.Rand.IntN(4) > 0)
		case 6, 7:
			w.Count("consumer resubscribed")
			c.choose()
			c.wants = true
			c.beat()
		case 8, 9:
			c.rogueBeat()
		}
	})
}

// leave ends the client in order: for a while, if it is static, or for good.
func (c *consumer) leave(forAWhile bool) {
	w := c.w
	w.Count("consumer left")
	m := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID, m.MemberEpoch, m.RebalanceTimeoutMillis = 1, c.group.id, c.member, c.instance, -1, -1
	back := w.About(5 * time.Second)
	if forAWhile {
		m.MemberEpoch = -2
		if w.Rand.IntN(4) == 0 {
			back += w.plan.config.Consumer.Session
		}
	}
	if w.Rand.IntN(2) == 0 {
		c.commit(sortedParts(c.owned), 0)
	}
	c.abandon()
	c.leaving = true
	c.call(m, noWait/2, func(answer) {
		c.stop()
		c.startLater(back)
	})
}

// rogueBeat sends what no client should: an epoch of before, without saying what it
// has or with a partition of someone else's, or one that is to come. Whoever waits
// for the answer has gone.
func (c *consumer) rogueBeat() {
	m := c.beatRequest()
	m.RebalanceTimeoutMillis, m.SubscribedTopicNames, m.SubscribedTopicRegex, m.Topics = -1, nil, nil, nil
	if c.epoch == 0 {
		return
	}
	switch c.w.Rand.IntN(4) {
	case 0:
		m.MemberEpoch = c.previous
	case 1, 2:
		m.MemberEpoch = c.previous
		list := sortedParts(c.owned)
		for _, o := range c.w.consumers {
			if o != c && o.group == c.group {
				list = append(list, sortedParts(o.owned)...)
			}
		}
		slices.SortFunc(list, compareParts)
		m.Topics = ownedTopics(slices.Compact(list))
		c.full = true // If it is taken after all, its answer is lost.
	default:
		m.MemberEpoch = c.epoch + 1 + int32(c.w.Rand.IntN(3))
	}
	if m.MemberEpoch == c.epoch || m.MemberEpoch == 0 {
		return
	}
	c.w.Count("rogue heartbeat")
	c.call(m, noWait, func(answer) {})
}

// wakeConsumers decides who is there in the calm phase.
func (w *world) wakeConsumers() {
	for _, c := range w.consumers {
		c.pausedUntil = min(c.pausedUntil, w.Now+w.plan.config.Consumer.Session)
		if c.up {
			continue
		}
		c.life++
		if c.starting = false; w.Rand.IntN(2) == 0 {
			c.start()
		}
	}
}

// sentTwice is why a client says everything with its next heartbeat: what comes twice
// was sent again after a connection had broken, and who has noticed that does so. What
// arrives after its connection was closed may come after all that was said since, and
// no one hears the answer, which may be the only one that says what a member was given.
func (w *world) sentTwice(p *peer) {
	for _, c := range w.consumers {
		if &c.peer == p {
			c.full = true
		}
	}
}

// removeConsumer names someone for an administrator to remove: a static member by its
// instance id, perhaps with the id of a member that it is not, or any other by its own.
func (w *world) removeConsumer(e *kmsg.LeaveGroupRequestMember) {
	c := w.anyConsumer()
	if e.InstanceID = c.instance; c.instance == nil || w.Rand.IntN(2) == 0 {
		e.MemberID = c.member
	}
	if w.Rand.IntN(4) == 0 {
		e.MemberID = "nobody"
	}
}

// unsay notes whose subscriptions the log loses. A client says what it subscribes to when
// that changes, and after an error; who was in the same epoch before and after, and never
// heard of an error, says no more of it, and no coordinator can know. So there is nothing
// to be asked of the group before it says everything again, as it does in the calm phase.
func (w *world) unsay(lost []stored) {
	for _, s := range lost {
		if s.control != nil {
			continue
		}
		r, ok := w.decode(s).(*schema.ConsumerMemberRecord)
		if !ok || r.Value == nil {
			continue
		}
		for _, c := range w.consumers {
			if c.up && c.member == r.Member {
				c.unsaid = true
				w.Count("subscription lost with the end of the log")
			}
		}
	}
}
