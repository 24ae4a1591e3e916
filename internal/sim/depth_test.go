package sim

// defaultSeeds is how many a test run simulates.
const (
	defaultSeeds   = 1000
	consumerSeeds  = 150
	migrationSeeds = 150
)
