package group

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
)

// list handles ListGroups.
func (x step) list(r *machine.Request, m *kmsg.ListGroupsRequest) {
	resp := kmsg.NewPtrListGroupsResponse()
	resp.Version = m.Version
	wants := func(filter []string, have string) bool {
		return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, have) })
	}
	states := make([]string, len(m.StatesFilter))
	for i, f := range m.StatesFilter {
		states[i] = strings.TrimSpace(f)
	}
	for _, id := range x.GroupIDs() {
		g := x.Groups[id]
		if !wants(m.TypesFilter, string(g.Kind())) || !wants(states, g.StateName()) {
			continue
		}
		e := kmsg.NewListGroupsResponseGroup()
		e.Group, e.ProtocolType, e.GroupState, e.GroupType = id, g.ProtocolName(), g.StateName(), string(g.Kind())
		resp.Groups = append(resp.Groups, e)
	}
	x.Reply(r.ID, resp)
}

// deleteGroups handles DeleteGroups. A group that is named twice is deleted
// once.
func (x step) deleteGroups(r *machine.Request, m *kmsg.DeleteGroupsRequest) {
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
		if err := x.deleteGroup(id, kind.By(r)); err != nil {
			out.ErrorCode = err.Code
		}
		resp.Groups = append(resp.Groups, out)
	}
	x.Reply(r.ID, resp)
}

func (x step) deleteGroup(id string, by *journal.Who) *kerr.Error {
	g := x.Groups[id]
	switch {
	case g == nil:
		return kerr.GroupIDNotFound
	case !g.IsEmpty():
		return kerr.NonEmptyGroup
	}
	x.Weigh(id)
	var gone offsetCount
	b := g.Common()
	for topic, partitions := range b.Committed() {
		for _, p := range partitions {
			x.forgetOffset(g, topic, p, &gone)
		}
	}
	for _, tp := range b.Waiting() {
		x.forgetOffset(g, tp.Topic, tp.Partition, &gone)
	}
	g.DeleteRecords(x.Step)
	x.noteCount(g, journal.KindDeleted, gone, journal.CauseRequest, by)
	return nil
}
