package group

import (
	"maps"
	"slices"

	"muster/internal/journal"
	"muster/internal/machine"
)

// sweep removes expired offsets, and groups that are empty of members and
// offsets (KIP-211).
func (x shardStep) sweep() {
	for _, id := range x.groupIDs() {
		g := x.groups[id]
		x.noteOffsets(g, journal.KindOffsetsExpired, x.expireOffsets(g), journal.CauseExpired, nil)
		if b := g.common(); !b.gone && g.isEmpty() && !b.hasOffsets() && g.weight() == 0 { // No member id was given out.
			g.deleteRecords(x.step)
			x.noteCount(g, journal.KindDeleted, offsetCount{}, journal.CauseExpired, nil)
		}
	}
	x.shard.txns.sweep(x.now)
	x.arm(machine.TimerKey{Kind: TimerSweep}, x.now.Add(x.cfg.SweepInterval))
}

// expireOffsets removes what of a group has expired. What counts depends on who
// might still need it.
func (x shardStep) expireOffsets(g Group) (gone offsetCount) {
	subscribed, empty, ok := g.expires()
	if !ok {
		return gone
	}
	b := g.common()
	for _, topic := range slices.Sorted(maps.Keys(b.offsets)) {
		if subscribed(topic) {
			continue
		}
		for _, p := range b.offsets[topic].partitions() {
			o, _ := b.offsets[topic].get(p)
			from := o.CommitTimestamp
			if empty >= 0 {
				from = empty
			}
			expire := from + x.cfg.OffsetsRetention.Milliseconds()
			if o.ExpireTimestamp != -1 {
				expire = o.ExpireTimestamp
			}
			if x.now.UnixMilli() >= expire && len(b.unstable[topicPartition{topic, p}]) == 0 {
				x.forgetOffset(g, topic, p, &gone)
			}
		}
	}
	return gone
}
