package web

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"time"

	"muster/internal/auth"
	"muster/internal/watch/groupview"
	"muster/internal/web/act"
	"muster/internal/web/problem"
	"muster/internal/words"
)

// planReset says what a reset would do, and does nothing.
func (a *api) planReset(c *call, _ *None, ask *ResetAsk) (*ResetPlan, error) {
	name := c.param("group")
	target, err := ask.target(a.now())
	if err != nil {
		return nil, err
	}
	if err := a.allowed(c, []need{readsGroup}); err != nil {
		return nil, err
	}
	if ask.Topic != "" {
		if err := a.may(c.asks(auth.Read, auth.Topic, ask.Topic)); err != nil {
			return nil, err
		}
	}
	g, err := groupview.NewLoader(a.reads.Source()).One(c.ctx(), name)
	if err != nil {
		return nil, err
	}
	of, committed, err := a.resetScope(c, name, ask)
	if err != nil {
		return nil, err
	}
	var from *time.Time
	if target.Kind == groupview.ResetTime {
		at := time.UnixMilli(target.N)
		from = &at
	}
	places, err := a.acts.Offsets(c.ctx(), c.asker(), of, from)
	if err != nil {
		return nil, err
	}
	out := &ResetPlan{Group: name, State: groupview.Dead, Partitions: []ResetPartition{}, Refused: busyGroup(g)}
	if g != nil {
		out.State, out.Members = g.State, len(g.Members)
	}
	for _, tp := range of {
		out.Partitions = append(out.Partitions, resetPartition(tp, target, committed, places))
	}
	out.tell()
	return out, nil
}

// target reads where offsets are to go.
func (r *ResetAsk) target(now time.Time) (groupview.ResetTarget, error) {
	var none groupview.ResetTarget
	if r.Topic == "" && len(r.Partitions) > 0 {
		return none, problem.BadRequest("partitions are those of a topic: name it")
	}
	if err := someOf(r.Partitions); err != nil {
		return none, err
	}
	number := func() (int64, error) {
		n, err := strconv.ParseInt(r.Value, 10, 64)
		if err != nil {
			return 0, problem.BadRequest("value must be a whole number for %s, not %q", r.To, r.Value)
		}
		return n, nil
	}
	switch r.To {
	case "beginning", "end":
		if r.Value != "" {
			return none, problem.BadRequest("%s takes no value", r.To)
		}
		if r.To == "end" {
			return groupview.ResetTarget{Kind: groupview.ResetEnd}, nil
		}
		return groupview.ResetTarget{Kind: groupview.ResetBeginning}, nil
	case "offset":
		n, err := number()
		if err == nil && n < 0 {
			err = problem.BadRequest("an offset is not negative; shift moves back")
		}
		return groupview.ResetTarget{Kind: groupview.ResetOffset, N: n}, err
	case "shift":
		n, err := number()
		return groupview.ResetTarget{Kind: groupview.ResetShift, N: n}, err
	case "timestamp":
		t, ok := words.ParseTime(r.Value, now)
		if !ok {
			return none, problem.BadRequest("%q is no time: %s", r.Value, words.TimeForms)
		}
		return groupview.ResetTarget{Kind: groupview.ResetTime, N: max(t.UnixMilli(), 0)}, nil
	}
	return none, problem.BadRequest("to is beginning, end, offset, timestamp or shift, not %q", r.To)
}

// resetScope finds the partitions that a reset is about, and what is committed there.
func (a *api) resetScope(c *call, group string, ask *ResetAsk) (of []groupview.TopicPartition, committed map[groupview.TopicPartition]int64, err error) {
	if ask.Topic != "" {
		if of, err = a.partitionsNamed(ask); err != nil {
			return nil, nil, err
		}
	}
	if committed, err = a.acts.Committed(c.ctx(), c.asker(), group, of); err != nil {
		return nil, nil, err
	}
	if ask.Topic == "" {
		if of = slices.Collect(maps.Keys(committed)); len(of) == 0 {
			return nil, nil, problem.NotFound("group %q has committed nothing; name a topic", group)
		}
		for _, tp := range of {
			if err := a.may(c.asks(auth.Read, auth.Topic, tp.Topic)); err != nil {
				return nil, nil, err
			}
		}
	}
	sort.Slice(of, func(i, j int) bool {
		return cmp.Or(cmp.Compare(of[i].Topic, of[j].Topic), cmp.Compare(of[i].Partition, of[j].Partition)) < 0
	})
	return of, committed, nil
}

// partitionsNamed returns the partitions of a topic that someone names, or all.
func (a *api) partitionsNamed(ask *ResetAsk) ([]groupview.TopicPartition, error) {
	t := a.reads.Image().Topic(ask.Topic)
	if t == nil {
		return nil, problem.NotFound("there is no topic %q", ask.Topic)
	}
	var out []groupview.TopicPartition
	seen := map[int32]bool{}
	for _, i := range ask.Partitions {
		switch {
		case i < 0 || int(i) >= len(t.Partitions):
			return nil, problem.NotFound("topic %q has no partition %d; it has %s", t.Name, i, words.Plural(len(t.Partitions), "partition"))
		case seen[i]:
			return nil, problem.BadRequest("partition %d is named twice", i)
		}
		seen[i] = true
		out = append(out, groupview.TopicPartition{Topic: t.Name, Partition: i})
	}
	if len(out) == 0 {
		for i := range t.Partitions {
			out = append(out, groupview.TopicPartition{Topic: t.Name, Partition: int32(i)})
		}
	}
	return out, nil
}

