package share

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
	"muster/internal/machine"
)

// question is what the share coordinator is asked to change for a group: the answer is about
// each partition for itself.
type question struct {
	g     *Group
	parts []partition // sorted
	then  then
	lost  bool // whether there was no answer
	codes map[partition]int16
}

// then is what happens when it is answered. The group may be gone.
type then interface {
	done(x *kind.Step, g *Group, q *question)
}

func (g *Group) ask(x *kind.Step, req kmsg.Request, parts []partition, then then) {
	q := &question{g: g, parts: parts, then: then}
	g.asking, g.asked = q, x.Now
	x.Ask(q, machine.ShareCoordinator, req)
}

// Answered takes the answer.
func (q *question) Answered(x *kind.Step, e machine.Sent) {
	if q.g.asking == q {
		q.g.asking = nil
		q.g.looked = looked{}
	}
	q.codes = codesOf(e.Msg)
	q.lost = e.Err != nil || q.codes == nil
	q.then.done(x, q.g, q)
}

// codesOf reads what is said of each partition, nil if nothing is.
func codesOf(msg kmsg.Response) map[partition]int16 {
	out := map[partition]int16{}
	switch m := msg.(type) {
	case *kmsg.InitializeShareGroupStateResponse:
		for _, t := range m.Topics {
			for i := range t.Partitions {
				out[partition{Topic: t.TopicID, Number: t.Partitions[i].Partition}] = t.Partitions[i].ErrorCode
			}
		}
	case *kmsg.DeleteShareGroupStateResponse:
		for _, t := range m.Topics {
			for i := range t.Partitions {
				out[partition{Topic: t.TopicID, Number: t.Partitions[i].Partition}] = t.Partitions[i].ErrorCode
			}
		}
	default:
		return nil
	}
	return out
}

// code is what was said of a partition.
func (q *question) code(p partition) int16 {
	code, ok := q.codes[p]
	if !ok {
		return kerr.CoordinatorNotAvailable.Code
	}
	return code
}

// outcomes divides the partitions by whether it was done, of those that are in a list.
func (q *question) outcomes(of []partition) (done, failed []partition) {
	for _, p := range q.parts {
		switch {
		case !has(of, p):
		case q.code(p) == 0:
			done = append(done, p)
		default:
			failed = append(failed, p)
		}
	}
	return done, failed
}

// initializeRequest asks to initialize partitions, with the offsets at which they begin; without,
// they begin where the group's setting says.
func initializeRequest(group string, parts []partition, epoch int32, starts map[partition]int64) kmsg.Request {
	req := kmsg.NewPtrInitializeShareGroupStateRequest()
	req.GroupID = group
	for _, t := range modern.TopicsOf(parts) {
		out := kmsg.NewInitializeShareGroupStateRequestTopic()
		out.TopicID = t.Topic
		for _, n := range t.Partitions {
			p := kmsg.NewInitializeShareGroupStateRequestTopicPartition()
			p.Partition, p.StateEpoch, p.StartOffset = n, epoch, -1
			if start, ok := starts[partition{Topic: t.Topic, Number: n}]; ok {
				p.StartOffset = start
			}
			out.Partitions = append(out.Partitions, p)
		}
		req.Topics = append(req.Topics, out)
	}
	return req
}

func deleteRequest(group string, parts []partition) kmsg.Request {
	req := kmsg.NewPtrDeleteShareGroupStateRequest()
	req.GroupID = group
	for _, t := range modern.TopicsOf(parts) {
		out := kmsg.NewDeleteShareGroupStateRequestTopic()
		out.TopicID = t.Topic
		for _, n := range t.Partitions {
			p := kmsg.NewDeleteShareGroupStateRequestTopicPartition()
			p.Partition = n
			out.Partitions = append(out.Partitions, p)
		}
		req.Topics = append(req.Topics, out)
	}
	return req
}
