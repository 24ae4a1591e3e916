package modern

import (
	"time"

	"muster/internal/group/kind"
)

// FirstEpoch is the epoch of a group in which nothing has happened, and of its target,
// which is empty.
const FirstEpoch = 1

// The epochs by which a member joins and leaves.
const (
	EpochJoin        = 0
	EpochLeave       = -1
	EpochLeaveStatic = -2 // for a while
)

// Epochs are the epochs of a group and of its target assignment: the group's rises with
// each change of who wants what, and the target has the one that it was made for.
//
// An epoch must not be given out twice with another meaning, as little as the number of a
// generation (see kind.NextAfterLoad). It is stored before any member is told of it; but a store may
// lose the end of its log, and a client may be further on then than what is known of its
// member. So the first epoch after a load leaps, and a target that was due when the group
// was loaded is not made for the epoch that the log has, for which there may have been
// another.
type Epochs struct {
	Epoch          int32 // FirstEpoch if there is no record
	Hash           int64 // of the topics that are subscribed to
	TargetEpoch    int32 // FirstEpoch if there is no record
	TargetAt       int64 // when the target was made, in milliseconds
	HasEpoch       bool  // there is a record
	HasTarget      bool  // likewise
	FirstAfterLoad bool  // the group was loaded, and has had no other epoch since
}

// NewEpochs returns those of a group without records.
func NewEpochs() Epochs { return Epochs{Epoch: FirstEpoch, TargetEpoch: FirstEpoch} }

// SetEpoch replays the record of the group's epoch, or its tombstone.
func (e *Epochs) SetEpoch(is bool, epoch int32, hash int64) {
	if e.HasEpoch = is; !is {
		epoch, hash = FirstEpoch, 0
	}
	e.Epoch, e.Hash = epoch, hash
}

// SetTarget replays the record of the target's epoch, or its tombstone.
func (e *Epochs) SetTarget(is bool, epoch int32, at int64) {
	if e.HasTarget = is; !is {
		epoch, at = FirstEpoch, 0
	}
	e.TargetEpoch, e.TargetAt = epoch, at
}

// Next is the epoch that the group has next, in a leader epoch of its partition.
func (e *Epochs) Next(leaderEpoch int32) int32 {
	if !e.FirstAfterLoad {
		return e.Epoch + 1
	}
	e.FirstAfterLoad = false
	return kind.NextAfterLoad(e.Epoch, leaderEpoch, 0)
}

// MustRenew says whether the group must have another epoch since it was loaded before there
// was a target for the one that it has.
func (e *Epochs) MustRenew() bool { return e.FirstAfterLoad && e.IsBehind() }

// IsBehind says whether there is no target yet for the group's epoch.
func (e *Epochs) IsBehind() bool { return e.TargetEpoch < e.Epoch }

// MayTarget says whether enough time has passed since the last target was made. A clock that
// went back does not make it longer.
func (e *Epochs) MayTarget(now time.Time, interval time.Duration) bool {
	millis := now.UnixMilli()
	return !e.HasTarget || interval <= 0 || millis >= e.TargetAt+interval.Milliseconds() || millis < e.TargetAt
}
