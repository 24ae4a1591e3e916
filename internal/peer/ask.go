package peer

import (
	"errors"
	"log/slog"
	"slices"
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
	epoch int32 // leader epoch of the coordinator's partition when it was asked
	done  func(partition.TxnAnswer)
}

// asks are the questions that wait to be sent, by node.
type asks struct {
	mu    sync.Mutex
	nodes map[int32]*asking
}

// asking is what one node is to be asked. Each transactional id has a queue of its
// own, so that one about which very much is asked, none of which goes together,
// keeps no one else waiting.
type asking struct {
	queues  map[string][]question
	turns   []string // the ids that have a queue, in the order of their turns
	running int      // goroutines that ask
}

// Ask asks the coordinator of a transaction about a partition. It implements
// partition.TxnCoordinator.
func (c *Client) Ask(q partition.TxnQuestion, done func(partition.TxnAnswer)) {
	by, err := c.coordinatorOf(q.TransactionalID)
	if err != nil {
		go done(failed(err))
		return
	}
	node := by.Leader
	c.asks.mu.Lock()
	defer c.asks.mu.Unlock()
	a := c.asks.nodes[node]
	if a == nil {
		a = &asking{}
		c.asks.nodes[node] = a
	}
	a.add(question{q, by.LeaderEpoch, done})
	if a.running < asksAtOnce {
		a.running++
		go c.askAll(node, a)
	}
}

// coordinatorOf returns the partition whose leader coordinates a transactional id.
func (c *Client) coordinatorOf(id string) (by metadata.Partition, err *kerr.Error) {
	image := c.opts.Image()
	if image == nil {
		return by, kerr.CoordinatorNotAvailable
	}
	t := image.Topic(metadata.TransactionsTopic)
	if t == nil {
		return by, kerr.CoordinatorNotAvailable
	}
	return t.Partitions[journal.PartitionFor(id, int32(len(t.Partitions)))], nil
}

func failed(err *kerr.Error) partition.TxnAnswer {
	return partition.TxnAnswer{Err: err, Start: int64(machine.NoTxnStart)}
}

// askAll asks a node until nothing is left to ask. If an answer takes too long
// another goroutine goes on in its place.
func (c *Client) askAll(node int32, a *asking) {
	var last told
	for {
		some := c.nextAsks(node, a)
		last.passOn(c, len(some) == 0)
		if len(some) == 0 {
			return
		}
		mine := false
		c.send(c.ctx, node, buildQuestions(some), func(resp kmsg.Response, err error, apart bool) {
			out := told{some, c.answers(node, len(some), resp, err)}
			if apart {
				out.passOn(c, false)
				c.askAll(node, a)
				return
			}
			last, mine = out, true
		})
		if !mine {
			return
		}
	}
}

