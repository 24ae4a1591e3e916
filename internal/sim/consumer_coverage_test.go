package sim

import "muster/internal/sim/seeds"

// enoughOfConsumers is the same of runs with consumer groups.
var enoughOfConsumers = seeds.Counts{}
