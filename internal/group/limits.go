package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

const (
	// maxMemberBytes is how much a member may say of itself. Kafka cannot store a group
	// with a member that says more: its record would be larger than message.max.bytes.
	maxMemberBytes = 1 << 20
	// maxGroupBytes is how much all members of a group may say, and be assigned.
	maxGroupBytes = 16 << 20
	// memberBytes is about what a member takes besides.
	memberBytes = 512
)

// Weight implements machine.Weighed.
func (s *Shard) Weight() int64 { return s.weight }

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
func (s *Shard) weightOf(id string) int64 {
	if g := s.groups[id]; g != nil {
		return g.weight()
	}
	return 0
}

// weighAll counts everything anew.
func (s *Shard) weighAll() {
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

// joinRoom is room for a JoinGroup.
func (x *step) joinRoom(r *machine.Request, m *kmsg.JoinGroupRequest) *kerr.Error {
	bytes, before := memberBytes+len(m.MemberID)+2*len(r.ClientID), 0
	if m.InstanceID != nil {
		bytes += len(*m.InstanceID)
	}
	for i := range m.Protocols {
		bytes += len(m.Protocols[i].Name) + len(m.Protocols[i].Metadata)
	}
	if g, ok := x.groups[m.Group].(*classicGroup); ok {
		if mem := g.members.get(m.MemberID); mem != nil {
			before = mem.fixed + protocolBytes(mem.protocols)
		}
	}
	return x.room(m.Group, bytes, before)
}

func protocolBytes(list []protocol) (n int) {
	for i := range list {
		n += len(list[i].name) + len(list[i].metadata)
	}
	return n
}

// fixedBytes is what a member is counted for besides its protocols, from when it joins.
func (m *member) fixedBytes() int {
	n := memberBytes + len(m.id) + len(m.clientID)
	if m.instance != nil {
		n += len(*m.instance)
	}
	return n
}

// pendingBytes is what somebody who was told a member id is counted for.
func pendingBytes(id string) int64 { return memberBytes + 2*int64(len(id)) }

// saysBytes is what a member of a consumer group is counted for.
func saysBytes(m *consumerMember) int64 {
	return memberBytes + int64((&schema.ConsumerMemberRecord{Member: m.id, Value: m.says}).Size())
}

// saysRoom is room for a heartbeat of a consumer group.
func (x *step) saysRoom(group, id string, known *consumerMember, says *schema.ConsumerMember) *kerr.Error {
	before := 0
	if known != nil && known.says != nil {
		before = int(saysBytes(known))
	}
	return x.room(group, int(saysBytes(&consumerMember{id: id, says: says})), before)
}
