package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// copier is a client that commits offsets in transactions, one after the other. It
// does so for groups of which it is no member, in the name of members that it
// knows, and for partitions that others commit plainly.
type copier struct {
	peer
	txn     transaction
	epoch   int16 // that it believes to have
	version int16 // of TxnOffsetCommit
	left    int   // commits before the end
	busy    bool
	at      int64
}

func (w *world) addCopiers() {
	for i := range w.plan.copiers {
		c := &copier{peer: peer{w: w, name: fmt.Sprintf("copier-%d", i), up: true}, version: int16(w.Rand.IntN(6))}
		c.txn = transaction{
			peer: peer{w: w, name: fmt.Sprintf("coordinator-of-%d", i), up: true},
			id:   fmt.Sprintf("txn-%d", i), producer: int64(i + 1), tv2: c.version >= 5, fates: map[int64]bool{},
		}
		w.copiers = append(w.copiers, c)
		w.After(w.About(3*time.Second), c.next)
		w.Every(w.plan.faults.txns, c.trouble)
	}
}

func (w *world) copierOf(id string) *copier {
	for _, c := range w.copiers {
		if c.txn.id == id {
			return c
		}
	}
	w.Violated("a question about %q, which does not exist", id)
	return nil
}

// trouble is what happens to a copier and to its coordinator.
func (c *copier) trouble() {
	switch c.w.Rand.IntN(4) {
	case 0:
		c.txn.replaced()
	case 1:
		c.w.Count("transaction timed out")
		c.txn.end(false, true)
	case 2:
		c.restart()
	case 3:
		if c.w.Rand.IntN(3) == 0 {
			c.pausedUntil = c.w.Now + c.w.About(5*time.Second)
		}
	}
}

// restart is a new instance, which fences the old one. What that has sent may
// still arrive.
func (c *copier) restart() {
	c.w.Count("copier restarted")
	c.hangUp()
	c.life++
	c.init()
}

// init is InitProducerId.
func (c *copier) init() {
	c.txn.end(false, true)
	if c.txn.state == txnPreparing {
		c.after(c.w.Between(20*time.Millisecond, 100*time.Millisecond), c.init)
		return
	}
	c.txn.epoch++
	c.epoch = c.txn.epoch
	c.after(c.w.About(100*time.Millisecond), c.next)
}

// next begins a transaction.
func (c *copier) next() {
	w := c.w
	c.busy = false
	if w.Calm {
		return
	}
	c.busy = true
	if !c.txn.tv2 { // AddOffsetsToTxn.
		if c.txn.state == txnPreparing {
			c.after(w.Between(20*time.Millisecond, 100*time.Millisecond), c.next)
			return
		}
		if c.epoch != c.txn.epoch {
			c.init()
			return
		}
		c.txn.begin()
		c.txn.added = true
	}
	c.left = 1 + w.Rand.IntN(3)
	c.commit()
}

// finish ends the transaction.
func (c *copier) finish(commit bool) {
	c.after(c.w.About(50*time.Millisecond), func() {
		if c.epoch != c.txn.epoch { // It was given up by its coordinator.
			c.init()
			return
		}
		c.txn.end(commit, false)
		c.epoch = c.txn.epoch
		c.after(c.w.About(2*time.Second), c.next)
	})
}

// note is what the offsets of a transaction say of it, as far as the client knows.
func (t *transaction) note(start int64) string { return fmt.Sprintf("%s at %d", t.id, start) }

