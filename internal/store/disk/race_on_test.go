//go:build race

package disk

// raceEnabled says that tests run under the race detector, ten times slower,
// and should do a part of the work.
const raceEnabled = true
