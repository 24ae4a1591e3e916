package facts

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/txn"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
)

// HeldBack implements web.Reads. It tells of the partitions that this broker leads.
func (r *Facts) HeldBack(ctx context.Context, g *groupview.Group, now time.Time) (map[groupview.TopicPartition]explain.HeldBack, error) {
	out := map[groupview.TopicPartition]explain.HeldBack{}
	producers := map[int64]bool{}
	for i := range g.Partitions {
		gp := &g.Partitions[i]
		if gp.Lag == nil || *gp.Lag == 0 {
			continue
		}
		p := r.Partition(gp.Topic, gp.Partition)
		if p == nil {
			continue
		}
		stable := p.LastStableOffset()
		if stable >= p.HighWatermark() {
			continue
		}
		h := explain.HeldBack{LastStableOffset: stable, ProducerID: -1}
		for _, t := range p.OpenTxns() {
			if t.FirstOffset == stable {
				h.ProducerID = t.ProducerID
				producers[t.ProducerID] = true
			}
		}
		out[groupview.TopicPartition{Topic: gp.Topic, Partition: gp.Partition}] = h
	}
	if len(producers) == 0 {
		return out, nil
	}
	for _, t := range r.transactions(ctx, producers) {
		nameHolder(out, &t, now)
	}
	return out, nil
}

// nameHolder says whose the transaction is that holds partitions back.
func nameHolder(out map[groupview.TopicPartition]explain.HeldBack, t *kmsg.DescribeTransactionsResponseTransactionState, now time.Time) {
	for _, topic := range t.Topics {
		for _, p := range topic.Partitions {
			tp := groupview.TopicPartition{Topic: topic.Topic, Partition: p}
			h, held := out[tp]
			if !held || h.ProducerID != t.ProducerID {
				continue
			}
			h.TransactionalID = t.TransactionalID
			if t.StartTimestamp > 0 && txn.Unfinished(t.State) {
				h.Open = max(now.Sub(time.UnixMilli(t.StartTimestamp)), 0)
			}
			out[tp] = h
		}
	}
}

// transactions asks all coordinators for those of some producers. Who does not answer
// knows nothing.
func (r *Facts) transactions(ctx context.Context, producers map[int64]bool) []kmsg.DescribeTransactionsResponseTransactionState {
	topic := r.Image().Topic(metadata.TransactionsTopic)
	if topic == nil {
		return nil
	}
	nodes := map[int32]bool{}
	for _, p := range topic.Partitions {
		nodes[p.Leader] = true
	}
	var out []kmsg.DescribeTransactionsResponseTransactionState
	for node := range nodes {
		list := kmsg.NewPtrListTransactionsRequest()
		for id := range producers {
			list.ProducerIDFilters = append(list.ProducerIDFilters, id)
		}
		resp, err := r.Peer(ctx, node, list)
		if err != nil {
			continue
		}
		describe := kmsg.NewPtrDescribeTransactionsRequest()
		for _, t := range resp.(*kmsg.ListTransactionsResponse).TransactionStates {
			describe.TransactionalIDs = append(describe.TransactionalIDs, t.TransactionalID)
		}
		if len(describe.TransactionalIDs) == 0 {
			continue
		}
		if resp, err = r.Peer(ctx, node, describe); err == nil {
			out = append(out, resp.(*kmsg.DescribeTransactionsResponse).TransactionStates...)
		}
	}
	return out
}
