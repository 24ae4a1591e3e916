//go:build race

package sim

// defaultSeeds is how many a test run simulates. A run has no goroutines, so
// the race detector has little to find in it.
const (
	defaultSeeds   = 300
	consumerSeeds  = 40
	migrationSeeds = 40
)
