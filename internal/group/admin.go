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
	d := &deletion{shard: x.shard, id: r.ID, resp: kmsg.NewPtrDeleteGroupsResponse(), by: *kind.By(r), at: map[string]int{}, left: 1}
	d.resp.Version = m.Version
	for _, id := range m.Groups {
		if _, twice := d.at[id]; twice {
			continue
		}
		d.at[id] = len(d.resp.Groups)
		out := kmsg.NewDeleteGroupsResponseGroup()
		out.Group = id
		d.resp.Groups = append(d.resp.Groups, out)
		d.left++
		if c, ok := x.Groups[id].(kind.Cleared); !ok || !x.Groups[id].IsEmpty() || !c.Clear(x.Step, d) {
			d.Cleared(x.Step, id, nil)
		}
	}
	d.finish(x.Step)
}

// deletion is an answer to DeleteGroups that waits until all that groups have elsewhere is
// deleted.
type deletion struct {
	shard *Shard
	id    machine.RequestID
	resp  *kmsg.DeleteGroupsResponse
	by    journal.Who
	at    map[string]int // where in the answer a group is
	left  int            // groups, and one for the request itself
}

// Cleared deletes a group that has nothing elsewhere any more.
func (d *deletion) Cleared(x *kind.Step, group string, err *kerr.Error) {
	if err == nil {
		err = step{x, d.shard}.deleteGroup(group, &d.by)
	}
	if err != nil {
		d.resp.Groups[d.at[group]].ErrorCode = err.Code
	}
	d.finish(x)
}

func (d *deletion) finish(x *kind.Step) {
	if d.left--; d.left == 0 {
		x.Reply(d.id, d.resp)
	}
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