// commit sends offsets, and goes on when they are acknowledged.
func (c *copier) commit() {
	w := c.w
	m := kmsg.NewPtrTxnOffsetCommitRequest()
	m.Version, m.TransactionalID, m.ProducerID, m.ProducerEpoch = c.version, c.txn.id, c.txn.producer, c.epoch
	m.Group, m.Generation = "simple-0", -1
	first := int32(0)
	if len(w.consumers) > 0 && w.Rand.IntN(2) == 0 {
		first = 90
		w.anyConsumer().lend(m)
	} else if len(w.clients) > 0 && w.Rand.IntN(2) == 0 {
		first = 90 // Members commit to their own.
		o := w.clients[w.Rand.IntN(len(w.clients))]
		m.Group = o.group.id
		if w.Rand.IntN(2) == 0 {
			m.MemberID, m.InstanceID, m.Generation = o.member, o.instance, o.generation
		}
	}
	for range 1 + w.Rand.IntN(3) {
		c.at++
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = first+int32(w.Rand.IntN(3)), c.at
		text := ""
		if w.Chance(w.faults().oversized) {
			text = strings.Repeat("é", w.plan.config.MaxMetadata+1)
		} else if c.txn.tv2 && c.txn.state == txnOngoing && c.epoch == c.txn.epoch {
			text = c.txn.note(c.txn.start)
		}
		p.Metadata = &text
		t := kmsg.TxnOffsetCommitRequestTopic{Topic: topicName(w.Rand.IntN(2)), Partitions: []kmsg.TxnOffsetCommitRequestTopicPartition{p}}
		m.Topics = append(m.Topics, t)
	}
	c.send(m, 0)
}

func (c *copier) send(m *kmsg.TxnOffsetCommitRequest, tries int) {
	c.call(m, 2*noWait, func(a answer) { c.committed(m, tries, a) })
}

func (c *copier) committed(m *kmsg.TxnOffsetCommitRequest, tries int, a answer) {
	w := c.w
	code := int16(codeNotCoordinator)
	if a.msg != nil {
		code = codeOf(a.msg)
	}
	switch code {
	case 0:
		if !a.stale {
			c.acked(m, a.msg.(*kmsg.TxnOffsetCommitResponse))
		}
		if c.left--; c.left > 0 {
			c.commit()
			return
		}
		c.finish(w.Rand.IntN(3) > 0)
	case codeNotCoordinator, codeLoadInProgress, codeNotAvailable, codeConcurrent:
		if a.msg != nil && code != codeConcurrent && code != codeLoadInProgress {
			c.hangUp()
		}
		if tries > 20 {
			c.finish(false)
			return
		}
		c.after(w.Between(20*time.Millisecond, 200*time.Millisecond), func() { c.send(m, tries+1) })
	case codeIllegalGeneration, codeUnknownMember, codeFencedInstance, codeAbortable, codeInvalidTxnState:
		c.finish(false)
	case codeInvalidEpoch:
		c.init()
	default:
		w.Violated("%s: TxnOffsetCommit is answered with %d", c.name, code)
	}
}

// acked notes what was promised.
func (c *copier) acked(m *kmsg.TxnOffsetCommitRequest, r *kmsg.TxnOffsetCommitResponse) {
	p := c.w.log.offsets.producers[c.txn.producer]
	if m.ProducerEpoch != c.txn.epoch || c.txn.state != txnOngoing {
		return // Its coordinator has given it up meanwhile.
	}
	for i, t := range r.Topics {
		for j, part := range t.Partitions {
			k := offsetKey{m.Group, t.Topic, part.Partition}
			if part.ErrorCode != 0 {
				continue
			}
			val, ok := p.pending[k]
			if ok && val.at >= m.Topics[i].Partitions[j].Offset {
				c.txn.acked[k] = val.pos
			}
		}
	}
}

// unsettledTxns says which transaction is not over yet.
func (w *world) unsettledTxns() string {
	if len(w.lead.asked) > 0 {
		return "a question is not answered"
	}
	for _, c := range w.copiers {
		switch t := &c.txn; {
		case c.busy:
			return c.name + " is at work"
		case t.state == txnOngoing:
			t.end(false, true)
			return t.id + " is under way"
		case t.state == txnPreparing:
			return t.id + " is about to end"
		case w.log.offsets.producers[t.producer].open:
			t.resolve()
			return t.id + " is open in the log"
		}
	}
	return ""
}

// voidTxns notes that the log may have lost anything of transactions so far.
func (w *world) voidTxns() {
	for _, c := range w.copiers {
		c.txn.void = max(c.txn.start, w.millis())
	}
}
