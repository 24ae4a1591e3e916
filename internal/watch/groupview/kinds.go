package groupview

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Kind is how groups of a type are described that DescribeGroups does not describe: those in
// which the coordinator assigns. Each is a line in Kinds.
type Kind struct {
	Ask  func(names []string) kmsg.Request
	Read func(kmsg.Response) []Answer
	// Unrouted says that a client does not know that the coordinator of a group is to be asked.
	Unrouted bool
}

// Answer is what a broker says of one group; but for where it is and its offsets.
type Answer struct {
	Name  string
	Group Group
	Err   error
}

// Kinds has all of them. A group that is none of one kind may be of the next.
var Kinds = []Kind{{Ask: askConsumers, Read: readConsumers}, {Ask: askShares, Read: readShares}, {Ask: askStreams, Read: readStreams, Unrouted: true}}

func askConsumers(names []string) kmsg.Request {
	req := kmsg.NewPtrConsumerGroupDescribeRequest()
	req.Version, req.Groups = 1, names
	return req
}

func readConsumers(resp kmsg.Response) (out []Answer) {
	r, ok := resp.(*kmsg.ConsumerGroupDescribeResponse)
	if !ok {
		return nil
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		a := Answer{Name: g.Group, Err: kerr.ErrorForCode(g.ErrorCode)}
		if a.Err == nil {
			a.Group = FromConsumer(g)
		}
		out = append(out, a)
	}
	return out
}
