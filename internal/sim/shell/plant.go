package shell

import "muster/internal/machine"

// Plant spoils what a core does that was loaded so. Tests of a simulator plant faults, to
// see that it finds them.
type Plant func(machine.Loaded, *machine.Effects)

// AnswerTwice is a core that gives each answer twice, once leaders have changed often
// enough: it takes two faults to find that.
func AnswerTwice(loaded machine.Loaded, fx *machine.Effects) {
	if loaded.Epoch >= 3 {
		fx.Replies = append(fx.Replies, fx.Replies...)
	}
}

// planted is a core with a fault.
type planted struct {
	machine.Core
	loaded machine.Loaded
	spoil  Plant
}

// Step implements machine.Core.
func (p *planted) Step(in machine.Input) machine.Effects {
	fx := p.Core.Step(in)
	p.spoil(p.loaded, &fx)
	return fx
}
