package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// describeNotFound is the version of DescribeGroups from which an unknown group
// is an error.
const describeNotFound = 6

// describe handles DescribeGroups.
func describe(x *step, r *machine.Request, m *kmsg.DescribeGroupsRequest) {
	resp := kmsg.NewPtrDescribeGroupsResponse()
	resp.Version = m.Version
	for _, id := range m.Groups {
		resp.Groups = append(resp.Groups, describeGroup(x, id, m.Version))
	}
	x.reply(r.ID, resp)
}

func describeGroup(x *step, id string, version int16) kmsg.DescribeGroupsResponseGroup {
	out := kmsg.NewDescribeGroupsResponseGroup()
	out.Group = id
	g, ok := x.groups[id].(*classicGroup)
	if !ok {
		out.State = Dead.String()
		if version >= describeNotFound {
			out.ErrorCode = kerr.GroupIDNotFound.Code
			msg := "Group " + id + " not found."
			if x.groups[id] != nil {
				msg = "Group " + id + " is not a classic group."
			}
			out.ErrorMessage = &msg
		}
		return out
	}
	out.State, out.ProtocolType = g.state.String(), g.protocolType
	stable := g.state == Stable
	if stable {
		out.Protocol = g.protocol
	}
	for m := g.members.first; m != nil; m = m.next {
		e := kmsg.NewDescribeGroupsResponseGroupMember()
		e.MemberID, e.InstanceID, e.ClientID, e.ClientHost = m.id, m.instance, m.clientID, m.host
		if stable {
			e.ProtocolMetadata, e.MemberAssignment = m.metadata(g.protocol), m.assigned
		}
		out.Members = append(out.Members, e)
	}
	return out
}
