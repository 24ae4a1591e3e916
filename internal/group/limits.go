package group

import "github.com/twmb/franz-go/pkg/kerr"

const (
	// maxMemberBytes is how much a member may say of itself. Kafka cannot store a group
	// with a member that says more: its record would be larger than message.max.bytes.
	maxMemberBytes = 1 << 20
	// maxGroupBytes is how much all members of a group may say, and be assigned.
	maxGroupBytes = 16 << 20
	// memberBytes is about what a member takes besides.
	memberBytes = 512
)

// weigh says that the step may change what a group's members hold.
func (x *step) weigh(id string) {
	x.weighAgain()
	x.weighed, x.before = id, x.weightOf(id)
}

// weighAgain counts what the step has changed.
func (x *step) weighAgain() {
	if x.weighed != "" {
		x.weight += x.weightOf(x.weighed) - x.before
	}
}

// weightOf is how many bytes the members of a group hold.
func (s *shardState) weightOf(id string) int64 {
	if g := s.groups[id]; g != nil {
		return g.weight()
	}
	return 0
}

// weighAll counts everything anew.
func (s *shardState) weighAll() {
	s.weight = 0
	for _, id := range s.groupIDs() {
		s.weight += s.groups[id].weight()
	}
}

// room says whether there is room for a member that says so many bytes, and said so many
// before.
func (x *step) room(group string, bytes, before int) *kerr.Error {
	more := int64(bytes - before)
	switch {
	case bytes > maxMemberBytes:
		return kerr.UnknownServerError
	case more <= 0:
		return nil
	case x.weightOf(group)+more > maxGroupBytes:
		return kerr.GroupMaxSizeReached
	case x.cfg.MaxBytes > 0 && x.others+x.weight+more > x.cfg.MaxBytes:
		return kerr.CoordinatorNotAvailable // There may be room for it later.
	}
	return nil
}
