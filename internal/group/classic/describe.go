package classic

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/machine"
)

// describeNotFound is the version of DescribeGroups from which an unknown group
// is an error.
const describeNotFound = 6

// describe handles DescribeGroups.
func describe(x *kind.Step, r *machine.Request, m *kmsg.DescribeGroupsRequest) {
	resp := kmsg.NewPtrDescribeGroupsResponse()
	resp.Version = m.Version
	for _, id := range m.Groups {
		resp.Groups = append(resp.Groups, describeGroup(x, id, m.Version))
	}
	x.Reply(r.ID, resp)
}

func describeGroup(x *kind.Step, id string, version int16) kmsg.DescribeGroupsResponseGroup {
	out := kmsg.NewDescribeGroupsResponseGroup()
	out.Group = id
	g, ok := x.Groups[id].(*Group)
	if !ok {
		out.State = Dead.String()
		if version >= describeNotFound {
			out.ErrorCode = kerr.GroupIDNotFound.Code
			msg := "Group " + id + " not found."
			if x.Groups[id] != nil {
				msg = "Group " + id + " is not a classic group."
			}
			out.ErrorMessage = &msg
		}
		return out
	}
	out.State, out.ProtocolType = g.State.String(), g.ProtocolType
	stable := g.State == Stable
	if stable {
		out.Protocol = g.Protocol
	}
	for m := g.Members.First; m != nil; m = m.Next {
		e := kmsg.NewDescribeGroupsResponseGroupMember()
		e.MemberID, e.InstanceID, e.ClientID, e.ClientHost = m.ID, m.Instance, m.ClientID, m.Host
		if stable {
			e.ProtocolMetadata, e.MemberAssignment = m.Metadata(g.Protocol), m.Assigned
		}
		out.Members = append(out.Members, e)
	}
	return out
}
