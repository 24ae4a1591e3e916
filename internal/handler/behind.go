package handler

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/protocol"
	"muster/internal/store"
)

// Counter counts records where offsets have gaps, so that their difference does
// not tell how many there are.
type Counter interface {
	// CountFrom says how many records partitions have at or after offsets, nil
	// where the difference of offsets tells it, or no one knows. The work that it
	// does is bounded, whatever it is asked.
	CountFrom(ctx context.Context, places []Place) []*protocol.Behind
}

// Place is an offset in a partition.
type Place struct {
	store.TopicPartition
	Offset int64
}

// countBehind adds to an OffsetFetch response how many records groups have yet to
// read, of the groups that the request asks it for (protocol.TagBehind). All of
// them are counted together, and each place once, however many groups are there.
func (h *Handler) countBehind(ctx context.Context, req *kmsg.OffsetFetchRequest, resp *kmsg.OffsetFetchResponse) {
	asked := map[string]bool{}
	for i := range req.Groups {
		if g := &req.Groups[i]; protocol.AsksBehind(&g.UnknownTags) {
			asked[g.Group] = true
		}
	}
	if h.opts.Counter == nil || len(asked) == 0 {
		return
	}
	var places []Place
	at := map[Place][]*kmsg.Tags{}
	for i := range resp.Groups {
		g := &resp.Groups[i]
		for j := 0; asked[g.Group] && j < len(g.Topics); j++ {
			for k := range g.Topics[j].Partitions {
				p := &g.Topics[j].Partitions[k]
				if p.ErrorCode != 0 || p.Offset < 0 {
					continue
				}
				place := Place{store.TopicPartition{Topic: g.Topics[j].Topic, Partition: p.Partition}, p.Offset}
				if at[place] == nil {
					places = append(places, place)
				}
				at[place] = append(at[place], &p.UnknownTags)
			}
		}
	}
	if len(places) == 0 {
		return
	}
	for i, b := range h.opts.Counter.CountFrom(ctx, places) {
		for _, tags := range at[places[i]] {
			if b != nil {
				protocol.SetBehind(tags, *b)
			}
		}
	}
}
