package streams

import (
	"errors"
	"fmt"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
)

// Check says what is wrong with a streams group.
func (g *Group) Check() error {
	if err := g.Group.Check(); err != nil {
		return err
	}
	active, held, targets, bytes := map[TaskID]string{}, map[place]string{}, map[TaskID]string{}, topologyBytes(g.Topology)
	for _, m := range g.Members {
		bytes += memberBytes(m)
		if err := g.checkHeld(m, active, held); err != nil {
			return fmt.Errorf("member %q: %w", m.ID, err)
		}
		if err := g.checkTarget(m, targets); err != nil {
			return fmt.Errorf("member %q: %w", m.ID, err)
		}
	}
	switch {
	case len(active) != len(g.actives) || len(held) != len(g.holders):
		return fmt.Errorf("%d tasks are active and %d held, known are %d and %d", len(active), len(held), len(g.actives), len(g.holders))
	case bytes != g.bytes:
		return fmt.Errorf("members and topology hold %d bytes, counted are %d", bytes, g.bytes)
	case g.Present > 0 && g.Topology == nil:
		return errors.New("has members and no topology")
	case g.Present == 0 && (g.delay != 0 || g.shutdown != ""):
		return errors.New("waits for a first assignment, or shuts down, without members")
	}
	return g.checkStandbys()
}

// checkHeld says what is wrong with what a member has: a task is active once, and once in a
// process.
func (g *Group) checkHeld(m *Member, active map[TaskID]string, held map[place]string) (err error) {
	if m.Current == nil {
		return nil
	}
	m.held(func(t Task) {
		at := place{m.process(), t.TaskID}
		if other, ok := held[at]; ok && err == nil && other != m.ID {
			err = fmt.Errorf("task %v is in its process as %q's as well", t, other)
		}
		held[at] = m.ID
		if t.Role != Active {
			return
		}
		if other, ok := active[t.TaskID]; ok && err == nil {
			err = fmt.Errorf("task %v is active as %q's as well", t, other)
		}
		if active[t.TaskID] = m.ID; g.actives[t.TaskID] != m && err == nil {
			err = fmt.Errorf("task %v is known as no one's", t)
		}
	})
	return err
}

// checkTarget says what is wrong with what a member is to have. When the target is as new as the
// group, no task is active in two, who is stable has its target, and there is none unless the
// topology is ready.
func (g *Group) checkTarget(m *Member, targets map[TaskID]string) error {
	if g.TargetEpoch < g.Epoch {
		return nil
	}
	if !g.isReady() && len(m.Target) > 0 {
		return fmt.Errorf("is to have %d tasks of a topology that is not ready", len(m.Target))
	}
	for _, t := range m.Target {
		if t.Role != Active {
			continue
		}
		if other, ok := targets[t.TaskID]; ok {
			return fmt.Errorf("task %v is to be %q's as well", t, other)
		}
		targets[t.TaskID] = m.ID
	}
	now := m.Now()
	if now.Epoch != g.TargetEpoch || now.State != modern.Stable {
		return nil
	}
	if _, surplus, missing := modern.Split(now.Assigned, m.Target); len(surplus) > 0 || len(missing) > 0 {
		return fmt.Errorf("is stable with %d tasks too many and %d too few", len(surplus), len(missing))
	}
	return nil
}

// checkStandbys says whether a target has more standbys of a task than there are to be, or two
// of one in a process.
func (g *Group) checkStandbys() error {
	if g.TargetEpoch < g.Epoch || g.Present == 0 {
		return nil
	}
	copies, there, all := map[TaskID]int{}, map[place]bool{}, map[TaskID]bool{}
	for _, m := range g.Members {
		for _, t := range m.Target {
			at := place{m.process(), t.TaskID}
			if there[at] {
				return fmt.Errorf("task %v is to be twice in process %q", t, m.process())
			}
			there[at] = true
			if t.Role == Active {
				all[t.TaskID] = true
			} else if copies[t.TaskID]++; copies[t.TaskID] > g.Standbys {
				return fmt.Errorf("task %v is to have more than %d standbys", t, g.Standbys)
			}
		}
	}
	return g.checkAllTasks(all)
}

// checkAllTasks says whether each task is to be active somewhere.
func (g *Group) checkAllTasks(all map[TaskID]bool) error {
	if !g.isReady() || g.resolved.Resolved == nil || g.resolved.image != g.Seen || !g.resolved.IsReady() {
		return nil
	}
	n := 0
	for _, s := range g.resolved.Subtopologies {
		n += int(s.Tasks)
		for p := range s.Tasks {
			if !all[TaskID{s.ID, p}] {
				return fmt.Errorf("task %d of subtopology %s is to be no one's", p, s.ID)
			}
		}
	}
	if n != len(all) {
		return fmt.Errorf("%d tasks are to be active, there are %d", len(all), n)
	}
	return nil
}

var _ kind.Group = (*Group)(nil)
