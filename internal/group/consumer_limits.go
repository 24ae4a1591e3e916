package group

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/schema"
)

// saysBytes is what a member of a consumer group is counted for.
func saysBytes(m *consumerMember) int64 {
	return memberBytes + int64((&schema.ConsumerMemberRecord{Member: m.id, Value: m.says}).Size())
}

// saysRoom is room for a heartbeat of a consumer group.
func saysRoom(x *step, group, id string, known *consumerMember, says *schema.ConsumerMember) *kerr.Error {
	before := 0
	if known != nil && known.says != nil {
		before = int(saysBytes(known))
	}
	return x.room(group, int(saysBytes(&consumerMember{id: id, says: says})), before)
}
