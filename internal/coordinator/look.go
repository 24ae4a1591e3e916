package coordinator

import "muster/internal/machine"

// Led returns the partitions of the core's topic that this broker coordinates. Their
// shards may be loading.
func (c *Coordinator) Led() []int32 {
	shards := c.shards.Load()
	if shards == nil {
		return nil
	}
	var out []int32
	for i, s := range *shards {
		if s != nil {
			out = append(out, int32(i))
		}
	}
	return out
}

// Look lets f look at the core of a shard, which it must neither change nor keep; false
// says that there is none to look at. It holds the lock that requests wait for, so f
// takes a bounded portion, and comes again for the next: between two portions the core
// may have changed, or be another one. What f sees may not be durable yet.
func (c *Coordinator) Look(partition int32, f func(machine.Core)) bool {
	shards := c.shards.Load()
	if shards == nil || partition < 0 || int(partition) >= len(*shards) {
		return false
	}
	s := (*shards)[partition]
	if s == nil || !c.opts.Leads(s.index, s.leaderEpoch) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	core := s.pump.Core()
	if core == nil {
		return false
	}
	f(core)
	return true
}
