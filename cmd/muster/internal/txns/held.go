package txns

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/source"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
)

// FindHeldBack finds, among the partitions in which a group has lag, those that an
// open transaction holds back, and whose it is. A broker without transactions
// answers with the end of the log, and holds nothing back.
func FindHeldBack(ctx context.Context, client *kgo.Client, g *groupview.Group, now time.Time) (map[source.TopicPartition]explain.HeldBack, error) {
	lagging := kadm.TopicsSet{}
	for _, p := range g.Partitions {
		if p.Lag != nil && *p.Lag > 0 {
			lagging.Add(p.Topic, p.Partition)
		}
	}
	ends, err := source.ListOffsets(ctx, client, lagging, source.AtLogEnd)
	if err != nil {
		return nil, err
	}
	stable, err := source.ListOffsetsFor(ctx, client, lagging, source.AtLogEnd, source.ReadCommitted)
	if err != nil {
		return nil, err
	}
	out := map[source.TopicPartition]explain.HeldBack{}
	for tp, offset := range stable {
		if offset < ends[tp] {
			out[tp] = explain.HeldBack{LastStableOffset: offset, ProducerID: -1}
		}
	}
	return out, nameHolders(ctx, newTxnAdmin(client), out, now)
}

// nameHolders finds whose the transactions are that hold partitions back: those
// that begin where the stable part ends. What is not told stays unknown.
func nameHolders(ctx context.Context, admin *txnAdmin, held map[source.TopicPartition]explain.HeldBack, now time.Time) error {
	var open []openTxn
	for tp, h := range held {
		txns, err := openTxns(ctx, admin, tp.Topic, tp.Partition)
		if errors.Is(err, context.Canceled) {
			return err
		}
		for _, t := range txns {
			if t.FirstOffset == h.LastStableOffset {
				open = append(open, t)
			}
		}
	}
	txns, err := knownTxns(ctx, admin, open, now)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil || slices.ContainsFunc(txns, func(x State) bool { return x.Error != nil }):
		return nil // A coordinator that did not answer may know them.
	}
	for _, t := range open {
		tp := source.TopicPartition{Topic: t.Topic, Partition: t.Partition}
		h := held[tp]
		h.ProducerID = t.ProducerID
		for _, x := range txns {
			if x.ProducerID == t.ProducerID && x.holds(t.Topic, t.Partition) {
				h.TransactionalID = x.ID
				h.Open, _ = x.openFor()
			}
		}
		held[tp] = h
	}
	return nil
}
