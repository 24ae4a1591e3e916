// Package seeds is what simulators have in common: a world that one seed decides,
// with a clock that jumps from event to event, and the test that runs many of
// them.
//
// It knows nothing of what is simulated. A simulator embeds World, has things
// happen in it, and says by Violated that a rule is broken:
//
//	func simulate(base *seeds.World) {
//		w := newWorld(base)
//		w.RunUntil(w.plan.chaos)
//		w.settle()
//	}
//
// A run has no goroutines and asks its World alone for time and chance, so the same
// seed is the same run. Each event has a chance of its own (cause.go), so that a fault
// can be left out without changing all that comes after it: a run that breaks a rule is
// made shorter before it is printed (shrink.go).
package seeds
