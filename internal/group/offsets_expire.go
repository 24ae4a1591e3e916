package group

import (
	"maps"
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/subscription"
	"muster/internal/journal"
	"muster/internal/machine"
)

// sweep removes expired offsets, and groups that are empty of members and
// offsets (KIP-211).
func (x step) sweep() {
	for _, id := range x.GroupIDs() {
		g := x.Groups[id]
		x.noteOffsets(g, journal.KindOffsetsExpired, x.expireOffsets(g), journal.CauseExpired, nil)
		if b := g.Common(); !b.Gone && g.IsEmpty() && !b.HasOffsets() && g.Weight() == 0 && !stays(g) { // No member id was given out.
			g.DeleteRecords(x.Step)
			x.noteCount(g, journal.KindDeleted, offsetCount{}, journal.CauseExpired, nil)
		}
	}
	x.shard.txns.sweep(x.Now)
	x.Arm(machine.TimerKey{Kind: kind.TimerSweep}, x.Now.Add(x.Cfg.SweepInterval))
}

// expireOffsets removes what of a group has expired. What counts depends on who
// might still need it.
func (x step) expireOffsets(g kind.Group) (gone offsetCount) {
	subscribed, empty, ok := g.Expires()
	if !ok {
		return gone
	}
	b := g.Common()
	for _, topic := range slices.Sorted(maps.Keys(b.Offsets)) {
		if subscribed(topic) {
			continue
		}
		for _, p := range b.Offsets[topic].Partitions() {
			o, _ := b.Offsets[topic].Get(p)
			from := o.CommitTimestamp
			if empty >= 0 {
				from = empty
			}
			expire := from + x.Cfg.OffsetsRetention.Milliseconds()
			if o.ExpireTimestamp != -1 {
				expire = o.ExpireTimestamp
			}
			if x.Now.UnixMilli() >= expire && len(b.Unstable[subscription.TopicPartition{Topic: topic, Partition: p}]) == 0 {
				x.forgetOffset(g, topic, p, &gone)
			}
		}
	}
	return gone
}
