package sim

import (
	"slices"
	"time"
	"unicode/utf16"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

func (c *coordinator) expectCommit(v *view, m *kmsg.OffsetCommitRequest) verdict {
	s, code := commitCode(v, m)
	out := verdict{seat: s}
	if member := v.consumer(m.MemberID); code == 0 && member != nil && m.Generation >= 0 && m.Generation < member.epoch() {
		c.w.Count("commit of an older epoch taken")
	}
	if code == 0 && s != nil {
		out.act = actTouch
	}
	for i := range m.Topics {
		for j := range m.Topics[i].Partitions {
			p := &m.Topics[i].Partitions[j]
			switch {
			case code != 0:
				out.codes = append(out.codes, code)
			case p.Metadata != nil && len(utf16.Encode([]rune(*p.Metadata))) > c.config.MaxMetadata:
				out.codes = append(out.codes, codeMetadataTooLarge)
			case c.w.topics.id(m.Topics[i].Topic) == 0:
				out.codes = append(out.codes, codeUnknownTopic)
			default:
				out.codes = append(out.codes, 0)
			}
		}
	}
	return out
}

// commitCode says whether a commit is in order, and of which member it is, nil
// for none.
func commitCode(v *view, m *kmsg.OffsetCommitRequest) (*seat, int16) {
	switch {
	case !v.exists && m.Generation < 0:
		return nil, 0
	case !v.exists && m.Version >= 9:
		return nil, codeGroupNotFound
	case !v.exists:
		return nil, codeIllegalGeneration
	case v.hasConsumers():
		return nil, consumerCommitCode(v, m)
	case m.Generation < 0 && v.state == stateEmpty:
		return nil, 0
	case m.Generation < 0 && m.MemberID == "" && m.InstanceID == nil:
		return nil, codeUnknownMember
	}
	s, code := v.find(m.MemberID, m.InstanceID)
	switch {
	case code != 0:
		return nil, code
	case m.Generation != v.generation:
		return nil, codeIllegalGeneration
	case v.state == stateCompleting:
		return nil, codeRebalanceInProgress
	}
	return s, 0
}

func expectOffsetDelete(v *view, m *kmsg.OffsetDeleteRequest) verdict {
	switch {
	case !v.exists:
		return refused(codeGroupNotFound)
	case v.state != stateEmpty && v.protocolType != consumerType:
		return refused(codeNonEmptyGroup)
	}
	out := refused(0)
	for _, t := range m.Topics {
		for range t.Partitions {
			code := int16(0)
			if v.state != stateEmpty && v.subscribes(t.Topic) {
				code = codeSubscribed
			}
			out.codes = append(out.codes, code)
		}
	}
	return out
}

func (c *coordinator) expectDeleteGroups(m *kmsg.DeleteGroupsRequest) verdict {
	var out verdict
	for i, id := range m.Groups {
		if slices.Contains(m.Groups[:i], id) {
			continue
		}
		switch v := c.view(id); {
		case !v.exists:
			out.codes = append(out.codes, codeGroupNotFound)
		case v.state != stateEmpty:
			out.codes = append(out.codes, codeNonEmptyGroup)
		default:
			out.codes = append(out.codes, 0)
			out.doomed = append(out.doomed, id)
		}
	}
	return out
}

// expired lists the offsets of a group that a sweep must remove.
func (c *coordinator) expired(v *view) []offsetKey {
	var out []offsetKey
	for _, k := range c.offsets.of(v.id) {
		o, _ := c.offsets.get(k)
		from := o.when
		switch {
		case v.hasConsumers():
			if v.subscribes(k.topic) {
				continue
			}
		case v.state == stateEmpty && v.protocolType != "":
			if v.recordTime >= 0 {
				from = v.recordTime
			}
		case v.state == stateEmpty:
		case v.state == stateStable && v.protocolType == consumerType && !v.subscribes(k.topic):
		default:
			continue
		}
		limit := from + c.config.OffsetsRetention.Milliseconds()
		if o.expire != -1 {
			limit = o.expire
		}
		if c.w.millis() >= limit && !c.offsets.waitsFor(k) {
			out = append(out, k)
		}
	}
	return out
}

// writesOf returns what an event did to offsets, given its answer, and checks
// that offsets do not go back.
func (c *coordinator) writesOf(why cause, wants *verdict, reply kmsg.Response) []offsetWrite {
	var out []offsetWrite
	remove := func(k offsetKey) {
		if _, ok := c.offsets.get(k); ok || c.offsets.waitsFor(k) {
			out = append(out, offsetWrite{key: k, val: committed{gone: true, seq: c.w.steps, pos: c.w.position(), waited: !ok}})
		}
	}
	switch e := why.event.(type) {
	case machine.TopicsChanged:
		c.eachGone(func(k offsetKey) bool { return slices.Contains(e.Gone, k.topic) }, remove)
	case machine.Loaded:
		c.eachGone(func(offsetKey) bool { return true }, func(k offsetKey) {
			remove(k)
			c.w.Count("offset of a topic that went while nobody led")
		})
	case machine.TimerFired:
		if wants.act == actSweep {
			for _, v := range c.sortedViews() {
				for _, k := range c.expired(v) {
					remove(k)
					c.w.Count("offset expired")
				}
			}
		}
	case machine.Sent:
		if why.asked != nil {
			return c.txnWrites(why.asked.m, wants)
		}
	case machine.Request:
		switch m := why.request.msg.(type) {
		case *kmsg.OffsetCommitRequest:
			return c.commitsOf(why.request, m, wants)
		case *kmsg.TxnOffsetCommitRequest:
			return c.txnWrites(m, wants)
		case *kmsg.WriteTxnMarkersRequest:
			return c.markerWrites(m, wants)
		case *kmsg.OffsetDeleteRequest:
			for i, t := range reply.(*kmsg.OffsetDeleteResponse).Topics {
				for j, p := range t.Partitions {
					if p.ErrorCode == 0 {
						remove(offsetKey{m.Group, m.Topics[i].Topic, m.Topics[i].Partitions[j].Partition})
					}
				}
			}
		case *kmsg.DeleteGroupsRequest:
			for _, id := range wants.doomed {
				for _, k := range c.offsets.all(id) {
					remove(k)
				}
			}
		}
	}
	return out
}

// eachGone lists the offsets whose topic is gone, or another of the same name.
func (c *coordinator) eachGone(which func(offsetKey) bool, do func(offsetKey)) {
	for _, id := range c.offsets.groups() {
		for _, k := range c.offsets.all(id) {
			now := c.w.topics.id(k.topic)
			if which(k) && (now == 0 || c.offsets.isOfAnother(k, now)) {
				do(k)
			}
		}
	}
}

func (c *coordinator) commitsOf(q *request, m *kmsg.OffsetCommitRequest, wants *verdict) []offsetWrite {
	var out []offsetWrite
	n := 0
	for i := range m.Topics {
		for j := range m.Topics[i].Partitions {
			p := &m.Topics[i].Partitions[j]
			if n++; wants.codes[n-1] != 0 {
				continue
			}
			val := committed{
				at: p.Offset, epoch: p.LeaderEpoch, when: c.w.millis(), expire: -1, seq: c.w.steps, pos: c.w.position(),
				topic: c.w.topics.id(m.Topics[i].Topic), generation: m.Generation, who: q.ask.identity(), loose: m.Generation < 0 || p.Partition == roguePartition,
			}
			if c.view(m.Group).isOfConsumers() {
				val.loose = val.loose || !c.view(m.Group).holdsNamed(c.w, m.MemberID, m.Topics[i].Topic, p.Partition)
			} else {
				val.loose = val.loose || !c.w.promises.owns(m.Group, c.view(m.Group).life, m.Generation, val.who)
			}
			if p.Metadata != nil {
				val.metadata = *p.Metadata
				val.loose = val.loose || *p.Metadata == looseMark
			}
			if m.Version <= 4 && m.RetentionTimeMillis != -1 {
				val.expire, val.topic = val.when+m.RetentionTimeMillis, 0 // That version of the record has no place for the id.
			}
			k := offsetKey{m.Group, m.Topics[i].Topic, p.Partition}
			c.checkRewind(q, k, val)
			out = append(out, offsetWrite{key: k, val: val})
		}
	}
	return out
}

// checkRewind checks that a member that took over a partition goes on where the
// member before it stopped: no one could commit in between. One member may
// overtake itself, over two connections.
func (c *coordinator) checkRewind(q *request, k offsetKey, val committed) {
	last, ok := c.offsets.get(k)
	if !ok || val.loose || last.loose || last.who == val.who && (last.generation == val.generation || isConsumers(k.group) || isMixed(k.group)) {
		return
	}
	if val.at < last.at {
		c.w.Violated("%s takes offset %v back from %d (generation %d, %s) to %d", q, k, last.at, last.generation, last.who, val.at)
	}
}

// looseMark is metadata of a commit whose position may be too low, because a
// broker that had been deposed told it.
const looseMark = "from a deposed broker"

// roguePartition is one that clients commit to when they may not.
const roguePartition = 99

const consumerType = "consumer"

// noWait is long enough for anything that is not parked.
const noWait = 10 * time.Second
