package exact

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/partition"
)

// produce sends the next batch of the transaction, and the next when it is
// acknowledged.
func (x *instance) produce(tries int) {
	w := x.w
	if len(x.todo) == 0 {
		x.commitOffsets()
		return
	}
	m := x.todo[0]
	msg := message{from: x.name, to: leaderOf(w.someImage(), m.tp), body: m, timeout: w.patience()}
	w.send(msg, func(answer any) {
		x.run(func() {
			got, ok := answer.(partition.Appended)
			w.Count(fmt.Sprintf("Produce v%d %d", m.how.Version, code(got.Err)))
			x.sent = x.sent || ok && got.Err == nil
			x.outcome("Produce", ok, code(got.Err), tries, x.produce, func() {
				x.todo = x.todo[1:]
				x.produce(0)
			})
		})
	})
}

// commitOffsets adds the offsets to the transaction, unless the instance aborts
// it.
func (x *instance) commitOffsets() {
	switch {
	case x.w.Chance(x.c.plan.aborts) && !x.w.Calm:
		x.w.Count("abort at random")
		x.end(false)
	case x.mustJoin() && !x.w.Chance(x.w.plan.team.careless):
		x.w.Count("abort because of a rebalance")
		x.end(false)
	case x.tv2:
		x.txnOffsets(0)
	default:
		x.addOffsets(0)
	}
}

func (x *instance) addOffsets(tries int) {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = 3, x.id, x.pid, x.epoch, x.c.group
	x.ask(stateTopic, req, func(r kmsg.Response) {
		resp, _ := r.(*kmsg.AddOffsetsToTxnResponse)
		code := int16(0)
		if resp != nil {
			code = resp.ErrorCode
		}
		x.outcome("AddOffsetsToTxn", resp != nil, code, tries, x.addOffsets, func() { x.txnOffsets(0) })
	})
}

func (x *instance) txnOffsets(tries int) {
	req := kmsg.NewPtrTxnOffsetCommitRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = 3, x.id, x.pid, x.epoch, x.c.group
	if x.tv2 {
		req.Version = 5
	}
	req.Generation = -1
	if x.member != nil {
		req.Generation, req.MemberID, req.InstanceID = x.a.place.generation, x.a.place.id, x.a.place.instance
	}
	t := kmsg.NewTxnOffsetCommitRequestTopic()
	t.Topic = inputTopic
	for _, s := range x.a.spans {
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset, p.Metadata = s.partition, s.to, kmsg.StringPtr(strconv.Itoa(x.a.number))
		t.Partitions = append(t.Partitions, p)
	}
	req.Topics = []kmsg.TxnOffsetCommitRequestTopic{t}
	if x.a.number%2 == 0 { // Someone else commits the same offset without a transaction.
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = 0, int64(x.a.number)
		t := kmsg.NewTxnOffsetCommitRequestTopic()
		t.Topic, t.Partitions = outputTopic, []kmsg.TxnOffsetCommitRequestTopicPartition{p}
		req.Topics = append(req.Topics, t)
	}
	if x.a.aside {
		p := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		p.Partition, p.Offset = 0, int64(x.a.number)
		t := kmsg.NewTxnOffsetCommitRequestTopic()
		t.Topic, t.Partitions = sideTopic, []kmsg.TxnOffsetCommitRequestTopicPartition{p}
		req.Topics = append(req.Topics, t)
	}
	x.ask(offsetsTopic, req, func(r kmsg.Response) {
		resp, _ := r.(*kmsg.TxnOffsetCommitResponse)
		code := int16(0)
		if resp != nil {
			code = resp.Topics[0].Partitions[0].ErrorCode
		}
		if x.member != nil {
			x.member.toldIn(x.a.place, code)
		}
		x.outcome("TxnOffsetCommit", resp != nil, code, tries, x.txnOffsets, func() { x.end(true) })
	})
}

// end ends the transaction, and does not give up.
func (x *instance) end(commit bool) {
	if !commit && !x.tv2 && !x.sent {
		x.again() // The coordinator may know of nothing to end.
		return
	}
	x.a.asked = x.a.asked || commit
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = 4, x.id, x.pid, x.epoch, commit
	if x.tv2 {
		req.Version = 5
	}
	x.ask(stateTopic, req, func(r kmsg.Response) {
		resp, _ := r.(*kmsg.EndTxnResponse)
		switch {
		case resp == nil || retriable(resp.ErrorCode):
			x.later(func() { x.end(commit) })
		case resp.ErrorCode != 0 && !commit && !x.tv2 && resp.ErrorCode == 48:
			x.again() // None had begun.
		case resp.ErrorCode != 0:
			x.die("EndTxn", resp.ErrorCode)
		default:
			x.ended(commit, resp)
		}
	})
}

// ended is told the outcome of the transaction.
func (x *instance) ended(commit bool, resp *kmsg.EndTxnResponse) {
	w := x.w
	w.Tracef("%s: transaction %d has ended, commit %v", x.name, x.a.number, commit)
	x.a.committed, x.a.aborted = commit, !commit
	x.busy = false
	if commit {
		w.Count("transaction committed")
		for _, s := range x.a.spans {
			x.pos[s.partition] = s.to
		}
	} else {
		w.Count("transaction aborted")
	}
	switch {
	case x.tv2:
		x.adopt(resp.ProducerID, resp.ProducerEpoch)
		x.later(x.begin)
	case x.unsure:
		x.again()
	default:
		x.later(x.begin)
	}
}

// again asks for a new epoch, so that nothing of before can arrive, and copies on.
func (x *instance) again() {
	x.busy = false
	x.w.Count("client asks for a new epoch")
	x.init()
}
