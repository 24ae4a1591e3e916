package group

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
)

// list handles ListGroups.
func (x shardStep) list(r *machine.Request, m *kmsg.ListGroupsRequest) {
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
		if !wants(m.TypesFilter, string(g.kind())) || !wants(states, g.stateName()) {
			continue
		}
		e := kmsg.NewListGroupsResponseGroup()
		e.Group, e.ProtocolType, e.GroupState, e.GroupType = id, g.protocolName(), g.stateName(), string(g.kind())
		resp.Groups = append(resp.Groups, e)
	}
	x.reply(r.ID, resp)
}

// deleteGroups handles DeleteGroups. A group that is named twice is deleted
// once.
func (x shardStep) deleteGroups(r *machine.Request, m *kmsg.DeleteGroupsRequest) {
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

func (x shardStep) deleteGroup(id string, by *journal.Who) *kerr.Error {
	g := x.groups[id]
	switch {
	case g == nil:
		return kerr.GroupIDNotFound
	case !g.isEmpty():
		return kerr.NonEmptyGroup
	}
	x.weigh(id)
	var gone offsetCount
	b := g.common()
	for topic, partitions := range b.committed() {
		for _, p := range partitions {
			x.forgetOffset(g, topic, p, &gone)
		}
	}
	for _, tp := range b.waiting() {
		x.forgetOffset(g, tp.topic, tp.partition, &gone)
	}
	g.deleteRecords(x.step)
	x.noteCount(g, journal.KindDeleted, gone, journal.CauseRequest, by)
	return nil
}
