package classic

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/machine"
)

// joinRoom is room for a JoinGroup.
func joinRoom(x *kind.Step, r *machine.Request, m *kmsg.JoinGroupRequest) *kerr.Error {
	bytes, before := kind.MemberBytes+len(m.MemberID)+2*len(r.ClientID), 0
	if m.InstanceID != nil {
		bytes += len(*m.InstanceID)
	}
	for i := range m.Protocols {
		bytes += len(m.Protocols[i].Name) + len(m.Protocols[i].Metadata)
	}
	if g, ok := x.Groups[m.Group].(*Group); ok {
		if mem := g.Members.Get(m.MemberID); mem != nil {
			before = mem.fixed + protocolBytes(mem.Protocols)
		}
	}
	return x.Room(m.Group, bytes, before)
}

func protocolBytes(list []Protocol) (n int) {
	for i := range list {
		n += len(list[i].Name) + len(list[i].Metadata)
	}
	return n
}

// fixedBytes is what a member is counted for besides its protocols, from when it joins.
func (m *Member) fixedBytes() int {
	n := kind.MemberBytes + len(m.ID) + len(m.ClientID)
	if m.Instance != nil {
		n += len(*m.Instance)
	}
	return n
}

// pendingBytes is what someone who was told a member id is counted for.
func pendingBytes(id string) int64 { return kind.MemberBytes + 2*int64(len(id)) }
