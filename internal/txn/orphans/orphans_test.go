package orphans

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/partition"
	"muster/internal/store"
)

// coordinators are the brokers 1 and 2. Broker 2 has two transactions of producer 7, which is
// in the partitions of the topic t: one that goes on in t-0, and one that has ended in t-1.
type coordinators struct {
	t                    *testing.T
	image                *metadata.Image
	listError, describes int16
	asked                func() // called when the last one is asked
}

func newCoordinators(t *testing.T) *coordinators {
	cfg, err := config.NewBroker(nil)
	assert.Must(t, err)
	c := &coordinators{t: t, image: metadata.NewImage(cfg), asked: func() {}}
	c.lead(1, 2)
	return c
}

// lead says who coordinates transactions.
func (c *coordinators) lead(nodes ...int32) {
	topic := metadata.Topic{Name: metadata.TransactionsTopic, ID: metadata.TopicID{1}, Internal: true}
	for _, n := range nodes {
		topic.Partitions = append(topic.Partitions, metadata.Partition{Leader: n})
	}
	edit := c.image.Edit()
	edit.PutTopic(topic)
	c.image = edit.Image()
}

func (c *coordinators) ask(_ context.Context, node int32, req kmsg.Request) (kmsg.Response, error) {
	switch req := req.(type) {
	case *kmsg.ListTransactionsRequest:
		resp := kmsg.NewPtrListTransactionsResponse()
		assert.True(c.t, slices.Contains(req.ProducerIDFilters, 7), "asked is about %v", req.ProducerIDFilters)
		if node == 2 {
			resp.ErrorCode = c.listError
			resp.TransactionStates = []kmsg.ListTransactionsResponseTransactionState{
				{TransactionalID: "goes on", ProducerID: 7, TransactionState: "Ongoing"}, {TransactionalID: "has ended", ProducerID: 7, TransactionState: "CompleteCommit"},
			}
			c.asked()
		}
		return resp, nil
	case *kmsg.DescribeTransactionsRequest:
		resp := kmsg.NewPtrDescribeTransactionsResponse()
		for _, id := range req.TransactionalIDs {
			in := map[string]int32{"goes on": 0, "has ended": 1}[id]
			resp.TransactionStates = append(resp.TransactionStates, kmsg.DescribeTransactionsResponseTransactionState{
				ErrorCode: c.describes, TransactionalID: id, Topics: []kmsg.DescribeTransactionsResponseTransactionStateTopic{{Topic: "t", Partitions: []int32{in}}},
			})
		}
		return resp, nil
	}
	c.t.Fatalf("asked is %T", req)
	return nil, nil
}

// known asks for transactions of producer 7 in t-0 and t-1.
func (c *coordinators) known() (map[ongoing]bool, error) {
	r := New(Options{Image: func() *metadata.Image { return c.image }, Ask: c.ask})
	overdue := []orphan{{TopicPartition: store.TopicPartition{Topic: "t"}}, {TopicPartition: store.TopicPartition{Topic: "t", Partition: 1}}}
	for i := range overdue {
		overdue[i].OpenTxn = partition.OpenTxn{ProducerID: 7}
	}
	known, _, err := r.knownTransactions(c.t.Context(), c.image, overdue)
	return known, err
}

func TestATransactionIsKnownWhereItGoesOn(t *testing.T) {
	known, err := newCoordinators(t).known()
	want := map[ongoing]bool{{7, store.TopicPartition{Topic: "t"}}: true}
	assert.True(t, err == nil && maps.Equal(known, want), "known are %v (%v), want %v", known, err, want)
}

// A transaction is aborted by the word of those who know of none. So nothing is known if one
// of them cannot say, or if another may have it by now.
func TestNothingIsKnownUnlessAllCoordinatorsSay(t *testing.T) {
	for what, change := range map[string]func(*coordinators){
		"one loads its transactions":        func(c *coordinators) { c.listError = kerr.CoordinatorLoadInProgress.Code },
		"one does not tell of one":          func(c *coordinators) { c.describes = kerr.NotCoordinator.Code },
		"one is replaced while it is asked": func(c *coordinators) { c.asked = func() { c.lead(1, 3) } },
	} {
		c := newCoordinators(t)
		change(c)
		if known, err := c.known(); err == nil {
			t.Errorf("%s: known are %v", what, known)
		}
	}
}
