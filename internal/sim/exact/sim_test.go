package exact

import (
	"testing"

	"muster/internal/sim/seeds"
	"muster/internal/sim/shell"
)

func simulator() *seeds.Simulator {
	return &seeds.Simulator{Salt: salt, Simulate: Simulate, Default: defaultSeeds, Enough: enough}
}

func TestSimulation(t *testing.T) { simulator().Test(t) }

// tails is for runs in which servers lose what they wrote last.
func tails() *seeds.Simulator {
	return &seeds.Simulator{Salt: salt + 1, Simulate: SimulateTails, Default: defaultSeeds / 2, Enough: enoughLost}
}

func TestSimulationOfLostTails(t *testing.T) { tails().Test(t) }

// A fault that takes two changes of the leader is found, and little else is left in what
// is shown of it.
func TestFailureIsShrunk(t *testing.T) {
	s := simulator()
	s.Simulate = func(base *seeds.World) { run(base, false, shell.AnswerTwice) }
	s.TestShrinks(t, 4)
}

func TestSameSeedIsSameRun(t *testing.T) {
	simulator().TestSame(t, 10)
	tails().TestSame(t, 5)
}
