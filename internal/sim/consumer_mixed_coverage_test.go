package sim

import "muster/internal/sim/seeds"

// enoughOfMigrations is the same of runs with groups that go over.
var enoughOfMigrations = seeds.Counts{}
