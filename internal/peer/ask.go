package peer

import (
	"errors"
	"log/slog"
	"sync"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/partition"
)

const (
	// asksAtOnce is how many requests with questions to a node are under way.
	// Questions that come meanwhile go out together.
	asksAtOnce = 8
	// asksTogether is how many questions one request holds, at most.
	asksTogether = 500
	// askVersion is the version of AddPartitionsToTxn that asks.
	askVersion = 5
)

// question is one that waits for its answer.
type question struct {
	partition.TxnQuestion
	done func(partition.TxnAnswer)
}

// asks are the questions that wait to be sent, by node.
type asks struct {
	mu    sync.Mutex
	nodes map[int32]*asking
}

// asking is what one node is to be asked. Each transactional id has a queue of its
// own, so that one about which very much is asked, none of which goes together,
// keeps nobody else waiting.
type asking struct {
	queues  map[string][]question
	turns   []string // the ids that have a queue, in the order of their turns
	running int      // goroutines that ask
}

// Ask asks the coordinator of a transaction about a partition. It implements
// partition.TxnCoordinator: done is called once, and not before Ask returns.
func (c *Client) Ask(q partition.TxnQuestion, done func(partition.TxnAnswer)) {
	node, err := c.coordinatorOf(q.TransactionalID)
	if err != nil {
		go done(failed(err))
		return
	}
	c.asks.mu.Lock()
	defer c.asks.mu.Unlock()
	a := c.asks.nodes[node]
	if a == nil {
		a = &asking{}
		c.asks.nodes[node] = a
	}
	a.add(question{q, done})
	if a.running < asksAtOnce {
		a.running++
		go c.askAll(node, a)
	}
}

// coordinatorOf returns the broker that coordinates a transactional id.
func (c *Client) coordinatorOf(id string) (int32, *kerr.Error) {
	image := c.opts.Image()
	if image == nil {
		return 0, kerr.CoordinatorNotAvailable
	}
	t := image.Topic(metadata.TransactionsTopic)
	if t == nil {
		return 0, kerr.CoordinatorNotAvailable
	}
	return t.Partitions[journal.PartitionFor(id, int32(len(t.Partitions)))].Leader, nil
}

func failed(err *kerr.Error) partition.TxnAnswer {
	return partition.TxnAnswer{Err: err, Start: int64(machine.NoTxnStart)}
}

// askAll asks a node until nothing is left to ask. If an answer takes too long
// another goroutine goes on in its place.
func (c *Client) askAll(node int32, a *asking) {
	for goOn := true; goOn; {
		c.asks.mu.Lock()
		some := a.take()
		if len(some) == 0 {
			if a.running--; a.running == 0 {
				delete(c.asks.nodes, node)
			}
			c.asks.mu.Unlock()
			return
		}
		c.asks.mu.Unlock()
		goOn = false
		c.send(c.ctx, node, buildQuestions(some), func(resp kmsg.Response, err error, apart bool) {
			c.answered(node, some, resp, err)
			if apart {
				c.askAll(node, a)
			} else {
				goOn = true
			}
		})
	}
}

func (a *asking) add(q question) {
	if a.queues == nil {
		a.queues = map[string][]question{}
	}
	id := q.TransactionalID
	if len(a.queues[id]) == 0 {
		a.turns = append(a.turns, id)
	}
	a.queues[id] = append(a.queues[id], q)
}

// take takes questions that go together in a request. There, a transactional id
// stands for one transaction: what asks about another of the same id waits.
func (a *asking) take() (some []question) {
	for n := len(a.turns); n > 0 && len(some) < asksTogether; n-- {
		id := a.turns[0]
		a.turns = a.turns[1:]
		queue := a.queues[id]
		run := queue[0].alike(queue[:min(len(queue), asksTogether-len(some))])
		some = append(some, queue[:run]...)
		if run == len(queue) {
			delete(a.queues, id)
			continue
		}
		clear(queue[:run])
		a.queues[id] = queue[run:]
		a.turns = append(a.turns, id)
	}
	return some
}

