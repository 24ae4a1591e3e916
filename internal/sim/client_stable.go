package sim

import (
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// heartbeats sends them at intervals.
func (c *client) heartbeats() {
	c.after(c.w.Between(c.interval*8/10, c.interval*11/10), func() {
		c.heartbeats()
		if c.w.quiet {
			return
		}
		if c.phase == stable && c.leads && c.seenTopics != c.w.topics.version {
			c.join("topics changed")
			return
		}
		if !c.beating && (c.phase == stable || c.phase == syncing && c.early) {
			c.heartbeat()
		}
	})
}

func (c *client) heartbeat() {
	m := kmsg.NewPtrHeartbeatRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID, m.Generation = c.versions.heartbeat, c.group.id, c.member, c.instance, c.generation
	c.beating = true
	c.callAsMember(m, func(a answer, current bool) {
		c.beating = false
		if c.elsewhere(a) || !current {
			return
		}
		switch code := codeOf(a.msg); code {
		case 0:
		case codeRebalanceInProgress, codeIllegalGeneration, codeUnknownMember, codeFencedInstance:
			c.dismissed(code)
		default:
			c.w.Violated("%s: Heartbeat is answered with %d", c.name, code)
		}
	})
}

// callAsMember sends a request of a member. What an answer says of it is not
// current any more if it has gone on meanwhile.
func (c *client) callAsMember(m kmsg.Request, done func(a answer, current bool)) {
	token, member, generation := c.token, c.member, c.generation
	c.call(m, noWait, func(a answer) {
		done(a, token == c.token && member == c.member && generation == c.generation)
	})
}

// dismissed handles errors that say that a member must join again.
func (c *client) dismissed(code int16) {
	switch code {
	case codeRebalanceInProgress:
		c.joinWhenReady()
	case codeIllegalGeneration:
		c.lose()
		c.join("old generation")
	case codeUnknownMember:
		c.forget()
		c.join("unknown member")
	case codeFencedInstance:
		c.fatal(code)
	}
}

// joinWhenReady joins, unless the client is still at work on what it has. It
// beats meanwhile, but may come too late.
func (c *client) joinWhenReady() {
	if c.waits {
		return
	}
	if c.w.Chance(c.w.faults().busy) {
		c.work()
	}
	if c.busyUntil <= c.w.Now {
		c.join("rebalance")
		return
	}
	c.w.Count("client too busy to join")
	c.waits = true
	token := c.token
	c.after(c.busyUntil-c.w.Now, func() {
		if c.waits && token == c.token && !c.w.quiet {
			c.join("rebalance, at last")
		}
	})
}

// work keeps the client busy, perhaps for longer than its group has patience.
func (c *client) work() {
	c.busyUntil = c.w.Now + c.w.Between(0, c.rebalance/2+20*time.Second)
	if c.group.slow {
		c.busyUntil = c.w.Now + c.w.Between(0, c.rebalance*3/2)
	}
}

// fetch asks where to go on in partitions that are new.
func (c *client) fetch() {
	var want []topicPartition
	for _, tp := range c.owned {
		if _, ok := c.position[tp]; !ok {
			want = append(want, tp)
		}
	}
	if len(want) == 0 {
		return
	}
	token := c.token
	c.call(fetchRequest(c.group.id, want), noWait, func(a answer) {
		if token != c.token {
			return
		}
		if c.elsewhere(a) {
			c.retry(c.fetch)
			return
		}
		for _, t := range a.msg.(*kmsg.OffsetFetchResponse).Groups[0].Topics {
			for _, p := range t.Partitions {
				c.position[topicPartition{t.Topic, p.Partition}] = position{at: max(p.Offset, 0), loose: a.stale}
			}
		}
	})
}

// fetchRequest asks for some partitions, or for all.
func fetchRequest(group string, parts []topicPartition) *kmsg.OffsetFetchRequest {
	m := kmsg.NewPtrOffsetFetchRequest()
	m.Version = 8
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = group
	for _, tp := range parts {
		g.Topics = append(g.Topics, kmsg.OffsetFetchRequestGroupTopic{Topic: tp.topic, Partitions: []int32{tp.partition}})
	}
	m.Groups = append(m.Groups, g)
	return m
}

// commits goes on in its partitions and commits at intervals.
func (c *client) commits() {
	c.after(c.w.Between(time.Second, 6*time.Second), func() {
		c.commits()
		if c.phase == stable && !c.committing && len(c.position) > 0 && !c.w.quiet {
			c.commit()
		}
	})
}

// commit says how far the client has come. Only a member that has synced
// commits, in the generation that it has synced.
func (c *client) commit() {
	m := c.commitRequest()
	for _, tp := range c.owned {
		pos, ok := c.position[tp]
		if !ok || c.w.Rand.IntN(4) == 0 {
			continue
		}
		pos.at += int64(c.w.Rand.IntN(10))
		c.position[tp] = pos
		metadata := ""
		switch {
		case pos.loose:
			metadata = looseMark
		case c.w.Chance(c.w.faults().oversized):
			metadata = strings.Repeat("é", c.w.plan.config.MaxMetadata+1)
		case c.w.Rand.IntN(3) == 0:
			metadata = c.name
		}
		addCommit(m, tp, pos.at, metadata)
	}
	c.committing = true
	c.callAsMember(m, func(a answer, current bool) {
		c.committing = false
		if c.elsewhere(a) || !current {
			return
		}
		switch code := codeOf(a.msg); code {
		case 0:
		case codeRebalanceInProgress, codeIllegalGeneration, codeUnknownMember, codeFencedInstance:
			c.dismissed(code)
		case codeGroupNotFound:
			c.dismissed(codeUnknownMember)
		default:
			c.w.Violated("%s: OffsetCommit is answered with %d", c.name, code)
		}
	})
}

func (c *client) commitRequest() *kmsg.OffsetCommitRequest {
	m := kmsg.NewPtrOffsetCommitRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID, m.Generation = c.versions.commit, c.group.id, c.member, c.instance, c.generation
	m.RetentionTimeMillis = -1
	if m.Version <= 4 && c.w.Rand.IntN(4) == 0 {
		m.RetentionTimeMillis = c.w.Between(time.Second, 30*time.Second).Milliseconds()
	}
	return m
}

func addCommit(m *kmsg.OffsetCommitRequest, tp topicPartition, at int64, metadata string) {
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset, p.LeaderEpoch = tp.partition, at, int32(at%5)-1
	if metadata != "" || at%2 == 0 {
		p.Metadata = &metadata
	}
	i := slices.IndexFunc(m.Topics, func(t kmsg.OffsetCommitRequestTopic) bool { return t.Topic == tp.topic })
	if i < 0 {
		i = len(m.Topics)
		m.Topics = append(m.Topics, kmsg.OffsetCommitRequestTopic{Topic: tp.topic})
	}
	m.Topics[i].Partitions = append(m.Topics[i].Partitions, p)
}

// rogueCommit commits between join and sync, as some libraries do.
func (c *client) rogueCommit() {
	if c.phase != syncing {
		return
	}
	m := c.commitRequest()
	addCommit(m, topicPartition{topicName(0), roguePartition}, int64(c.generation), "")
	c.call(m, noWait, func(answer) {})
}
