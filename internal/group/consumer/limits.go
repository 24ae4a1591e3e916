package consumer

import (
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/group/schema"
)

// memberBytes is what a member of a consumer group is counted for.
func memberBytes(m *Member) int64 {
	return kind.MemberBytes + int64((&schema.ConsumerMemberRecord{Member: m.ID, Value: m.Metadata}).Size())
}

// checkRoom is room for a heartbeat of a consumer group.
func checkRoom(x *kind.Step, group, id string, known *Member, meta *schema.ConsumerMember) *kerr.Error {
	before := 0
	if known != nil && known.Metadata != nil {
		before = int(memberBytes(known))
	}
	return x.Room(group, int(memberBytes(&Member{Member: modern.Member[Partition]{ID: id}, Metadata: meta})), before)
}
