package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// joinRoom is room for a JoinGroup.
func joinRoom(x *step, r *machine.Request, m *kmsg.JoinGroupRequest) *kerr.Error {
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
