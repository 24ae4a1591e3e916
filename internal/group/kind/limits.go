package kind

import "github.com/twmb/franz-go/pkg/kerr"

const (
	// MaxMemberBytes is how much a member may say of itself. Kafka cannot store a group
	// with a member that says more: its record would be larger than message.max.bytes.
	MaxMemberBytes = 1 << 20
	// MaxGroupBytes is how much all members of a group may say, and be assigned.
	MaxGroupBytes = 16 << 20
	// MemberBytes is about what a member takes besides.
	MemberBytes = 512
)

// Weigh says that the step may change what a group holds.
func (x *Step) Weigh(id string) {
	x.weighAgain()
	x.Weighed, x.before = id, x.weightOf(id)
}

// weighAgain counts what the step has changed.
func (x *Step) weighAgain() {
	if x.Weighed != "" {
		x.TotalWeight += x.weightOf(x.Weighed) - x.before
	}
}

// weightOf is how many bytes the members of a group hold.
func (s *Shard) weightOf(id string) int64 {
	if g := s.Groups[id]; g != nil {
		return g.Weight()
	}
	return 0
}

// WeighAll counts everything anew.
func (s *Shard) WeighAll() {
	s.TotalWeight = 0
	for _, id := range s.GroupIDs() {
		s.TotalWeight += s.Groups[id].Weight()
	}
}

// Room says whether there is room for a member that says so many bytes, and said so many
// before.
func (x *Step) Room(group string, bytes, before int) *kerr.Error {
	if bytes > MaxMemberBytes {
		return kerr.UnknownServerError
	}
	return x.RoomFor(group, int64(bytes-before))
}

// RoomFor says whether there is room for so much more of a group.
func (x *Step) RoomFor(group string, more int64) *kerr.Error {
	switch {
	case more <= 0:
		return nil
	case x.weightOf(group)+more > MaxGroupBytes:
		return kerr.GroupMaxSizeReached
	case x.Cfg.MaxBytes > 0 && x.others+x.TotalWeight+more > x.Cfg.MaxBytes:
		return kerr.CoordinatorNotAvailable // There may be room for it later.
	}
	return nil
}

// HasRoom says whether a group may hold so many bytes more.
func (x *Step) HasRoom(group string, more int64) bool {
	return more <= 0 || x.weightOf(group)+more <= MaxGroupBytes && (x.Cfg.MaxBytes <= 0 || x.others+x.TotalWeight+more <= x.Cfg.MaxBytes)
}
