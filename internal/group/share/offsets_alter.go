package share

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/journal"
	"muster/internal/machine"
)

// alterOffsets handles AlterShareGroupOffsets: share partitions begin anew at other offsets, and
// what was known of their records is forgotten. A group that is not there is made.
func alterOffsets(x *kind.Step, r *machine.Request, m *kmsg.AlterShareGroupOffsetsRequest) {
	resp := kmsg.NewPtrAlterShareGroupOffsetsResponse()
	resp.Version = m.Version
	a := &altered{id: r.ID, resp: resp, by: *kind.By(r), starts: map[partition]int64{}}
	g, err := empty(x, m.GroupID)
	if err == nil {
		a.read(x, m)
		err = a.begin(x, g, m.GroupID)
	}
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage, resp.Topics = err.Code, reasonOf(err), nil
		x.Reply(r.ID, resp)
	}
}

// altered is what happens when the share coordinator has answered.
type altered struct {
	id     machine.RequestID
	resp   *kmsg.AlterShareGroupOffsetsResponse
	by     journal.Who
	starts map[partition]int64
	bytes  int
}

// read lists what is to be changed, and answers what cannot be.
func (a *altered) read(x *kind.Step, m *kmsg.AlterShareGroupOffsetsRequest) {
	a.bytes = parkedRequest
	for i := range m.Topics {
		out := kmsg.NewAlterShareGroupOffsetsResponseTopic()
		out.Topic = m.Topics[i].Topic
		t := find(x.Image, out.Topic)
		if t != nil {
			out.TopicID = t.ID
		}
		a.bytes += parkedTopic + len(out.Topic)
		for _, want := range m.Topics[i].Partitions {
			a.bytes += parkedPartition
			p, err := partition{Topic: out.TopicID, Number: want.Partition}, (*kerr.Error)(nil)
			_, twice := a.starts[p]
			switch {
			case t == nil || want.Partition < 0 || int(want.Partition) >= len(t.Partitions):
				err = kerr.UnknownTopicOrPartition
			case twice:
				err = kerr.InvalidRequest
			default:
				a.starts[p] = want.StartOffset
			}
			e := kmsg.NewAlterShareGroupOffsetsResponseTopicPartition()
			if e.Partition = want.Partition; err != nil {
				e.ErrorCode, e.ErrorMessage = err.Code, reasonOf(err)
			}
			out.Partitions = append(out.Partitions, e)
		}
		a.resp.Topics = append(a.resp.Topics, out)
	}
}

// begin asks the share coordinator, under an epoch of its own: that is by what it tells that the
// partitions are to begin anew.
func (a *altered) begin(x *kind.Step, g *Group, id string) *kerr.Error {
	if len(a.starts) == 0 {
		x.Reply(a.id, a.resp)
		return nil
	}
	next, epoch := (&topics{}).edit(), int32(modern.FirstEpoch)
	if g != nil {
		next = g.topics.edit()
	}
	parts := make([]partition, 0, len(a.starts))
	for i := range a.resp.Topics {
		t := &a.resp.Topics[i]
		for j := range t.Partitions {
			if t.Partitions[j].ErrorCode == 0 {
				parts = append(parts, partition{Topic: t.TopicID, Number: t.Partitions[j].Partition})
			}
		}
	}
	parts = modern.Sorted(parts)
	next.begin(without(parts, next.initialized), x.Image)
	x.Weigh(id)
	if err := next.fits(x, id); err != nil {
		return err
	}
	if err := park(x, a.bytes); err != nil {
		return err
	}
	var hash int64
	if g != nil {
		epoch, hash = g.Next(x.Epoch), g.Hash
	}
	made := &Group{}
	made.ID = id
	x.Write(made.EpochRecord(&modern.Epoch{Epoch: epoch, Hash: hash}))
	x.Write(made.TargetEpochRecord(&modern.TargetEpoch{Epoch: epoch})) // There is no one to assign anything to.
	x.Write(next.record(id))
	g = x.Groups[id].(*Group)
	g.retryAt = x.Now.Add(retryAfter)
	g.ask(x, initializeRequest(id, parts, epoch, a.starts), parts, a)
	return nil
}

func (a *altered) done(x *kind.Step, g *Group, q *question) {
	x.Waiting -= a.bytes
	if !g.Gone && !q.lost {
		g.settle(x, q)
	}
	changed := counted{}
	for i := range a.resp.Topics {
		t := &a.resp.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if p.ErrorCode != 0 {
				continue
			}
			if p.ErrorCode = q.code(partition{Topic: t.TopicID, Number: p.Partition}); p.ErrorCode == 0 {
				changed.add(t.Topic)
			} else {
				p.ErrorMessage = reasonOf(kerr.TypedErrorForCode(p.ErrorCode))
			}
		}
	}
	changed.note(x, g, journal.KindOffsetsReset, &a.by)
	x.Reply(a.id, a.resp)
}
