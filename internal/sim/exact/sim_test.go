package exact

import (
	"testing"

	"muster/internal/sim/seeds"
)

func simulator() *seeds.Simulator {
	return &seeds.Simulator{Salt: salt, Simulate: Simulate, Default: defaultSeeds, Enough: enough}
}

func TestSimulation(t *testing.T) { simulator().Test(t) }

func TestSameSeedIsSameRun(t *testing.T) { simulator().TestSame(t, 10) }