// nextAsks returns what is to be asked next. If it is nothing the goroutine that
// asks counts no more.
func (c *Client) nextAsks(node int32, a *asking) []question {
	c.asks.mu.Lock()
	defer c.asks.mu.Unlock()
	some := a.take()
	if len(some) == 0 {
		if a.running--; a.running == 0 {
			delete(c.asks.nodes, node)
		}
	}
	return some
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

// told is questions and their answers.
type told struct {
	some    []question
	answers *kmsg.AddPartitionsToTxnResponse
}

// passOn passes on the answers. What is done with them may take a while, so each
// transaction has a goroutine for that, the last one this if it has nothing else to
// do.
func (t told) passOn(c *Client, here bool) {
	for rest := t.some; len(rest) > 0; {
		n := rest[0].alike(rest)
		of := told{rest[:n], t.answers}
		if rest = rest[n:]; here && len(rest) == 0 {
			of.tell(c)
		} else {
			go of.tell(c)
		}
	}
}

// tell refuses an answer if the id has another coordinator since the question, or the same
// one whose log has lost its end: the transaction may be lost, and then nothing would ever
// end what it begins.
func (t told) tell(c *Client) {
	for i := range t.some {
		q := &t.some[i]
		a := answerTo(t.answers, &q.TxnQuestion)
		if by, err := c.coordinatorOf(q.TransactionalID); a.Err == nil && (err != nil || by.LeaderEpoch != q.epoch) {
			a = failed(kerr.NotCoordinator)
		}
		q.done(a)
	}
}

// answers is what a node answered to some questions, or what stands for it.
func (c *Client) answers(node int32, questions int, resp kmsg.Response, err error) *kmsg.AddPartitionsToTxnResponse {
	if err != nil {
		level := slog.LevelDebug
		if errors.Is(err, errStranger) || errors.Is(err, errImpostor) {
			level = slog.LevelWarn // It does not pass by itself if the brokers are of two clusters.
		}
		c.opts.Logger.Log(c.ctx, level, "a coordinator of transactions could not be asked", "node", node, "questions", questions, "error", err)
		return &kmsg.AddPartitionsToTxnResponse{ErrorCode: kerr.NetworkException.Code}
	}
	answers, ok := resp.(*kmsg.AddPartitionsToTxnResponse)
	switch {
	case !ok:
		return &kmsg.AddPartitionsToTxnResponse{ErrorCode: kerr.UnknownServerError.Code}
	case answers.ErrorCode != 0:
		c.opts.Logger.Warn("a coordinator of transactions refuses to be asked", "node", node, "error", kerr.ErrorForCode(answers.ErrorCode))
	}
	return answers
}

// buildQuestions makes one request, in which each partition of a transaction
// stands once. Questions about a transaction follow each other.
func buildQuestions(some []question) *kmsg.AddPartitionsToTxnRequest {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = askVersion
	for i := range some {
		q := &some[i]
		if n := len(req.Transactions); n == 0 || req.Transactions[n-1].TransactionalID != q.TransactionalID {
			t := kmsg.NewAddPartitionsToTxnRequestTransaction()
			t.TransactionalID, t.ProducerID, t.ProducerEpoch, t.VerifyOnly = q.TransactionalID, q.ProducerID, q.ProducerEpoch, !q.Add
			req.Transactions = append(req.Transactions, t)
		}
		t := &req.Transactions[len(req.Transactions)-1]
		j := slices.IndexFunc(t.Topics, func(t kmsg.AddPartitionsToTxnRequestTransactionTopic) bool {
			return t.Topic == q.Topic && machine.TopicIDOf(&t.UnknownTags) == machine.TopicID(q.TopicID)
		})
		if j < 0 {
			j = len(t.Topics)
			topic := kmsg.NewAddPartitionsToTxnRequestTransactionTopic()
			topic.Topic = q.Topic
			machine.TopicID(q.TopicID).Set(&topic.UnknownTags)
			t.Topics = append(t.Topics, topic)
		}
		if !slices.Contains(t.Topics[j].Partitions, q.Partition) {
			t.Topics[j].Partitions = append(t.Topics[j].Partitions, q.Partition)
		}
	}
	return req
}

// answerTo finds the answer to a question. There are few enough to look through.
func answerTo(answers *kmsg.AddPartitionsToTxnResponse, q *partition.TxnQuestion) partition.TxnAnswer {
	if answers.ErrorCode != 0 {
		return failed(kerr.TypedErrorForCode(answers.ErrorCode))
	}
	for i := range answers.Transactions {
		t := &answers.Transactions[i]
		if t.TransactionalID != q.TransactionalID {
			continue
		}
		for j := range t.Topics {
			if t.Topics[j].Topic != q.Topic {
				continue
			}
			for k := range t.Topics[j].Partitions {
				if p := &t.Topics[j].Partitions[k]; p.Partition == q.Partition {
					return partition.TxnAnswer{Err: kerr.TypedErrorForCode(p.ErrorCode), Start: int64(machine.TxnStartOf(&p.UnknownTags)), Run: string(machine.StoreRunOf(&p.UnknownTags))}
				}
			}
		}
	}
	return failed(kerr.UnknownServerError)
}