// alike says how many questions, from the first on, are about the same transaction.
func (q *question) alike(queue []question) int {
	for i := range queue {
		if o := &queue[i]; o.ProducerID != q.ProducerID || o.ProducerEpoch != q.ProducerEpoch || o.Add != q.Add {
			return i
		}
	}
	return len(queue)
}

// answered passes on the answers to questions.
func (c *Client) answered(node int32, some []question, resp kmsg.Response, err error) {
	if err != nil {
		level := slog.LevelDebug
		if errors.Is(err, errStranger) {
			level = slog.LevelWarn // It does not pass by itself if the brokers are of two clusters.
		}
		c.opts.Logger.Log(c.ctx, level, "a coordinator of transactions could not be asked", "node", node, "questions", len(some), "error", err)
		for _, q := range some {
			q.done(failed(kerr.NetworkException))
		}
		return
	}
	answers, ok := resp.(*kmsg.AddPartitionsToTxnResponse)
	switch {
	case !ok:
		answers = &kmsg.AddPartitionsToTxnResponse{ErrorCode: kerr.UnknownServerError.Code}
	case answers.ErrorCode != 0:
		c.opts.Logger.Warn("a coordinator of transactions refuses to be asked", "node", node, "error", kerr.ErrorForCode(answers.ErrorCode))
	}
	found := index(answers)
	for _, q := range some {
		q.done(answerTo(answers.ErrorCode, found, &q.TxnQuestion))
	}
}

// place names a partition in a transaction.
type place struct {
	id, topic string
	partition int32
}

// buildQuestions makes one request, in which each partition of a transaction
// stands once.
func buildQuestions(some []question) *kmsg.AddPartitionsToTxnRequest {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = askVersion
	at := map[string]int{}
	type named struct{ id, topic string }
	topics := map[named]int{}
	seen := map[place]bool{}
	for _, q := range some {
		i, ok := at[q.TransactionalID]
		if !ok {
			i = len(req.Transactions)
			at[q.TransactionalID] = i
			t := kmsg.NewAddPartitionsToTxnRequestTransaction()
			t.TransactionalID, t.ProducerID, t.ProducerEpoch, t.VerifyOnly = q.TransactionalID, q.ProducerID, q.ProducerEpoch, !q.Add
			req.Transactions = append(req.Transactions, t)
		}
		t := &req.Transactions[i]
		n := named{q.TransactionalID, q.Topic}
		j, ok := topics[n]
		if !ok {
			j = len(t.Topics)
			topics[n] = j
			topic := kmsg.NewAddPartitionsToTxnRequestTransactionTopic()
			topic.Topic = q.Topic
			t.Topics = append(t.Topics, topic)
		}
		if p := (place{q.TransactionalID, q.Topic, q.Partition}); !seen[p] {
			seen[p] = true
			t.Topics[j].Partitions = append(t.Topics[j].Partitions, q.Partition)
		}
	}
	return req
}

func index(resp *kmsg.AddPartitionsToTxnResponse) map[place]*kmsg.AddPartitionsToTxnResponseTransactionTopicPartition {
	found := map[place]*kmsg.AddPartitionsToTxnResponseTransactionTopicPartition{}
	for i := range resp.Transactions {
		t := &resp.Transactions[i]
		for j := range t.Topics {
			for k := range t.Topics[j].Partitions {
				p := &t.Topics[j].Partitions[k]
				found[place{t.TransactionalID, t.Topics[j].Topic, p.Partition}] = p
			}
		}
	}
	return found
}

func answerTo(whole int16, found map[place]*kmsg.AddPartitionsToTxnResponseTransactionTopicPartition, q *partition.TxnQuestion) partition.TxnAnswer {
	p := found[place{q.TransactionalID, q.Topic, q.Partition}]
	switch {
	case whole != 0:
		return failed(kerr.TypedErrorForCode(whole))
	case p == nil:
		return failed(kerr.UnknownServerError)
	}
	return partition.TxnAnswer{Err: kerr.TypedErrorForCode(p.ErrorCode), Start: int64(machine.TxnStartOf(&p.UnknownTags))}
}