// resetPartition works out what becomes of a partition.
func resetPartition(tp groupview.TopicPartition, target groupview.ResetTarget, committed map[groupview.TopicPartition]int64, places map[groupview.TopicPartition]act.Place) ResetPartition {
	out := ResetPartition{Topic: tp.Topic, Partition: tp.Partition}
	var current *int64
	if at, ok := committed[tp]; ok {
		current = &at
	}
	out.Committed = offset(current)
	place, known := places[tp]
	var log *groupview.Bounds
	if known {
		log = &groupview.Bounds{Start: place.Start, End: place.End}
		out.LogStart, out.LogEnd = offset(&place.Start), offset(&place.End)
	}
	step := target.Step(current, log, place.At)
	out.To, out.Clamped, out.Note = offset(step.To), step.Clamped, step.Note
	if step.To == nil || !place.Dense || current == nil {
		return out
	}
	next := min(max(*current, place.Start), place.End) // Where it goes on without the reset.
	again, skipped := max(next-*step.To, 0), max(*step.To-next, 0)
	out.Again, out.Skipped = &again, &skipped
	return out
}

// tell puts the plan into sentences.
func (p *ResetPlan) tell() {
	moved, again, skipped, clamped, unknown := 0, int64(0), int64(0), 0, 0
	for i := range p.Partitions {
		x := &p.Partitions[i]
		if x.To == nil || x.Committed != nil && *x.Committed == *x.To {
			continue
		}
		moved++
		if x.Clamped {
			clamped++
		}
		if x.Again == nil {
			unknown++
			continue
		}
		again, skipped = again+*x.Again, skipped+*x.Skipped
	}
	say := func(format string, args ...any) { p.Sentences = append(p.Sentences, fmt.Sprintf(format, args...)) }
	if moved == 0 {
		say("Nothing would change: group %q is there already, or its partitions are left alone.", p.Group)
		return
	}
	say("The committed offsets of group %q would be moved in %d of %s.", p.Group, moved, words.Plural(len(p.Partitions), "partition"))
	if again > 0 {
		say("%s would be read again.", words.Plural(int(again), "record"))
	}
	if skipped > 0 {
		say("%s that the group has not read would be skipped.", words.Plural(int(skipped), "record"))
	}
	if unknown > 0 {
		say("For %s the number of records is unknown.", words.Plural(unknown, "partition"))
	}
	if clamped > 0 {
		say("In %s what was asked for lies outside of the log, so that the offset goes to its nearest end.", words.Plural(clamped, "partition"))
	}
	if p.State == groupview.Dead {
		say("There is no group %q; it would be created.", p.Group)
	}
}

// executeReset moves committed offsets as someone has seen it planned. It checks that they
// are still those of the plan; that the group has no members is the coordinator's to see.
func (a *api) executeReset(c *call, _ *None, order *ResetOrder) (*Done, error) {
	name := c.param("group")
	if len(order.Partitions) == 0 {
		return nil, problem.BadRequest("name the partitions of the plan")
	}
	to := map[groupview.TopicPartition]int64{}
	var of []groupview.TopicPartition
	for i := range order.Partitions {
		m := &order.Partitions[i]
		tp := groupview.TopicPartition{Topic: m.Topic, Partition: m.Partition}
		if _, twice := to[tp]; twice {
			return nil, problem.BadRequest("partition %d of topic %q is named twice", m.Partition, m.Topic)
		}
		if m.To < 0 || m.Partition < 0 || m.Topic == "" {
			return nil, problem.BadRequest("partition %d of topic %q to %d: there is no such place", m.Partition, m.Topic, m.To)
		}
		to[tp] = int64(m.To)
		of = append(of, tp)
	}
	// One of a group at a time, so that no one executes a plan twice. Who waited would hold
	// a place among those that are answered.
	if _, underWay := a.resets.LoadOrStore(name, true); underWay {
		return nil, problem.Unavailable(fmt.Sprintf("a reset of group %q is under way; try again", name))
	}
	defer a.resets.Delete(name)
	now, err := a.acts.Committed(c.ctx(), c.asker(), name, of)
	if err != nil {
		return nil, err
	}
	if err := order.moved(name, now); err != nil {
		return nil, err
	}
	if err := a.acts.Commit(c.ctx(), c.asker(), name, to); err != nil {
		return nil, err
	}
	return done("The committed offsets of group %q were moved in %s.", name, words.Plural(len(to), "partition")), nil
}

// moved says whether what is committed is another than that of the plan.
func (o *ResetOrder) moved(group string, now map[groupview.TopicPartition]int64) error {
	for i := range o.Partitions {
		m := &o.Partitions[i]
		at, committed := now[groupview.TopicPartition{Topic: m.Topic, Partition: m.Partition}]
		if committed == (m.Committed != nil) && (!committed || at == int64(*m.Committed)) {
			continue
		}
		is, was := "nothing", "nothing"
		if committed {
			is = fmt.Sprint(at)
		}
		if m.Committed != nil {
			was = fmt.Sprint(int64(*m.Committed))
		}
		return problem.Conflict(fmt.Sprintf("group %q has committed %s in partition %d of topic %q by now, and not %s as in the plan; make a new plan", group, is, m.Partition, m.Topic, was))
	}
	return nil
}
