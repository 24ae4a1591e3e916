package web

import (
	"fmt"

	"muster/internal/watch/groupview"
	"muster/internal/web/problem"
	"muster/internal/words"
)

// executeReset moves committed offsets as somebody has seen it planned. It checks that they
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
	// One of a group at a time, so that nobody executes a plan twice. Who waited would hold
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
