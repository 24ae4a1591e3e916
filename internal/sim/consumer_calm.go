package sim

import (
	"fmt"
	"regexp"
	"slices"
)

// unsettledConsumers says what of a consumer group is not yet as it must be: Stable,
// with every client in the group's epoch and at what it is to have, and all that they
// subscribe to with one of them (11).
func (w *world) unsettledConsumers(g *consumerPlan) string {
	v := w.lead.view(g.id)
	var want, got []part
	members := 0
	for _, c := range w.consumers {
		if c.group != g || !c.up && !c.starting {
			continue
		}
		members++
		if why := w.unsettledConsumer(v, c); why != "" {
			return why
		}
		got = append(got, c.told...)
		for _, p := range c.wanted() {
			if !slices.Contains(want, p) {
				want = append(want, p)
			}
		}
	}
	if v.exists && len(v.roster.members) != members {
		return fmt.Sprintf("%s: has %d members, %d are alive", g.id, len(v.roster.members), members)
	}
	if members > 0 && v.state != stateStable {
		return fmt.Sprintf("%s: is %s", g.id, v.state)
	}
	slices.SortFunc(want, compareParts)
	slices.SortFunc(got, compareParts)
	if !slices.Equal(want, got) {
		return fmt.Sprintf("%s: its members have %s of %s", g.id, describeParts(got), describeParts(want))
	}
	return ""
}

// unsettledConsumer says what of a member is not yet as it must be.
func (w *world) unsettledConsumer(v *view, c *consumer) string {
	m, ok := v.roster.members[c.member]
	switch {
	case !ok || c.epoch != v.roster.epoch:
		return fmt.Sprintf("%s: %s is in epoch %d of %d", v.id, c.name, c.epoch, v.roster.epoch)
	case !c.hasAll() || !slices.Equal(c.told, sortedParts(m.assigned)):
		return fmt.Sprintf("%s: %s has %s, was told %s, is to have %s", v.id, c.name, describeParts(sortedParts(c.owned)), describeParts(c.told), describeParts(sortedParts(m.assigned)))
	case w.Now-v.heard[c.member] > w.plan.config.Consumer.Session/2:
		return fmt.Sprintf("%s: %s was not heard of lately", v.id, c.name)
	}
	return ""
}

// wanted lists the partitions of what the client subscribes to.
func (c *consumer) wanted() []part {
	var out []part
	for i := range c.w.topics.partitions {
		name := topicName(i)
		t := c.w.topics.image.Topic(name)
		matched := c.regex != "" && regexp.MustCompile("^("+c.regex+")$").MatchString(name)
		if t == nil || !matched && !slices.Contains(c.names, name) {
			continue
		}
		for n := range t.Partitions {
			out = append(out, part{t.ID, int32(n)})
		}
	}
	return out
}
