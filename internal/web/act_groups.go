package web

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"muster/internal/auth"
	"muster/internal/watch/groupview"
	"muster/internal/web/act"
	"muster/internal/web/problem"
	"muster/internal/words"
)

func (a *api) deleteGroup(c *call, q *ActQuery, _ *Nothing) (*Done, error) {
	name := c.param("group")
	if q.Preview {
		return a.previewDeleteGroup(c, name)
	}
	if err := a.acts.DeleteGroup(c.ctx(), c.asker(), name); err != nil {
		return nil, err
	}
	return done("Group %q was deleted.", name), nil
}

// groupToAct returns a group that someone wants to do something to.
func (a *api) groupToAct(c *call, name string, needs ...need) (*groupview.Group, error) {
	if err := a.allowed(c, needs); err != nil {
		return nil, err
	}
	g, err := groupview.NewLoader(a.reads.Source()).One(c.ctx(), name)
	if err == nil && g == nil {
		err = problem.NotFound("there is no group %q", name)
	}
	return g, err
}

func (a *api) previewDeleteGroup(c *call, name string) (*Done, error) {
	g, err := a.groupToAct(c, name, deletesGroup)
	if err != nil {
		return nil, err
	}
	committed, topics := 0, map[string]bool{}
	for i := range g.Partitions {
		if p := &g.Partitions[i]; p.Committed != nil {
			committed++
			topics[p.Topic] = true
		}
	}
	out := preview(fmt.Sprintf("Group %q would be deleted, with what it has committed in %s of %s.", name, words.Plural(committed, "partition"), words.Plural(len(topics), "topic")))
	if committed > 0 {
		out.Sentences = append(out.Sentences, "A group of this name that comes later begins where auto.offset.reset of its consumers says, at the end by default.")
	}
	out.Effect = &Effect{Partitions: committed, Groups: []string{name}, Members: len(g.Members)}
	out.Refused = busyGroup(g)
	return out, nil
}

// busyGroup says why nothing can be done to a group that has members.
func busyGroup(g *groupview.Group) string {
	if g == nil || len(g.Members) == 0 && (g.State == groupview.Empty || g.State == groupview.Dead) {
		return ""
	}
	names := g.ShortNames()
	var who []string
	for i := range g.Members {
		if len(who) == 10 {
			break
		}
		who = append(who, names[g.Members[i].ID]+" at "+g.Members[i].Host)
	}
	return fmt.Sprintf("group %q has %s (%s); stop them first", g.Name, words.Plural(len(g.Members), "member"), words.ListSome(who, len(g.Members)))
}

func (a *api) deleteOffsets(c *call, q *ActQuery, o *OffsetsToForget) (*Done, error) {
	name := c.param("group")
	if o.Topic == "" {
		return nil, problem.BadRequest("say of which topic")
	}
	if len(o.Topic) > math.MaxInt16 { // OffsetDelete has no room for more.
		return nil, problem.BadRequest("the name of the topic may have at most %d bytes", math.MaxInt16)
	}
	if err := someOf(o.Partitions); err != nil {
		return nil, err
	}
	partitions := slices.Sorted(slices.Values(o.Partitions))
	if len(slices.Compact(slices.Clone(partitions))) < len(partitions) {
		return nil, problem.BadRequest("a partition is named twice")
	}
	if err := a.may(c.asks(auth.Delete, auth.Group, name)); err != nil {
		return nil, err
	}
	if err := a.may(c.asks(auth.Read, auth.Topic, o.Topic)); err != nil {
		return nil, err
	}
	var named []groupview.TopicPartition
	for _, i := range partitions {
		named = append(named, groupview.TopicPartition{Topic: o.Topic, Partition: i})
	}
	found, err := a.acts.Committed(c.ctx(), c.asker(), name, named)
	if err != nil {
		return nil, err
	}
	partitions = nil
	for tp := range found {
		if tp.Topic == o.Topic {
			partitions = append(partitions, tp.Partition)
		}
	}
	if len(partitions) == 0 {
		return nil, problem.NotFound("group %q has committed nothing there", name)
	}
	if !q.Preview {
		if err := a.acts.DeleteOffsets(c.ctx(), c.asker(), name, o.Topic, partitions); err != nil {
			return nil, err
		}
		return done("What group %q has committed in %s of topic %q was deleted.", name, words.Plural(len(partitions), "partition"), o.Topic), nil
	}
	return a.previewDeleteOffsets(c, name, o.Topic, len(partitions))
}

// someOf refuses a list of partitions without any: all are meant only where there is no list.
func someOf(partitions []int32) error {
	if partitions != nil && len(partitions) == 0 {
		return problem.BadRequest("partitions is empty; leave it out for all of the topic")
	}
	return nil
}

func (a *api) previewDeleteOffsets(c *call, name, topic string, partitions int) (*Done, error) {
	g, err := a.groupToAct(c, name, deletesGroup)
	if err != nil {
		return nil, err
	}
	out := preview(
		fmt.Sprintf("What group %q has committed in %s of topic %q would be deleted.", name, words.Plural(partitions, "partition"), topic),
		"Its consumers begin there where their auto.offset.reset says, at the end by default.",
	)
	out.Effect = &Effect{Partitions: partitions, Groups: []string{name}, Members: len(g.Members)}
	if len(g.Members) > 0 && slices.Contains(g.Subscribed(), topic) {
		out.Refused = fmt.Sprintf("members of group %q subscribe to topic %q; stop them first", name, topic)
	}
	return out, nil
}

func (a *api) removeMember(c *call, q *ActQuery, m *act.MemberToRemove) (*Done, error) {
	name := c.param("group")
	if (m.Member == "") == (m.Instance == "") {
		return nil, problem.BadRequest("say which member: by memberId, or a static one by instanceId")
	}
	if len(m.Reason) > maxReason {
		return nil, problem.BadRequest("the reason may have at most %d bytes", maxReason)
	}
	who := cmp.Or(m.Instance, m.Member)
	if !q.Preview {
		if err := a.acts.RemoveMember(c.ctx(), c.asker(), name, m); err != nil {
			return nil, err
		}
		return done("Member %q was removed from group %q. If it still runs, it joins again.", who, name), nil
	}
	g, err := a.groupToAct(c, name, readsGroup)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(g.Members, func(x groupview.Member) bool {
		return m.Instance != "" && x.Instance != nil && *x.Instance == m.Instance || m.Member != "" && x.ID == m.Member
	})
	if i < 0 {
		return nil, problem.NotFound("group %q has no member %q", name, who)
	}
	x := &g.Members[i]
	out := preview(
		fmt.Sprintf("Member %s would be removed from group %q, and its %s given to others.", g.MemberName(x.ID), name, words.Plural(x.PartitionCount(), "partition")),
		disturbs(len(g.Members)-1)+" What the member has read and not committed is read again.",
		"It does not stop the process: one that still runs joins again.",
	)
	out.Effect = &Effect{Partitions: x.PartitionCount(), Groups: []string{name}, Members: len(g.Members)}
	return out, nil
}

// disturbs says what the removal of a member is for the others.
func disturbs(others int) string {
	if others == 0 {
		return "It is the only member: no one reads then."
	}
	return fmt.Sprintf("The group rebalances, which disturbs its other %s.", words.Plural(others, "member"))
}

// maxReason is how long a reason may be.
const maxReason = 200
