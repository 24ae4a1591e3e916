package modern

import (
	"errors"
	"fmt"
	"maps"
)

// Check says what is wrong with what groups of all these kinds have, nil if nothing is.
func (g *Group[P, M]) Check() error {
	if g.TargetEpoch > g.Epoch {
		return fmt.Errorf("target epoch %d is above the group's, %d", g.TargetEpoch, g.Epoch)
	}
	for i, m := range g.Members {
		if i > 0 && g.Members[i-1].Common().ID >= m.Common().ID {
			return errors.New("members are not in order")
		}
		if err := g.checkMember(m); err != nil {
			return fmt.Errorf("member %q: %w", m.Common().ID, err)
		}
	}
	return g.checkCounts()
}

func (g *Group[P, M]) checkMember(m M) error {
	mem := m.Common()
	now := mem.Now()
	who, joined := m.Identity()
	if !joined {
		return errors.New("has records and has not joined")
	}
	_, revokes := m.RevokeTimeout()
	switch {
	case now.Epoch > g.TargetEpoch:
		return fmt.Errorf("is in epoch %d, the target in %d", now.Epoch, g.TargetEpoch)
	case now.Epoch < 0 && (now.Epoch != EpochLeaveStatic || who.Instance == nil || len(now.Pending) > 0):
		return errors.New("has left as only a static member does, without anything to let go of")
	case mem.TimerSeq == 0 || mem.TimerAt.After(mem.Deadline):
		return errors.New("no timer runs for its next heartbeat")
	case (now.State == Unrevoked && revokes) != (mem.RevokeSeq != 0):
		return errors.New("a timer runs and it has nothing to let go of, or none runs and it has")
	case now.State.IsKnown() && (now.State == Unrevoked) != (len(now.Pending) > 0):
		return errors.New("its state says something else than what it has to let go of")
	case who.Instance != nil && g.Instances[*who.Instance] != m:
		return errors.New("another member has its instance id")
	}
	for _, list := range [][]Held[P]{now.Assigned, now.Pending} {
		for _, p := range list {
			if p.Since > max(now.Epoch, 0) {
				return fmt.Errorf("%v was given to it in epoch %d, which is to come", p.Part, p.Since)
			}
		}
	}
	return nil
}

// checkCounts compares what is counted with what there is.
func (g *Group[P, M]) checkCounts() error {
	present, unheard, instances := 0, 0, map[string]M{}
	for _, m := range g.Members {
		present++
		if m.Common().Unheard {
			unheard++
		}
		if who, _ := m.Identity(); who.Instance != nil {
			instances[*who.Instance] = m
		}
	}
	var none M
	switch {
	case present != g.Present:
		return fmt.Errorf("%d members, counted are %d", present, g.Present)
	case unheard != g.unheard:
		return fmt.Errorf("%d members were not heard of since the load, counted are %d", unheard, g.unheard)
	case !maps.Equal(instances, g.Instances):
		return fmt.Errorf("%d static members, known are %d", len(instances), len(g.Instances))
	case g.Run != nil && g.Run.Parked != nil && g.Member(g.Run.Parked.Member) == none:
		return errors.New("a heartbeat waits whose member is gone")
	}
	return nil
}
