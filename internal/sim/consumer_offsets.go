package sim

import (
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// named is a partition by its topic's name, if that exists.
func (w *world) named(p part) (topicPartition, bool) {
	if t := w.topics.image.TopicByID(p.topic); t != nil {
		return topicPartition{t.Name, p.n}, true
	}
	return topicPartition{}, false
}

// fetch asks where to go on in partitions that are new, as a member: one that was
// fenced must not go on from what it is told.
func (c *consumer) fetch() {
	var want []topicPartition
	grants := map[topicPartition]int{}
	parts := map[topicPartition]part{}
	for _, p := range sortedParts(c.owned) {
		tp, exists := c.w.named(p)
		if _, ok := c.position[p]; !ok && exists {
			want = append(want, tp)
			grants[tp], parts[tp] = c.owned[p], p
		}
	}
	if len(want) == 0 || !c.up {
		return
	}
	m := fetchRequest(c.group.id, want)
	m.Version = 9
	m.Groups[0].MemberID, m.Groups[0].MemberEpoch = &c.member, c.epoch
	token := c.token
	again := func() {
		c.after(c.w.Between(100*time.Millisecond, time.Second), func() {
			if token == c.token && !c.w.quiet {
				c.fetch()
			}
		})
	}
	c.call(m, noWait, func(a answer) {
		switch {
		case token != c.token:
			return
		case a.msg == nil || codeOf(a.msg) != 0:
			if a.msg != nil && codeOf(a.msg) == codeNotCoordinator {
				c.hangUp()
			}
			again()
			return
		}
		for _, t := range a.msg.(*kmsg.OffsetFetchResponse).Groups[0].Topics {
			for _, o := range t.Partitions {
				tp := topicPartition{t.Topic, o.Partition}
				if p := parts[tp]; c.owned[p] == grants[tp] {
					c.position[p] = position{at: max(o.Offset, 0), loose: a.stale}
				}
			}
		}
	})
}

// commits goes on in its partitions and commits at intervals. Some commits are
// written and sent later: they name an epoch that may be over by then.
func (c *consumer) commits() {
	c.after(c.w.Between(time.Second, 6*time.Second), func() {
		c.commits()
		if c.epoch <= 0 || c.leaving || c.committing || c.w.quiet {
			return
		}
		delay := time.Duration(0)
		if c.w.Rand.IntN(3) == 0 {
			delay = c.w.Between(0, 4*time.Second)
		}
		c.commit(sortedParts(c.owned), delay)
	})
}

// commit says how far the client has come, perhaps a while after it has written that
// down.
func (c *consumer) commit(parts []part, delay time.Duration) {
	w := c.w
	m := kmsg.NewPtrOffsetCommitRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID, m.Generation, m.RetentionTimeMillis = 9, c.group.id, c.member, c.instance, c.epoch, -1
	for _, p := range parts {
		tp, exists := w.named(p)
		pos, ok := c.position[p]
		if !ok || !exists || w.Rand.IntN(4) == 0 {
			continue
		}
		pos.at += int64(w.Rand.IntN(10))
		c.position[p] = pos
		metadata := ""
		switch {
		case pos.loose:
			metadata = looseMark
		case w.Chance(w.faults().oversized):
			metadata = strings.Repeat("é", w.plan.config.MaxMetadata+1)
		}
		addCommit(m, tp, pos.at, metadata)
	}
	if len(m.Topics) == 0 || c.epoch <= 0 {
		return
	}
	if w.Chance(w.faults().rogue / 10) {
		m.Version = 8
	}
	c.committing = true
	c.after(delay, func() {
		c.call(m, noWait, func(a answer) {
			c.committing = false
			if a.msg == nil {
				return
			}
			switch code := codeOf(a.msg); code {
			case 0, codeStaleEpoch, codeUnknownMember, codeFencedInstance, codeGroupNotFound, codeLoadInProgress, codeUnsupported:
			case codeNotCoordinator:
				c.hangUp()
			case codeIllegalGeneration: // This is how a group that is gone is named before version 9.
				if m.Version >= 9 {
					w.Violated("%s: OffsetCommit is answered with %d in version %d", c.name, code, m.Version)
				}
			default:
				w.Violated("%s: OffsetCommit is answered with %d", c.name, code)
			}
		})
	})
}

// lend has a transaction commit offsets in the client's name, or in no one's.
func (c *consumer) lend(m *kmsg.TxnOffsetCommitRequest) {
	m.Group = c.group.id
	if c.w.Rand.IntN(3) > 0 && c.up {
		m.MemberID, m.InstanceID, m.Generation = c.member, c.instance, c.epoch
	}
}
