//go:build race

package exact

// defaultSeeds is how many a test run simulates. A run has no goroutines, so
// the race detector has little to find in it.
const defaultSeeds = 200
