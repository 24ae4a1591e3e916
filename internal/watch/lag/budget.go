package lag

// What things take, by the size classes of Go's allocator; a test compares them with
// what is allocated. Groups, positions and partitions include their place in a map or
// list.
const (
	groupSize         = 48 + mapPlace
	behindSize        = 320
	logSize           = 192 + mapPlace
	positionSize      = 64
	deathsSize        = 48 + deathsPlace
	pointSize         = 12
	groupRingSize     = 2304
	partitionRingSize = 448
	placeSize         = 8
	mapPlace          = 80
	deathsPlace       = 192 // A map of the group, which mostly has no more than one.
)

// resting is how long a ring must have rested to give way to another of its kind.
// Without that, busy ones beyond what fits would evict one another at each pass, and
// none would have a history.
const resting = 10 * minute

// budget counts the bytes of a tracker and decides which rings there are.
type budget struct {
	max, bytes int64
	partitions rest[partitionRing]
	groupRings rest[groupRing]
}

// room makes room for a ring. A group's may take the place of any partition's; apart
// from that who is in stays, unless it rests.
func (b *budget) room(size int64, forGroup bool, now tick) bool {
	for b.bytes+size > b.max {
		if !b.evict(forGroup, false, now) {
			return false
		}
	}
	return true
}

// evict drops the ring that rests longest, partitions first. Those that do not rest
// go only if they must, or if they are partitions' and make room for a group's.
func (b *budget) evict(forGroup, must bool, now tick) bool {
	if n := b.partitions.first; n != nil && (forGroup || now-n.moved >= resting) {
		b.dropPartitionRing(n.item.owner)
		return true
	}
	if n := b.groupRings.first; n != nil && forGroup && (must || now-n.moved >= resting) {
		b.dropGroupRing(n.item.owner)
		return true
	}
	return false
}

func (b *budget) dropPartitionRing(p *position) {
	if p.ring == nil {
		return
	}
	b.partitions.remove(&p.ring.node)
	p.ring = nil
	b.bytes -= partitionRingSize
}

func (b *budget) dropGroupRing(g *group) {
	if g.ring == nil {
		return
	}
	b.groupRings.remove(&g.ring.node)
	g.ring = nil
	b.bytes -= groupRingSize
}

// partitionMoved notes that a committed offset has changed. The first time a ring is
// made, if there is room.
func (b *budget) partitionMoved(p *position, now tick) {
	if p.ring == nil {
		if !b.room(partitionRingSize, false, now) {
			return
		}
		p.ring = newPartitionRing(p, p.log.TimeBits)
		b.bytes += partitionRingSize
	}
	b.partitions.touch(&p.ring.node, now)
}

// groupMoved notes that the lag of a group has changed.
func (b *budget) groupMoved(g *group, now tick) {
	if g.ring == nil {
		if !b.room(groupRingSize, true, now) {
			return
		}
		g.ring = newGroupRing(g)
		b.bytes += groupRingSize
	}
	b.groupRings.touch(&g.ring.node, now)
}
