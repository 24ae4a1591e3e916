package share

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// deleteOffsets handles DeleteShareGroupOffsets: what is stored of topics is forgotten.
func deleteOffsets(x *kind.Step, r *machine.Request, m *kmsg.DeleteShareGroupOffsetsRequest) {
	resp := kmsg.NewPtrDeleteShareGroupOffsetsResponse()
	resp.Version = m.Version
	g, err := empty(x, m.GroupID)
	if g == nil && err == nil {
		err = kerr.GroupIDNotFound
	}
	if err == nil {
		d := &deleted{id: r.ID, resp: resp, by: *kind.By(r)}
		err = d.begin(x, g, d.read(x, g, m))
	}
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage, resp.Topics = err.Code, reasonOf(err), nil
		x.Reply(r.ID, resp)
	}
}

// deleted is what happens when the share coordinator has answered.
type deleted struct {
	id    machine.RequestID
	resp  *kmsg.DeleteShareGroupOffsetsResponse
	by    journal.Who
	bytes int
}

// read lists the partitions of which there may be something, and answers for topics of which
// there is not.
func (d *deleted) read(x *kind.Step, g *Group, m *kmsg.DeleteShareGroupOffsetsRequest) []partition {
	d.bytes = parkedRequest
	all := g.topics.all(x.Image)
	known, wanted := map[metadata.TopicID]bool{}, map[metadata.TopicID]bool{}
	for _, id := range idsOf(all) {
		known[id] = true
	}
	for i := range m.Topics {
		out := kmsg.NewDeleteShareGroupOffsetsResponseTopic()
		out.Topic = m.Topics[i].Topic
		d.bytes += parkedTopic + len(out.Topic)
		if t := find(x.Image, out.Topic); t != nil {
			out.TopicID = t.ID
		}
		if known[out.TopicID] {
			wanted[out.TopicID] = true
		} else {
			out.ErrorCode, out.ErrorMessage = kerr.UnknownTopicOrPartition.Code, reasonOf(kerr.UnknownTopicOrPartition)
		}
		d.resp.Topics = append(d.resp.Topics, out)
	}
	return slices.DeleteFunc(all, func(p partition) bool { return !wanted[p.Topic] })
}

func (d *deleted) begin(x *kind.Step, g *Group, parts []partition) *kerr.Error {
	if len(parts) == 0 {
		x.Reply(d.id, d.resp)
		return nil
	}
	if err := park(x, d.bytes); err != nil {
		return err
	}
	g.clear(x, parts, d)
	return nil
}

// clear has the share coordinator delete what it has of topics.
func (g *Group) clear(x *kind.Step, parts []partition, then then) {
	next := g.topics.edit()
	next.clear(idsOf(parts))
	g.write(x, next)
	g.ask(x, deleteRequest(g.ID, parts), parts, then)
}

// cleared notes that the share coordinator has nothing of topics any more, but of those that it
// could not delete, and says why it could not.
func (g *Group) cleared(x *kind.Step, q *question) (failed map[metadata.TopicID]*kerr.Error) {
	failed = map[metadata.TopicID]*kerr.Error{}
	for _, p := range q.parts {
		switch code := q.code(p); code {
		case 0, kerr.UnknownTopicOrPartition.Code: // There is no such topic any more.
		default:
			failed[p.Topic] = kerr.TypedErrorForCode(code)
		}
	}
	if g.Gone {
		return failed
	}
	next, asked := g.topics.edit(), countsOf(q.parts)
	next.deleting = slices.DeleteFunc(slices.Clone(next.deleting), func(id metadata.TopicID) bool {
		return failed[id] == nil && asked[id] > 0
	})
	g.write(x, next)
	return failed
}

func (d *deleted) done(x *kind.Step, g *Group, q *question) {
	x.Waiting -= d.bytes
	failed, asked := g.cleared(x, q), countsOf(q.parts)
	changed := counted{}
	for i := range d.resp.Topics {
		t := &d.resp.Topics[i]
		switch err := failed[t.TopicID]; {
		case t.ErrorCode != 0:
		case err != nil:
			t.ErrorCode, t.ErrorMessage = err.Code, reasonOf(err)
		default:
			for range asked[t.TopicID] {
				changed.add(t.Topic)
			}
		}
	}
	changed.note(x, g, journal.KindOffsetsDeleted, &d.by)
	x.Reply(d.id, d.resp)
}

// Clear deletes what the share coordinator has of the group, before the group itself is deleted.
func (g *Group) Clear(x *kind.Step, d kind.Deletion) (later bool) {
	if g.isBusy(x) {
		d.Cleared(x, g.ID, kerr.CoordinatorLoadInProgress)
		return true
	}
	parts := slices.DeleteFunc(g.topics.all(x.Image), func(p partition) bool {
		return x.Image != nil && x.Image.TopicByID(p.Topic) == nil // Nor is there any state of it.
	})
	if len(parts) == 0 {
		return false
	}
	g.clear(x, parts, &clearedAll{d})
	return true
}

// isCleared says whether the share coordinator is deleting all that it has of the group, which is
// deleted then. Who joined meanwhile would keep the group, and find all of it forgotten: Kafka has it so.
func (g *Group) isCleared(x *kind.Step) bool {
	if !g.isBusy(x) {
		return false
	}
	_, all := g.asking.then.(*clearedAll)
	return all
}

// clearedAll is what happens when the share coordinator has answered.
type clearedAll struct{ d kind.Deletion }

func (c *clearedAll) done(x *kind.Step, g *Group, q *question) {
	failed := g.cleared(x, q)
	for _, p := range q.parts {
		if err := failed[p.Topic]; err != nil {
			c.d.Cleared(x, g.ID, err)
			return
		}
	}
	c.d.Cleared(x, g.ID, nil)
}
