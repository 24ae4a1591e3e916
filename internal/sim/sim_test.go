package sim

import (
	"testing"

	"muster/internal/sim/seeds"
	"muster/internal/sim/shell"
)

func simulator() *seeds.Simulator {
	return &seeds.Simulator{Salt: salt, Simulate: Simulate, Default: defaultSeeds, Enough: enough}
}

func TestSimulation(t *testing.T) { simulator().Test(t) }

// consumers has groups of the consumer protocol. It has a salt of its own, so that the
// same seed is another run.
func consumers() *seeds.Simulator {
	return &seeds.Simulator{Salt: salt + 1, Simulate: SimulateConsumers, Default: consumerSeeds, Enough: enoughOfConsumers}
}

func TestSimulationOfConsumers(t *testing.T) { consumers().Test(t) }

// migrations has groups whose clients go over from one protocol to the other.
func migrations() *seeds.Simulator {
	return &seeds.Simulator{Salt: salt + 2, Simulate: SimulateMigration, Default: migrationSeeds, Enough: enoughOfMigrations}
}

func TestSimulationOfMigrations(t *testing.T) { migrations().Test(t) }

// A fault that takes two changes of the leader is found, and little else is left in what
// is shown of it.
func TestFailureIsShrunk(t *testing.T) {
	s := simulator()
	s.Simulate = func(base *seeds.World) { run(base, newPlan(base.Rand), shell.AnswerTwice) }
	s.TestShrinks(t, 4)
}

func TestSameSeedIsSameRunOfMigrations(t *testing.T) { migrations().TestSame(t, 20) }

func TestSameSeedIsSameRunOfConsumers(t *testing.T) { consumers().TestSame(t, 20) }

func TestSameSeedIsSameRun(t *testing.T) { simulator().TestSame(t, 20) }
