package broker

import "time"

// SetClock gives the broker a clock for what is watched over time: lag, who fetched when,
// and what clients may take. Tests of other packages move it, because they cannot wait
// until a partition has stood still for long enough. Groups and timers go by the real one.
func (c *Config) SetClock(now func() time.Time) { c.now = now }
