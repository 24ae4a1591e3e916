package group

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
)

// typeClassic is the type of groups of the classic protocol.
const typeClassic = "classic"

// describeNotFound is the version of DescribeGroups from which an unknown group
// is an error.
const describeNotFound = 6

// describe handles DescribeGroups.
func (x *step) describe(r *machine.Request, m *kmsg.DescribeGroupsRequest) {
	resp := kmsg.NewPtrDescribeGroupsResponse()
	resp.Version = m.Version
	for _, id := range m.Groups {
		resp.Groups = append(resp.Groups, x.describeGroup(id, m.Version))
	}
	x.reply(r.ID, resp)
}

func (x *step) describeGroup(id string, version int16) kmsg.DescribeGroupsResponseGroup {
	out := kmsg.NewDescribeGroupsResponseGroup()
	out.Group = id
	g := x.groups[id]
	if g == nil || g.consumer != nil {
		out.State = Dead.String()
		if version >= describeNotFound {
			out.ErrorCode = kerr.GroupIDNotFound.Code
			msg := "Group " + id + " not found."
			if g != nil {
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

// list handles ListGroups.
func (x *step) list(r *machine.Request, m *kmsg.ListGroupsRequest) {
	resp := kmsg.NewPtrListGroupsResponse()
	resp.Version = m.Version
	wants := func(filter []string, have string) bool {
		return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, have) })
	}
	states := make([]string, len(m.StatesFilter))
	for i, f := range m.StatesFilter {
		states[i] = strings.TrimSpace(f)
	}
	for _, id := range x.groupIDs() {
		g := x.groups[id]
		if !wants(m.TypesFilter, g.kind()) || !wants(states, g.stateName()) {
			continue
		}
		e := kmsg.NewListGroupsResponseGroup()
		e.Group, e.ProtocolType, e.GroupState, e.GroupType = id, g.protocolType, g.stateName(), g.kind()
		if g.consumer != nil {
			e.ProtocolType = consumerType
		}
		resp.Groups = append(resp.Groups, e)
	}
	x.reply(r.ID, resp)
}

// deleteGroups handles DeleteGroups. A group that is named twice is deleted
// once.
func (x *step) deleteGroups(r *machine.Request, m *kmsg.DeleteGroupsRequest) {
	resp := kmsg.NewPtrDeleteGroupsResponse()
	resp.Version = m.Version
	seen := map[string]bool{}
	for _, id := range m.Groups {
		if seen[id] {
			continue
		}
		seen[id] = true
		out := kmsg.NewDeleteGroupsResponseGroup()
		out.Group = id
		if err := x.deleteGroup(id, by(r)); err != nil {
			out.ErrorCode = err.Code
		}
		resp.Groups = append(resp.Groups, out)
	}
	x.reply(r.ID, resp)
}

func (x *step) deleteGroup(id string, by *journal.Who) *kerr.Error {
	g := x.groups[id]
	switch {
	case g == nil:
		return kerr.GroupIDNotFound
	case !g.isEmpty():
		return kerr.NonEmptyGroup
	}
	x.weigh(id)
	for pending := range g.pendingIDs() {
		x.forgetPending(g, pending)
	}
	hadRecord := g.hard != nil
	var gone offsetCount
	for topic, partitions := range g.committed() {
		for _, p := range partitions {
			x.forgetOffset(g, topic, p, &gone)
		}
	}
	for _, tp := range g.waiting() {
		x.forgetOffset(g, tp.topic, tp.partition, &gone)
	}
	x.forgetConsumers(g)
	if hadRecord {
		x.write(&schema.GroupRecord{Group: id})
	}
	x.noteCount(g, journal.KindDeleted, gone, journal.CauseRequest, by)
	return nil
}
