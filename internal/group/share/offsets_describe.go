package share

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// describeOffsets handles DescribeShareGroupOffsets: where share partitions begin, which the
// share coordinator knows, and how much is left of them, for which their leaders say where they
// end. What is not known has offset -1, and is no error.
func describeOffsets(x *kind.Step, r *machine.Request, m *kmsg.DescribeShareGroupOffsetsRequest) {
	resp := kmsg.NewPtrDescribeShareGroupOffsetsResponse()
	resp.Version = m.Version
	d := &described{id: r.ID, resp: resp, bytes: parkedRequest, ends: map[partition]int64{}}
	asked := make([][]partition, len(m.Groups))
	for i := range m.Groups {
		g, _ := x.Groups[m.Groups[i].GroupID].(*Group)
		asked[i] = d.group(x, g, &m.Groups[i])
	}
	if err := park(x, d.bytes); err != nil {
		resp.Groups = nil
		failDescribeOffsets(m, resp, err.Code)
		x.Reply(r.ID, resp)
		return
	}
	var all []partition
	for i, parts := range asked {
		if parts = modern.Sorted(parts); len(parts) > 0 {
			d.left++
			x.Ask(&summary{d, i}, machine.ShareCoordinator, summaryRequest(m.Groups[i].GroupID, parts))
			all = append(all, parts...)
		}
	}
	d.askEnds(x, modern.Sorted(all))
	d.finish(x)
}

// described is an answer that is not complete yet. The lag of a partition is how many records are
// delivered for good, until it is.
type described struct {
	id    machine.RequestID
	resp  *kmsg.DescribeShareGroupOffsetsResponse
	bytes int
	left  int // questions
	ends  map[partition]int64
}

// group begins the answer about a group, and lists the partitions that it has.
func (d *described) group(x *kind.Step, g *Group, m *kmsg.DescribeShareGroupOffsetsRequestGroup) (asked []partition) {
	out := kmsg.NewDescribeShareGroupOffsetsResponseGroup()
	out.GroupID = m.GroupID
	d.bytes += parkedTopic + len(m.GroupID)
	wanted := m.Topics
	if wanted == nil && g != nil {
		wanted = g.allTopics(x.Image)
	}
	for i := range wanted {
		t := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopic()
		t.Topic = wanted[i].Topic
		d.bytes += parkedTopic + len(t.Topic)
		found := find(x.Image, t.Topic)
		if found != nil {
			t.TopicID = found.ID
		}
		for _, n := range wanted[i].Partitions {
			d.bytes += parkedPartition
			e := kmsg.NewDescribeShareGroupOffsetsResponseGroupTopicPartition()
			e.Partition, e.StartOffset, e.LeaderEpoch, e.Lag = n, -1, 0, -1
			t.Partitions = append(t.Partitions, e)
			if p := (partition{Topic: t.TopicID, Number: n}); found != nil && int(n) < len(found.Partitions) && g != nil && has(g.topics.initialized, p) {
				asked = append(asked, p)
			}
		}
		out.Topics = append(out.Topics, t)
	}
	d.resp.Groups = append(d.resp.Groups, out)
	return asked
}

// allTopics is all that is initialized of topics that there are.
func (g *Group) allTopics(image *metadata.Image) (out []kmsg.DescribeShareGroupOffsetsRequestGroupTopic) {
	for _, t := range modern.TopicsOf(g.topics.initialized) {
		if image == nil || image.TopicByID(t.Topic) == nil {
			continue
		}
		e := kmsg.NewDescribeShareGroupOffsetsRequestGroupTopic()
		e.Topic, e.Partitions = image.TopicByID(t.Topic).Name, t.Partitions
		out = append(out, e)
	}
	return out
}

func summaryRequest(group string, parts []partition) kmsg.Request {
	req := kmsg.NewPtrReadShareGroupStateSummaryRequest()
	req.GroupID = group
	for _, t := range modern.TopicsOf(parts) {
		out := kmsg.NewReadShareGroupStateSummaryRequestTopic()
		out.TopicID = t.Topic
		for _, n := range t.Partitions {
			p := kmsg.NewReadShareGroupStateSummaryRequestTopicPartition()
			p.Partition, p.LeaderEpoch = n, -1
			out.Partitions = append(out.Partitions, p)
		}
		req.Topics = append(req.Topics, out)
	}
	return req
}

// summary is the question where the partitions of a group begin.
type summary struct {
	d     *described
	group int
}

// Answered takes the answer.
func (s *summary) Answered(x *kind.Step, e machine.Sent) {
	answers := map[partition]*kmsg.ReadShareGroupStateSummaryResponseTopicPartition{}
	if m, ok := e.Msg.(*kmsg.ReadShareGroupStateSummaryResponse); ok && e.Err == nil {
		for i := range m.Topics {
			for j := range m.Topics[i].Partitions {
				p := &m.Topics[i].Partitions[j]
				answers[partition{Topic: m.Topics[i].TopicID, Number: p.Partition}] = p
			}
		}
	}
	g := &s.d.resp.Groups[s.group]
	for i := range g.Topics {
		for j := range g.Topics[i].Partitions {
			p := &g.Topics[i].Partitions[j]
			fill(p, answers[partition{Topic: g.Topics[i].TopicID, Number: p.Partition}])
		}
	}
	s.d.left--
	s.d.finish(x)
}

func fill(p *kmsg.DescribeShareGroupOffsetsResponseGroupTopicPartition, a *kmsg.ReadShareGroupStateSummaryResponseTopicPartition) {
	switch {
	case a == nil:
	case a.ErrorCode != 0:
		p.ErrorCode, p.ErrorMessage = a.ErrorCode, reasonOf(kerr.TypedErrorForCode(a.ErrorCode))
	default:
		p.StartOffset, p.LeaderEpoch, p.Lag = a.StartOffset, a.LeaderEpoch, int64(a.DeliveryCompleteCount)
	}
}

// finish answers if nothing is waited for any more.
func (d *described) finish(x *kind.Step) {
	if d.left > 0 {
		return
	}
	x.Waiting -= d.bytes
	for i := range d.resp.Groups {
		for j := range d.resp.Groups[i].Topics {
			t := &d.resp.Groups[i].Topics[j]
			for k := range t.Partitions {
				p := &t.Partitions[k]
				end, ok := d.ends[partition{Topic: t.TopicID, Number: p.Partition}]
				if done := p.Lag; !ok || done < 0 || p.StartOffset < 0 || p.ErrorCode != 0 {
					p.Lag = -1
				} else {
					p.Lag = max(end-p.StartOffset-done, 0)
				}
			}
		}
	}
	x.Reply(d.id, d.resp)
}
