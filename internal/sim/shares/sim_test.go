package shares

import (
	"testing"

	"muster/internal/machine"
	"muster/internal/sim/seeds"
	"muster/internal/sim/shell"
)

// defaultSeeds is how many seeds a test run simulates.
const defaultSeeds = 150

// enough is how often things must happen in 1,000 seeds.
var enough = seeds.Counts{
	"InitializeShareGroupState 0": 1000, "ReadShareGroupState 0": 1000, "ReadShareGroupState 42": 100, "ReadShareGroupState 74": 100,
	"WriteShareGroupState 0": 5000, "WriteShareGroupState 74": 100, "WriteShareGroupState 124": 100, "DeleteShareGroupState 0": 100,
	"log cut": 1000, "another coordinator": 500, "core lost": 500, "append failed": 500, "replay compared": 5000, "load": 1000,
}

func simulator() *seeds.Simulator {
	return &seeds.Simulator{Salt: salt, Simulate: Simulate, Default: defaultSeeds, Enough: enough}
}

func tails() *seeds.Simulator {
	return &seeds.Simulator{Salt: salt + 1, Simulate: SimulateTails, Default: defaultSeeds, Enough: seeds.Counts{"tail lost": 1000, "log cut": 500}}
}

func TestSimulation(t *testing.T) { simulator().Test(t) }

func TestSimulationOfLostTails(t *testing.T) { tails().Test(t) }

func TestSameSeedIsSameRun(t *testing.T) {
	simulator().TestSame(t, 5)
	tails().TestSame(t, 5)
}

// Faults of a core are found, and little is left in what is shown of them.
func TestFailureIsShrunk(t *testing.T) {
	for name, plant := range map[string]shell.Plant{
		"answers twice": shell.AnswerTwice,
		"loses an update": func(loaded machine.Loaded, fx *machine.Effects) {
			if loaded.Epoch >= 2 {
				fx.Batches = nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := simulator()
			s.Simulate = func(base *seeds.World) { run(base, false, plant) }
			s.TestShrinks(t, 10)
		})
	}
}
