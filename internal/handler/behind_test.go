package handler

import (
	"context"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/protocol"
	"muster/internal/store"
)

// fixedCounter says of every place what it is told to.
type fixedCounter struct {
	asked  [][]Place
	counts map[Place]*protocol.Behind
}

func (f *fixedCounter) CountFrom(_ context.Context, places []Place) []*protocol.Behind {
	f.asked = append(f.asked, places)
	out := make([]*protocol.Behind, len(places))
	for i, p := range places {
		out[i] = f.counts[p]
	}
	return out
}

// offsetFetchOf is a request for groups, and a response of one topic with these
// offsets for each.
func offsetFetchOf(asks map[string]bool, offsets map[string][]int64, names ...string) (*kmsg.OffsetFetchRequest, *kmsg.OffsetFetchResponse) {
	req, resp := kmsg.NewPtrOffsetFetchRequest(), kmsg.NewPtrOffsetFetchResponse()
	for _, name := range names {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = name
		if asks[name] {
			protocol.AskBehind(&g.UnknownTags)
		}
		req.Groups = append(req.Groups, g)
		r, t := kmsg.NewOffsetFetchResponseGroup(), kmsg.NewOffsetFetchResponseGroupTopic()
		r.Group, t.Topic = name, "orders"
		for i, at := range offsets[name] {
			p := kmsg.NewOffsetFetchResponseGroupTopicPartition()
			p.Partition, p.Offset = int32(i), at
			t.Partitions = append(t.Partitions, p)
		}
		r.Topics = append(r.Topics, t)
		resp.Groups = append(resp.Groups, r)
	}
	return req, resp
}

func TestRecordsBehindAreCountedForGroupsThatAskForIt(t *testing.T) {
	place := func(partition int32, at int64) Place {
		return Place{store.TopicPartition{Topic: "orders", Partition: partition}, at}
	}
	f := &fixedCounter{counts: map[Place]*protocol.Behind{place(0, 5): {Records: 3}, place(1, 9): {Records: 100, AtLeast: true}}}
	h := &Handler{opts: Options{Counter: f}}
	req, resp := offsetFetchOf(map[string]bool{"a": true, "b": true}, map[string][]int64{"a": {5, 9, -1, 7}, "b": {5, 8}, "silent": {5, 9}}, "a", "b", "silent")
	resp.Groups[1].Topics[0].Partitions[1].ErrorCode = kerr.UnstableOffsetCommit.Code
	h.countBehind(t.Context(), req, resp)
	assert.DeepEqual(t, f.asked, [][]Place{{place(0, 5), place(1, 9), place(3, 7)}}, "it counted")
	got := map[string][]*protocol.Behind{}
	for _, g := range resp.Groups {
		for _, p := range g.Topics[0].Partitions {
			got[g.Group] = append(got[g.Group], protocol.GetBehind(&p.UnknownTags))
		}
	}
	want := map[string][]*protocol.Behind{
		"a":      {{Records: 3}, {Records: 100, AtLeast: true}, nil, nil}, // nothing committed, and nothing known
		"b":      {{Records: 3}, nil},
		"silent": {nil, nil},
	}
	assert.DeepEqual(t, got, want, "the answers")
}

func TestNothingIsCountedUnlessThereIsReason(t *testing.T) {
	f := &fixedCounter{}
	for name, c := range map[string]struct {
		counter Counter
		asks    bool
		at      int64
	}{"nobody asks": {f, false, 5}, "nothing is committed": {f, true, -1}, "offsets have no gaps": {nil, true, 5}} {
		req, resp := offsetFetchOf(map[string]bool{"g": c.asks}, map[string][]int64{"g": {c.at}}, "g")
		h := &Handler{opts: Options{Counter: c.counter}}
		h.countBehind(t.Context(), req, resp)
		assert.True(t, len(f.asked) == 0 && resp.Groups[0].Topics[0].Partitions[0].UnknownTags.Len() == 0, "%s, and yet: %v", name, f.asked)
	}
}
