package broker_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/redistest"
)

// shownLag returns how far Redis shows a group to be behind, -1 if it does not.
func shownLag(t *testing.T, s *redistest.Server, group string) int64 {
	t.Helper()
	return shownLagOf(t, s.Nodes[0], "muster:orders:0", group)
}

func shownLagOf(t *testing.T, node *redistest.Node, key, group string) int64 {
	t.Helper()
	list, err := node.Do("XINFO", "GROUPS", key)
	must(t, err)
	for _, g := range list.([]any) {
		fields := map[string]any{}
		for i, list := 0, g.([]any); i+1 < len(list); i += 2 {
			fields[list[i].(string)] = list[i+1]
		}
		if lag, ok := fields["lag"].(int64); ok && fields["name"] == group {
			return lag
		}
	}
	return -1
}

func wantLag(t *testing.T, s *redistest.Server, group string, want int64) {
	t.Helper()
	redistest.Eventually(t, fmt.Sprintf("a lag of %d", want), func() bool { return shownLag(t, s, group) == want })
}

// txnProducer is a transactional producer that commits offsets and nothing else.
type txnProducer struct {
	c     *kgo.Client
	id    string
	pid   int64
	epoch int16
}

func newTxnProducer(t *testing.T, c *kgo.Client, id string) *txnProducer {
	t.Helper()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &id, 60_000
	p := &txnProducer{c: c, id: id}
	eventually(t, "a producer", func(ctx context.Context) error {
		resp, err := req.RequestWith(ctx, c)
		if err == nil {
			p.pid, p.epoch, err = resp.ProducerID, resp.ProducerEpoch, kerr.ErrorForCode(resp.ErrorCode)
		}
		return err
	})
	return p
}

func (p *txnProducer) commit(t *testing.T, group string, at int64) {
	t.Helper()
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = p.id, group, p.pid, p.epoch, -1
	topic := kmsg.NewTxnOffsetCommitRequestTopic()
	part := kmsg.NewTxnOffsetCommitRequestTopicPartition()
	part.Offset = at
	topic.Topic, topic.Partitions = "orders", append(topic.Partitions, part)
	req.Topics = append(req.Topics, topic)
	eventually(t, "commit", func(ctx context.Context) error {
		resp, err := req.RequestWith(ctx, p.c)
		if err == nil {
			err = kerr.ErrorForCode(resp.Topics[0].Partitions[0].ErrorCode)
		}
		return err
	})
}

func (p *txnProducer) end(t *testing.T, commit bool) {
	t.Helper()
	req := kmsg.NewPtrEndTxnRequest()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = p.id, p.pid, p.epoch, commit
	eventually(t, "the end", func(ctx context.Context) error {
		resp, err := req.RequestWith(ctx, p.c)
		if err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		if err == nil {
			p.pid, p.epoch = resp.ProducerID, resp.ProducerEpoch
		}
		return err
	})
}

// Redis shows what a transaction has committed for a group when the transaction commits,
// and not before.
func TestRedisShowsOffsetsThatTransactionsCommit(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	b := start(t, map[string]string{"muster.store": "redis", "muster.redis.url": s.URL(), "num.partitions": "1"})
	c := client(t, b)
	var at []int64
	for i := range 10 {
		r := &kgo.Record{Topic: "orders", Value: fmt.Append(nil, i)}
		must(t, c.ProduceSync(t.Context(), r).FirstErr())
		at = append(at, r.Offset)
	}
	plain := func(group string, offset int64) {
		offsets := kadm.Offsets{}
		offsets.AddOffset("orders", 0, offset, -1)
		eventually(t, "commit", func(ctx context.Context) error { return kadm.NewClient(c).CommitAllOffsets(ctx, group, offsets) })
	}
	plain("g", at[3])
	wantLag(t, s, "g", 7)
	p := newTxnProducer(t, c, "x")
	p.commit(t, "g", at[8])
	plain("other", at[1]) // Once that is shown, the other would be.
	wantLag(t, s, "other", 9)
	assert.Equal(t, shownLag(t, s, "g"), 7, "while the transaction is open the lag")
	p.end(t, true)
	wantLag(t, s, "g", 2)
	p.commit(t, "g", at[9])
	p.end(t, false)
	p.commit(t, "other", at[6])
	p.end(t, true)
	wantLag(t, s, "other", 4)
	assert.Equal(t, shownLag(t, s, "g"), 2, "after an abort the lag")
}
