package streams

import (
	"muster/internal/group/kind"
	"muster/internal/machine"
)

// An application begins with many members at once. So the first target of a group that was
// empty waits a while (group.streams.initial.rebalance.delay.ms), in which the others come. It
// does not survive a load: the next heartbeat makes the target then.

func (g *Group) startDelay(x *kind.Step) {
	if d := g.Config(x).Of(g.ID).InitialDelay; d > 0 {
		g.delay = x.Arm(g.delayTimer(), x.Now.Add(d))
	}
}

func (g *Group) stopDelay(x *kind.Step) {
	if g.delay != 0 {
		g.delay = 0
		x.Cancel(g.delayTimer())
	}
}

func (g *Group) delayTimer() machine.TimerKey {
	return machine.TimerKey{Kind: kind.TimerJoin, ID: g.ID}
}

// Defers implements modern.Optional.
func (g *Group) Defers(*kind.Step) bool { return g.delay != 0 || g.crowded }

// Fired handles a timer of a streams group.
func (g *Group) Fired(x *kind.Step, e machine.TimerFired) {
	switch {
	case e.Key.Kind != kind.TimerJoin:
		g.Group.Fired(x, e)
	case g.delay == e.Seq:
		g.delay = 0
		g.Retarget(x)
	}
}

// DeleteRecords implements kind.Group.
func (g *Group) DeleteRecords(x *kind.Step) {
	g.stopDelay(x)
	g.Group.DeleteRecords(x)
}
