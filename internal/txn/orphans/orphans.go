// Package orphans ends transactions that no coordinator knows.
//
// A store that loses the end of __transaction_state but not of other logs leaves
// transactions open that no coordinator knows: they would never end, and
// readers of committed records would stop there. So a leader looks for
// transactions that are open for longer than any may be, and asks all
// coordinators. If all answer, and none has a transaction of that producer that
// goes on in that partition, then it is an orphan, and is aborted.
//
// They are asked twice, an interval apart. A broker that was made a coordinator
// a moment ago may not have heard of it, and answers for what it had before; a
// transaction that is aborted by its word may have been committed.
package orphans

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/store"
	"muster/internal/txn"
)

// Options say who is asked, and told.
type Options struct {
	Every  time.Duration // between two looks
	Node   func() int32
	Image  func() *metadata.Image
	Logger *slog.Logger
	// Partition returns a partition that this broker leads, nil for others.
	Partition func(topic string, index int32) *partition.Partition
	// Ask has a broker answer a request: this one if it is machine.Self.
	Ask func(ctx context.Context, node int32, req kmsg.Request) (kmsg.Response, error)
	// Tell is told what was aborted, for the journal.
	Tell func([]journal.Txn)
}

// Resolver looks for orphans in the partitions that this broker leads.
type Resolver struct {
	Options
	suspects suspects
}

// New returns a resolver.
func New(opts Options) *Resolver { return &Resolver{Options: opts} }

// orphan is a transaction that may be one.
type orphan struct {
	store.TopicPartition
	partition.OpenTxn
	part *partition.Partition
}

// Run looks for orphans until ctx ends.
func (r *Resolver) Run(ctx context.Context) {
	every := time.NewTicker(r.Every)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if err := r.Once(ctx, time.Now()); err != nil && ctx.Err() == nil {
			r.Logger.Warn("transactions are open for longer than they may be, and it is not known whether they still go on", "error", err)
		}
	}
}

// Once aborts the orphans that there are now.
func (r *Resolver) Once(ctx context.Context, now time.Time) error {
	image := r.Image()
	patience := image.Config.Duration("transaction.max.timeout.ms") + image.Config.Duration("muster.transaction.orphan.grace.ms")
	overdue := r.overdue(image, now.Add(-patience))
	if len(overdue) == 0 {
		return nil
	}
	known, by, err := r.knownTransactions(ctx, image, overdue)
	if err != nil {
		return err
	}
	unknown := slices.DeleteFunc(overdue, func(o orphan) bool { return known[ongoing{o.ProducerID, o.TopicPartition}] })
	var told []journal.Txn
	for _, o := range r.suspects.confirm(unknown, by) {
		told = append(told, r.abortOrphan(ctx, o, now)...)
	}
	if len(told) > 0 {
		r.Tell(told)
	}
	return nil
}

// overdue returns the transactions that have been open since a time or longer, in
// partitions that this broker leads.
func (r *Resolver) overdue(image *metadata.Image, since time.Time) []orphan {
	var out []orphan
	for _, t := range image.Topics() {
		for i, led := range t.Partitions {
			if led.Leader != r.Node() {
				continue
			}
			p := r.Partition(t.Name, int32(i))
			if p == nil {
				continue
			}
			for _, open := range p.OpenTxns() {
				if !open.Since.After(since) {
					out = append(out, orphan{store.TopicPartition{Topic: t.Name, Partition: int32(i)}, open, p})
				}
			}
		}
	}
	return out
}

// Overdue looks for what has been open since a time or longer, and returns how to abort
// that later, when it may have ended.
func (r *Resolver) Overdue(since time.Time) (abort func(ctx context.Context) error) {
	found := r.overdue(r.Image(), since)
	return func(ctx context.Context) error {
		var err error
		for _, o := range found {
			err = errors.Join(err, r.abort(ctx, o))
		}
		return err
	}
}

// ongoing names a transaction in a partition.
type ongoing struct {
	producer int64
	store.TopicPartition
}

// idsAtOnce is how many producer ids one question is about.
const idsAtOnce = 1000

