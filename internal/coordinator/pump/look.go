package pump

import "muster/internal/machine"

// Core returns the core while it is loaded, nil else, for someone who only looks at it.
// It may be ahead of the log: what is not durable yet must not be told to clients, who
// could act on it.
func (p *Pump) Core() machine.Core {
	if p.phase != active {
		return nil
	}
	return p.core
}
