package consumer

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
)

// saysBytes is what a member of a consumer group is counted for.
func saysBytes(m *Member) int64 {
	return kind.MemberBytes + int64((&schema.ConsumerMemberRecord{Member: m.ID, Value: m.Says}).Size())
}

// saysRoom is room for a heartbeat of a consumer group.
func saysRoom(x *kind.Step, group, id string, known *Member, says *schema.ConsumerMember) *kerr.Error {
	before := 0
	if known != nil && known.Says != nil {
		before = int(saysBytes(known))
	}
	return x.Room(group, int(saysBytes(&Member{Member: modern.Member{ID: id}, Says: says})), before)
}