// knownTransactions asks all coordinators which transactions of these producers go
// on, and where, and returns who they are. It fails unless all of them know what
// they are asked.
func (r *Resolver) knownTransactions(ctx context.Context, image *metadata.Image, overdue []orphan) (known map[ongoing]bool, led []metadata.Partition, err error) {
	var ids []int64
	for _, o := range overdue {
		ids = append(ids, o.ProducerID)
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if t := image.Topic(metadata.TransactionsTopic); t != nil {
		led = t.Partitions
	}
	var nodes []int32
	for _, p := range led {
		nodes = append(nodes, p.Leader)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	known = map[ongoing]bool{}
	for some := range slices.Chunk(ids, idsAtOnce) {
		for _, node := range nodes {
			if err := r.askOngoing(ctx, node, some, known); err != nil {
				return nil, nil, fmt.Errorf("ask broker %d: %w", node, err)
			}
		}
	}
	// What moved meanwhile may have been no one's when it was asked for.
	if t := r.Image().Topic(metadata.TransactionsTopic); t != nil && !slices.Equal(t.Partitions, led) {
		return nil, nil, errors.New("coordinators have moved meanwhile")
	}
	return known, led, nil
}

// askOngoing asks one coordinator, and adds what it says.
func (r *Resolver) askOngoing(ctx context.Context, node int32, producers []int64, out map[ongoing]bool) error {
	list := kmsg.NewPtrListTransactionsRequest()
	list.ProducerIDFilters = producers
	resp, err := r.Ask(ctx, node, list)
	if err != nil {
		return err
	}
	listed := resp.(*kmsg.ListTransactionsResponse)
	if err := kerr.ErrorForCode(listed.ErrorCode); err != nil {
		return err
	}
	describe := kmsg.NewPtrDescribeTransactionsRequest()
	producer := map[string]int64{}
	for _, t := range listed.TransactionStates {
		if txn.Unfinished(t.TransactionState) {
			describe.TransactionalIDs = append(describe.TransactionalIDs, t.TransactionalID)
			producer[t.TransactionalID] = t.ProducerID
		}
	}
	if len(describe.TransactionalIDs) == 0 {
		return nil
	}
	if resp, err = r.Ask(ctx, node, describe); err != nil {
		return err
	}
	for _, t := range resp.(*kmsg.DescribeTransactionsResponse).TransactionStates {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return err
		}
		for _, topic := range t.Topics {
			for _, p := range topic.Partitions {
				out[ongoing{producer[t.TransactionalID], store.TopicPartition{Topic: topic.Topic, Partition: p}}] = true
			}
		}
	}
	return nil
}

// abortOrphan aborts a transaction that no coordinator knows, and returns what the
// journal is to tell of it. What a group has pending is the group coordinator's to end.
func (r *Resolver) abortOrphan(ctx context.Context, o orphan, now time.Time) []journal.Txn {
	r.Logger.Warn("a transaction is open that no coordinator knows; aborting it",
		"topic", o.Topic, "partition", o.Partition, "producer", o.ProducerID, "epoch", o.ProducerEpoch, "offset", o.FirstOffset)
	if err := r.abort(ctx, o); err != nil {
		r.Logger.Warn("the transaction could not be aborted yet", "topic", o.Topic, "partition", o.Partition, "producer", o.ProducerID, "error", err)
		return nil
	}
	return []journal.Txn{r.resolved(o, now)}
}

// abort aborts an orphan, and waits until that is durable.
func (r *Resolver) abort(ctx context.Context, o orphan) error {
	if o.Topic != metadata.OffsetsTopic {
		done := make(chan *kerr.Error, 1)
		o.part.AbortOrphan(ctx, o.OpenTxn, func(err *kerr.Error) { done <- err })
		select {
		case err := <-done:
			if err != nil {
				return err
			}
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return r.abortOffsets(ctx, o)
}

// abortOffsets has the group coordinator abort an orphan.
func (r *Resolver) abortOffsets(ctx context.Context, o orphan) error {
	if !slices.ContainsFunc(o.part.OpenTxns(), func(t partition.OpenTxn) bool { return t.FirstOffset == o.FirstOffset }) {
		return nil // It has ended meanwhile.
	}
	m := kmsg.NewWriteTxnMarkersRequestMarker()
	m.ProducerID, m.ProducerEpoch, m.CoordinatorEpoch = o.ProducerID, o.ProducerEpoch, -1 // No coordinator says so.
	machine.TxnStart(o.Start).Set(&m.UnknownTags)
	topic := kmsg.NewWriteTxnMarkersRequestMarkerTopic()
	topic.Topic, topic.Partitions = o.Topic, []int32{o.Partition}
	m.Topics = append(m.Topics, topic)
	req := kmsg.NewPtrWriteTxnMarkersRequest()
	req.Version, req.Markers = 2, append(req.Markers, m)
	resp, err := r.Ask(ctx, machine.Self, req)
	if err != nil {
		return err
	}
	for _, m := range resp.(*kmsg.WriteTxnMarkersResponse).Markers {
		for _, t := range m.Topics {
			for _, p := range t.Partitions {
				err = errors.Join(err, kerr.ErrorForCode(p.ErrorCode))
			}
		}
	}
	return err
}

// resolved tells that this broker has aborted an orphan. The entry is keyed by the producer id,
// since the transactional id is not known here.
func (r *Resolver) resolved(o orphan, now time.Time) journal.Txn {
	node := r.Node()
	return journal.Txn{
		Key: strconv.FormatInt(o.ProducerID, 10), Time: now, Kind: journal.TxnResolved,
		Was: journal.Producer{ID: o.ProducerID, Epoch: o.ProducerEpoch}, Broker: &node, Open: max(now.Sub(o.Since), 0),
		Partitions: []string{fmt.Sprintf("%s-%d", o.Topic, o.Partition)}, PartitionN: 1,
	}
}
