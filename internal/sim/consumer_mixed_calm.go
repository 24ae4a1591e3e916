package sim

import (
	"fmt"
	"slices"

	"muster/internal/group"
)

// calmSlots decides which protocols are used in the calm phase. With a policy that does
// not let the others in, there is only one.
func (w *world) calmSlots(cfg *group.Config) {
	if len(w.slots) == 0 {
		return
	}
	kind := w.Rand.IntN(3)
	if kind == 0 && w.plan.maxBatch > 0 {
		kind = 1 // A group may be too large to be upgraded.
	}
	policies := []group.MigrationPolicy{group.MigrateBoth, group.MigrateUpgrade, group.MigrateDowngrade, group.MigrateNever}
	cfg.Consumer.Migration = policies[w.Rand.IntN(2+kind)]
	w.Tracef("policy %s, protocols %d", cfg.Consumer.Migration, kind)
	for _, s := range w.slots {
		switch kind {
		case 1:
			s.consumer.retire()
			s.classic.benched = false
		case 2:
			s.classic.retire()
			s.consumer.benched = false
		default:
			if s.classic.instance != nil && !s.classic.benched && !s.consumer.benched { // They would fence each other for ever.
				s.classic.retire()
			}
		}
	}
	w.Count("calm with " + []string{"both protocols", "the classic protocol", "the consumer protocol"}[kind])
}

func (c *client) retire() {
	if c.benched = true; c.up {
		c.stop()
	}
}

func (c *consumer) retire() {
	if c.benched = true; c.up {
		c.stop()
	}
}

// mixedGroups lists the groups whose clients use both protocols.
func (w *world) mixedGroups() (out []*groupPlan) {
	for i := range w.plan.groups {
		if isMixed(w.plan.groups[i].id) {
			out = append(out, &w.plan.groups[i])
		}
	}
	return out
}

// unsettledMixed says what of such a group is not yet as it must be, as either kind of
// group: everybody is in it, in the same epoch, and they have all that they subscribe to
// (11).
func (w *world) unsettledMixed(g *groupPlan) string {
	v := w.lead.view(g.id)
	members := 0
	var want, got []topicPartition
	for _, s := range w.slots {
		if c := s.consumer; c.group.id == g.id && (c.up || c.starting) {
			if members++; !v.hasConsumers() {
				return fmt.Sprintf("%s: %s uses the consumer protocol", v, c.name)
			}
			if why := w.unsettledConsumer(v, c); why != "" {
				return why
			}
			got = append(got, w.namedParts(c.told)...)
			want = append(want, w.namedParts(c.wanted())...)
		}
	}
	if !v.hasConsumers() {
		return w.unsettledGroup(g)
	}
	for _, s := range w.slots {
		if c := s.classic; c.group == g && (c.up || c.starting) {
			members++
			if why := w.unsettledClassic(v, c); why != "" {
				return why
			}
			got = append(got, c.owned...)
			want = append(want, slices.DeleteFunc(w.topics.all(), func(tp topicPartition) bool { return !slices.Contains(c.topics, tp.topic) })...)
		}
	}
	if len(v.roster.members) != members {
		return fmt.Sprintf("%s: has %d members, %d are alive", g.id, len(v.roster.members), members)
	}
	if members > 0 && v.state != stateStable {
		return fmt.Sprintf("%s: is %s", g.id, v.state)
	}
	slices.SortFunc(want, comparePartitions)
	slices.SortFunc(got, comparePartitions)
	if !slices.Equal(slices.Compact(want), got) {
		return fmt.Sprintf("%s: its members have %v of %v", g.id, got, want)
	}
	w.Count("settled as a mixed group")
	return ""
}

// unsettledClassic says what of a member of the classic protocol is not yet as it must
// be in a consumer group.
func (w *world) unsettledClassic(v *view, c *client) string {
	m, ok := v.roster.members[c.member]
	switch {
	case !ok || c.phase != stable || c.generation != v.roster.epoch:
		return fmt.Sprintf("%s: %s is %s in generation %d of %d, phase %d", v.id, c.name, short(c.member), c.generation, v.roster.epoch, c.phase)
	case !slices.Equal(slices.SortedFunc(slices.Values(c.owned), comparePartitions), w.namedParts(sortedParts(m.assigned))):
		return fmt.Sprintf("%s: %s has %v, is to have %s", v.id, c.name, c.owned, describeParts(sortedParts(m.assigned)))
	case w.Now-v.heard[c.member] > c.session/2:
		return fmt.Sprintf("%s: %s was not heard of lately", v.id, c.name)
	}
	return ""
}

// namedParts are partitions by their topics' names, of those that exist, in order.
func (w *world) namedParts(list []part) []topicPartition {
	out := []topicPartition{}
	for _, p := range list {
		if tp, ok := w.named(p); ok {
			out = append(out, tp)
		}
	}
	slices.SortFunc(out, comparePartitions)
	return out
}
