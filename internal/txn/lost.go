package txn

import (
	"muster/internal/journal"
	"muster/internal/machine"
)

// A store whose server stops may come back without the last that it acknowledged, and what
// it loses it loses from all logs at once, as one server that keeps all of them does. So a
// decision that is in the log is one about records that are there. What began before and
// was not decided may have lost records, in this log or in others, and so may what a
// producer has done since the last record of it that is left.

// loaded begins to serve: what was about to end goes on to, and what the store may have
// lost a part of is aborted.
func (x *step) loaded(e machine.Loaded) {
	x.epoch, x.run = e.Epoch, e.Run
	for _, id := range x.sortedIDs() {
		switch t := x.txns[id]; {
		case t.hard.State.isPrepare():
			x.sendMarkers(t)
		case t.hard.State == Ongoing && t.at < max(x.run.Began, x.run.Lost):
			x.abandon(t)
		}
	}
	x.sweepSeq = x.arm(machine.TimerKey{Kind: TimerSweep}, x.now.Add(x.cfg.SweepInterval))
	x.expireSeq = x.arm(machine.TimerKey{Kind: TimerExpire}, x.now.Add(x.cfg.ExpireInterval))
}

// abandon aborts a transaction that was open when the store's server stopped.
func (x *step) abandon(t *txn) {
	v := t.hard.bumped(noPair)
	if x.hasLostPast(t) || t.hard.isUsedUp() {
		v = v.retired()
	}
	v.State, v.Updated, v.Last = PrepareAbort, x.now.UnixMilli(), none
	x.noteFenced(t, nil, journal.TxnLost, v.told())
	x.write(t.id, v)
	x.sendMarkers(t)
}

// hasLostPast says that the log may have lost later records of a transactional id. Its
// producer may have been given other epochs in them, or another producer id, and may be in
// a transaction of which no one knows: it is fenced, and its id is given to no one again.
func (x *step) hasLostPast(t *txn) bool { return t.at < x.run.Lost }

// retired returns the value with the epoch that no client ever has. The next one who asks
// for a producer gets another id.
func (v *Value) retired() *Value {
	n := *v
	n.Producer.epoch, n.Previous, n.Last, n.Version = lastEpoch+1, none, none, 0
	return &n
}
