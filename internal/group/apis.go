package group

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/machine"
)

// api is a request about groups: one that any group may have, or of a kind (see
// kind.Kind.APIs).
type api struct {
	kind.API
	serve func(x step, r *machine.Request) // nil for a kind's
}

// ofAny is an API of groups of any kind.
func ofAny[Req kmsg.Request, Resp kmsg.Response](serve func(step, *machine.Request, Req), fail func(Req, Resp, int16)) api {
	return api{API: kind.Serves(nil, fail), serve: func(x step, r *machine.Request) { serve(x, r, r.Msg.(Req)) }}
}

// apis has all of them, by key.
var apis = map[kmsg.Key]*api{}

func init() {
	all := []api{
		ofAny(step.commit, failCommit),
		ofAny(step.txnCommit, failTxnCommit),
		ofAny(step.writeMarkers, failMarkers),
		ofAny(step.fetchOffsets, failFetch),
		ofAny(step.deleteOffsets, func(_ *kmsg.OffsetDeleteRequest, resp *kmsg.OffsetDeleteResponse, code int16) { resp.ErrorCode = code }),
		ofAny(step.list, func(_ *kmsg.ListGroupsRequest, resp *kmsg.ListGroupsResponse, code int16) { resp.ErrorCode = code }),
		ofAny(step.deleteGroups, failDelete),
	}
	for i := range kinds {
		for _, a := range kinds[i].APIs {
			all = append(all, api{API: a})
		}
	}
	for i := range all {
		apis[all[i].Key] = &all[i]
	}
}

// request handles a request.
func (x step) request(r *machine.Request) {
	a := apis[kmsg.Key(r.Msg.Key())]
	switch {
	case a == nil:
		panic("a request that no group handles: " + kmsg.NameForKey(r.Msg.Key()))
	case a.serve != nil:
		a.serve(x, r)
	default:
		a.Serve(x.Step, r)
	}
}

// failed returns the answer that tells a client of an error that is not about
// its request but about the coordinator; nil makes it a success.
func failed(req kmsg.Request, err *kerr.Error) kmsg.Response {
	var code int16
	if err != nil {
		code = err.Code
	}
	out := req.ResponseKind()
	if a := apis[kmsg.Key(req.Key())]; a != nil {
		a.Fail(req, out, code)
	}
	return out
}

// needsRandom says whether a request may need random bytes.
func needsRandom(req kmsg.Request) bool {
	a := apis[kmsg.Key(req.Key())]
	return a != nil && a.Random != nil && a.Random(req)
}

// whileLoading answers what is a success meanwhile.
func whileLoading(req kmsg.Request) kmsg.Response {
	if a := apis[kmsg.Key(req.Key())]; a != nil && a.Patient {
		return failed(req, nil)
	}
	return nil
}

func failCommit(req *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, code int16) {
	for _, t := range req.Topics {
		out := kmsg.NewOffsetCommitResponseTopic()
		out.Topic, out.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			e := kmsg.NewOffsetCommitResponseTopicPartition()
			e.Partition, e.ErrorCode = p.Partition, code
			out.Partitions = append(out.Partitions, e)
		}
		resp.Topics = append(resp.Topics, out)
	}
}

func failFetch(req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse, code int16) {
	for _, g := range req.Groups {
		e := kmsg.NewOffsetFetchResponseGroup()
		e.Group, e.ErrorCode = g.Group, code
		resp.Groups = append(resp.Groups, e)
	}
}

func failDelete(req *kmsg.DeleteGroupsRequest, resp *kmsg.DeleteGroupsResponse, code int16) {
	for _, g := range req.Groups {
		e := kmsg.NewDeleteGroupsResponseGroup()
		e.Group, e.ErrorCode = g, code
		resp.Groups = append(resp.Groups, e)
	}
}
