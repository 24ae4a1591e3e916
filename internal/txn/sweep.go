package txn

import (
	"maps"
	"slices"

	"muster/internal/journal"
	"muster/internal/machine"
)

// sweep aborts transactions that take longer than their client allowed. The time
// counts from the first partition, and neither a load nor another partition
// begins it anew.
func (x *step) sweep() {
	x.ids.fences = nil
	for _, id := range slices.Sorted(maps.Keys(x.ongoing)) {
		x.timeOut(id)
	}
	x.sweepSeq = x.arm(machine.TimerKey{Kind: TimerSweep}, x.now.Add(x.cfg.SweepInterval))
}

// timeOut aborts a transaction if its time is over. If that takes a producer id
// that is not in stock, it is looked at again when there is one.
func (x *step) timeOut(id string) {
	t := x.txns[id]
	if t == nil || t.hard.State != Ongoing || t.hard.Start >= x.now.UnixMilli()-int64(t.hard.Timeout) {
		return
	}
	if !x.fence(t, none, nil, journal.TxnTimedOut) {
		x.ids.fences = append(x.ids.fences, id)
	}
}

// expire removes transactional ids that no one has used for long.
func (x *step) expire() {
	before := x.now.Add(-x.cfg.IDExpiration).UnixMilli()
	told, expired := len(x.out.Notes), 0
	for _, id := range x.sortedIDs() {
		v := x.txns[id].hard
		if (v.State == Empty || v.State.isComplete()) && v.Updated <= before {
			if expired++; expired <= maxExpired {
				x.noteExpired(x.txns[id])
			}
			x.write(id, nil)
		}
	}
	if left := expired - maxExpired; left > 0 {
		x.out.Notes[told].(*journal.Txn).LeftOut = left
	}
	x.expireSeq = x.arm(machine.TimerKey{Kind: TimerExpire}, x.now.Add(x.cfg.ExpireInterval))
}
