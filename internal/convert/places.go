package convert

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/store"
)

// places are offsets that may be of before their partition was converted, and where they are kept together with
// their leader epochs.
type places struct {
	all []store.Place
	at  []oldOffset
}

type oldOffset struct {
	offset *int64
	epoch  *int32
}

// add adds an offset if it is large enough, which none is where offsets were always dense.
func (ps *places) add(topic string, partition int32, offset *int64, epoch *int32) {
	if store.IsOld(*offset) {
		ps.all = append(ps.all, store.Place{TopicPartition: store.TopicPartition{Topic: topic, Partition: partition}, Offset: *offset})
		ps.at = append(ps.at, oldOffset{offset, epoch})
	}
}

// put puts the offsets of now in their place. The leader epochs of before say nothing of them.
func (c *Converter) put(ctx context.Context, ps *places) error {
	if c.opts.Store == nil || len(ps.all) == 0 {
		return nil
	}
	found, err := c.opts.Store.Places(ctx, ps.all)
	if err != nil {
		c.opts.Logger.Debug("offsets of before a conversion could not be looked up", "error", err)
		return err
	}
	for i, offset := range found {
		if p := ps.at[i]; offset != *p.offset {
			*p.offset, *p.epoch = offset, -1
		}
	}
	return nil
}

// Fetched has a group go on where it was in partitions that have been converted since it committed. Until the
// store tells where that is, its consumers ask again.
func (c *Converter) Fetched(ctx context.Context, g *kmsg.OffsetFetchResponseGroup) {
	var ps places
	for i := range g.Topics {
		t := &g.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			ps.add(t.Topic, p.Partition, &p.Offset, &p.LeaderEpoch)
		}
	}
	if c.put(ctx, &ps) != nil {
		g.ErrorCode, g.Topics = kerr.CoordinatorLoadInProgress.Code, nil
	}
}

// Commits takes the offset of now from a member that commits one of before. If the store does not tell it,
// it does when the offset is fetched. What says that one offset replaces another is not for clients.
func (c *Converter) Commits(ctx context.Context, image *metadata.Image, req *kmsg.OffsetCommitRequest) {
	var ps places
	for i := range req.Topics {
		t := &req.Topics[i]
		dense := image.Dense(t.Topic)
		for j := range t.Partitions {
			p := &t.Partitions[j]
			p.UnknownTags = kmsg.Tags{}
			if dense {
				ps.add(t.Topic, p.Partition, &p.Offset, &p.LeaderEpoch)
			}
		}
	}
	_ = c.put(ctx, &ps)
}

// TxnCommits does so for what is committed in a transaction.
func (c *Converter) TxnCommits(ctx context.Context, image *metadata.Image, req *kmsg.TxnOffsetCommitRequest) {
	var ps places
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := 0; image.Dense(t.Topic) && j < len(t.Partitions); j++ {
			p := &t.Partitions[j]
			ps.add(t.Topic, p.Partition, &p.Offset, &p.LeaderEpoch)
		}
	}
	_ = c.put(ctx, &ps)
}
