// Package requests is about the requests for the state of share partitions (KIP-932, keys 83 to
// 87): to whom they go, how one about many share partitions is split among several coordinators,
// and how their answers become one.
//
// Only brokers send them. Each of the five names a group, and partitions by the id of their
// topic; each share partition is answered for itself. That is all that this package knows of
// them.
package requests

import (
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/metadata"
)

// Key names a share partition.
type Key struct {
	Group     string
	Topic     metadata.TopicID
	Partition int32
}

// String is the key as FindCoordinator has it, and what the partition of __share_group_state is
// a hash of.
func (k Key) String() string {
	return k.Group + ":" + k.Topic.String() + ":" + strconv.Itoa(int(k.Partition))
}

// ParseKey reads what String returns. Colons may be in the name of the group.
func ParseKey(s string) (k Key, ok bool) {
	rest, partition, _ := cutLast(s)
	group, topic, found := cutLast(rest)
	n, err := strconv.ParseInt(partition, 10, 32)
	id, invalid := metadata.ParseTopicID(topic)
	if !found || group == "" || err != nil || n < 0 || invalid != nil || id.String() != topic {
		return Key{}, false
	}
	return Key{group, id, int32(n)}, true
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}

// Shard returns the partition of __share_group_state that a share partition belongs to.
func (k Key) Shard(shards int) int32 { return journal.PartitionFor(k.String(), int32(shards)) }

// Coordinator returns the broker that coordinates a share partition, by some metadata; false if
// there is no topic for its state.
func Coordinator(image *metadata.Image, k Key) (node int32, ok bool) {
	if image == nil {
		return 0, false
	}
	t := image.Topic(metadata.ShareStateTopic)
	if t == nil {
		return 0, false
	}
	return t.Partitions[k.Shard(len(t.Partitions))].Leader, true
}

// versions are the newest of each key.
var versions = map[kmsg.Key]int16{
	kmsg.InitializeShareGroupState: 0, kmsg.ReadShareGroupState: 0, kmsg.WriteShareGroupState: 1,
	kmsg.DeleteShareGroupState: 0, kmsg.ReadShareGroupStateSummary: 1,
}

// Newest returns the newest version of a request; false for one that is not about the state of
// share partitions.
func Newest(key int16) (version int16, ok bool) {
	version, ok = versions[kmsg.Key(key)]
	return version, ok
}

// Split makes a request for each coordinator of the share partitions of one. It calls of for
// each of them, in order. The request is not changed, but the parts may have it in common; if
// all goes to one, it goes as it is.
func Split(req kmsg.Request, of func(Key) int32) map[int32]kmsg.Request {
	switch m := req.(type) {
	case *kmsg.InitializeShareGroupStateRequest:
		return split(m, initialized, m.GroupID, m.Topics, of, func(t []kmsg.InitializeShareGroupStateRequestTopic) kmsg.Request {
			out := *m
			out.Topics = t
			return &out
		})
	case *kmsg.ReadShareGroupStateRequest:
		return split(m, read, m.GroupID, m.Topics, of, func(t []kmsg.ReadShareGroupStateRequestTopic) kmsg.Request {
			out := *m
			out.Topics = t
			return &out
		})
	case *kmsg.WriteShareGroupStateRequest:
		return split(m, written, m.GroupID, m.Topics, of, func(t []kmsg.WriteShareGroupStateRequestTopic) kmsg.Request {
			out := *m
			out.Topics = t
			return &out
		})
	case *kmsg.DeleteShareGroupStateRequest:
		return split(m, deleted, m.GroupID, m.Topics, of, func(t []kmsg.DeleteShareGroupStateRequestTopic) kmsg.Request {
			out := *m
			out.Topics = t
			return &out
		})
	case *kmsg.ReadShareGroupStateSummaryRequest:
		return split(m, summarized, m.GroupID, m.Topics, of, func(t []kmsg.ReadShareGroupStateSummaryRequestTopic) kmsg.Request {
			out := *m
			out.Topics = t
			return &out
		})
	}
	return map[int32]kmsg.Request{0: req}
}

// Failed is the answer to a request that each of its share partitions failed; nil makes it a
// success.
func Failed(req kmsg.Request, err *kerr.Error) kmsg.Response {
	resp := req.ResponseKind()
	switch m := req.(type) {
	case *kmsg.InitializeShareGroupStateRequest:
		resp.(*kmsg.InitializeShareGroupStateResponse).Topics = failed(initialized, initializedAnswer, m.Topics, err)
	case *kmsg.ReadShareGroupStateRequest:
		resp.(*kmsg.ReadShareGroupStateResponse).Topics = failed(read, readAnswer, m.Topics, err)
	case *kmsg.WriteShareGroupStateRequest:
		resp.(*kmsg.WriteShareGroupStateResponse).Topics = failed(written, writtenAnswer, m.Topics, err)
	case *kmsg.DeleteShareGroupStateRequest:
		resp.(*kmsg.DeleteShareGroupStateResponse).Topics = failed(deleted, deletedAnswer, m.Topics, err)
	case *kmsg.ReadShareGroupStateSummaryRequest:
		resp.(*kmsg.ReadShareGroupStateSummaryResponse).Topics = failed(summarized, summarizedAnswer, m.Topics, err)
	}
	return resp
}

// Merge puts the answers to the parts of a request in the order of the request. What no part
// has answered failed.
func Merge(req kmsg.Request, parts []kmsg.Response) kmsg.Response {
	if len(parts) == 1 {
		return parts[0]
	}
	resp := Failed(req, kerr.UnknownServerError)
	switch m := resp.(type) {
	case *kmsg.InitializeShareGroupStateResponse:
		merge(initializedAnswer, m.Topics, topics(parts, func(r *kmsg.InitializeShareGroupStateResponse) []kmsg.InitializeShareGroupStateResponseTopic {
			return r.Topics
		}))
	case *kmsg.ReadShareGroupStateResponse:
		merge(readAnswer, m.Topics, topics(parts, func(r *kmsg.ReadShareGroupStateResponse) []kmsg.ReadShareGroupStateResponseTopic { return r.Topics }))
	case *kmsg.WriteShareGroupStateResponse:
		merge(writtenAnswer, m.Topics, topics(parts, func(r *kmsg.WriteShareGroupStateResponse) []kmsg.WriteShareGroupStateResponseTopic { return r.Topics }))
	case *kmsg.DeleteShareGroupStateResponse:
		merge(deletedAnswer, m.Topics, topics(parts, func(r *kmsg.DeleteShareGroupStateResponse) []kmsg.DeleteShareGroupStateResponseTopic { return r.Topics }))
	case *kmsg.ReadShareGroupStateSummaryResponse:
		merge(summarizedAnswer, m.Topics, topics(parts, func(r *kmsg.ReadShareGroupStateSummaryResponse) []kmsg.ReadShareGroupStateSummaryResponseTopic {
			return r.Topics
		}))
	}
	return resp
}

// Again returns the part of a request that is worth to be sent again, because its answer is
// that another broker coordinates now, or none yet; nil for none of it.
func Again(req kmsg.Request, resp kmsg.Response) kmsg.Request {
	codes := map[Key]int16{}
	each(resp, func(topic metadata.TopicID, partition int32, code int16) {
		codes[Key{Topic: topic, Partition: partition}] = code
	})
	const again, done = 1, 0
	return Split(req, func(k Key) int32 {
		k.Group = ""
		switch codes[k] {
		case kerr.NotCoordinator.Code, kerr.CoordinatorLoadInProgress.Code, kerr.CoordinatorNotAvailable.Code:
			return again
		}
		return done
	})[again]
}
