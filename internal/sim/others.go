package sim

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// addOthers adds administrators, and consumers outside of the group protocol.
func (w *world) addOthers() {
	for i := range w.plan.simple {
		p := &peer{w: w, name: fmt.Sprintf("simple-%d", i), up: true}
		w.others = append(w.others, p)
		at := int64(0)
		w.Every(3*time.Second, func() { w.simpleStep(p, &at) })
	}
	for i := range w.plan.admins {
		p := &peer{w: w, name: fmt.Sprintf("admin-%d", i), up: true}
		w.others = append(w.others, p)
		w.Every(w.plan.faults.admin, func() { p.call(w.adminRequest(), noWait, p.answered) })
	}
}

// answered is all that an administrator does with an answer: the checks of
// steps have looked at it before.
func (p *peer) answered(a answer) {
	if a.msg != nil && codeOf(a.msg) == codeNotCoordinator {
		p.hangUp()
	}
}

// simpleStep commits or fetches.
func (w *world) simpleStep(p *peer, at *int64) {
	tp := topicPartition{topicName(0), int32(w.Rand.IntN(3))}
	if w.Rand.IntN(3) == 0 {
		p.call(w.anyFetch(p.name), noWait, p.answered)
		return
	}
	*at += int64(w.Rand.IntN(5))
	p.call(w.simpleCommit(p.name, tp, *at), noWait, p.answered)
}

// simpleCommit is a commit without generation.
func (w *world) simpleCommit(group string, tp topicPartition, at int64) kmsg.Request {
	m := kmsg.NewPtrOffsetCommitRequest()
	m.Version, m.Group, m.Generation, m.RetentionTimeMillis = int16(2+w.Rand.IntN(8)), group, -1, -1
	if m.Version <= 4 && w.Rand.IntN(2) == 0 {
		m.RetentionTimeMillis = w.Between(time.Second, 30*time.Second).Milliseconds()
	}
	addCommit(m, tp, at, "")
	return m
}

// anyGroup is one of the groups, or one that does not exist.
func (w *world) anyGroup() string {
	switch n := w.Rand.IntN(8); {
	case n == 0:
		return "unknown"
	case n == 1:
		return "simple-0"
	default:
		ids := w.groupIDs()
		return ids[n%len(ids)]
	}
}

func (w *world) anyPartition() topicPartition {
	return topicPartition{topicName(w.Rand.IntN(2)), int32(w.Rand.IntN(6))}
}

func (w *world) groupIDs() (out []string) {
	for i := range w.plan.groups {
		out = append(out, w.plan.groups[i].id)
	}
	for i := range w.plan.consumers {
		out = append(out, w.plan.consumers[i].id)
	}
	return out
}

func (w *world) adminRequest() kmsg.Request {
	if len(w.plan.consumers) > 0 && w.Rand.IntN(8) == 0 {
		m := kmsg.NewPtrConsumerGroupDescribeRequest()
		m.Version, m.Groups = 1, []string{w.anyGroup(), w.anyGroup()}
		return m
	}
	switch w.Rand.IntN(8) {
	case 0:
		m := kmsg.NewPtrDescribeGroupsRequest()
		m.Version, m.Groups = int16(w.Rand.IntN(7)), []string{w.anyGroup(), w.anyGroup()}
		return m
	case 1:
		m := kmsg.NewPtrListGroupsRequest()
		m.Version = 5
		if w.Rand.IntN(2) == 0 {
			m.StatesFilter = []string{stateStable, statePreparing}
		}
		return m
	case 2:
		m := kmsg.NewPtrDeleteGroupsRequest()
		m.Version, m.Groups = int16(w.Rand.IntN(3)), []string{w.anyGroup(), w.anyGroup()}
		return m
	case 3, 4:
		m := kmsg.NewPtrOffsetDeleteRequest()
		m.Group = w.anyGroup()
		for range 1 + w.Rand.IntN(6) {
			tp := w.anyPartition()
			t := kmsg.NewOffsetDeleteRequestTopic()
			t.Topic = tp.topic
			t.Partitions = append(t.Partitions, kmsg.OffsetDeleteRequestTopicPartition{Partition: tp.partition})
			m.Topics = append(m.Topics, t)
		}
		return m
	case 5:
		return w.simpleCommit(w.anyGroup(), w.anyPartition(), int64(w.Rand.IntN(20)))
	case 6:
		return w.anyFetch(w.anyGroup())
	}
	return w.removeRequest()
}

// anyFetch asks for all offsets of a group, perhaps for stable ones.
func (w *world) anyFetch(group string) kmsg.Request {
	m := fetchRequest(group, nil)
	m.RequireStable = w.Rand.IntN(2) == 0
	return m
}

// removeRequest removes members by instance id, or by an id that is wrong.
func (w *world) removeRequest() kmsg.Request {
	m := kmsg.NewPtrLeaveGroupRequest()
	m.Version, m.Group = int16(3+w.Rand.IntN(3)), w.anyGroup()
	if len(w.slots) > 0 {
		w.removeSlot(m)
		return m
	}
	for range 1 + w.Rand.IntN(3) {
		e := kmsg.NewLeaveGroupRequestMember()
		if len(w.clients) == 0 {
			w.removeConsumer(&e)
		} else if c := w.clients[w.Rand.IntN(len(w.clients))]; w.Rand.IntN(2) == 0 {
			id := fmt.Sprintf("instance-%d", w.Rand.IntN(5))
			e.InstanceID = &id
			if w.Rand.IntN(4) == 0 {
				e.MemberID = c.member
			}
		} else if w.Rand.IntN(2) == 0 {
			e.MemberID = c.member
		} else {
			e.MemberID = "nobody"
		}
		m.Members = append(m.Members, e)
	}
	return m
}
