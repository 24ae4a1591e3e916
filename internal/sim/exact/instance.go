package exact

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/store"
)

// instance is a process that copies. It does what client libraries do: below
// version 2 of transactions it adds partitions and offsets itself and keeps its
// epoch; with version 2 leaders do, and each end gives it a new epoch.
type instance struct {
	w           *world
	c           *copier
	id          string // its transactional id
	name        string
	tv2         bool
	dead        bool
	busy        bool // it has a transaction
	pausedUntil time.Duration

	pid    int64
	epoch  int16
	known  bool // it has a producer id
	seqs   map[store.TopicPartition]int32
	parts  []int32         // of the input, that it copies
	pos    map[int32]int64 // in them
	member *member         // of the team, nil if it is not
	// unstable says that it waits for offsets that a transaction may still change.
	unstable bool
	a        *attempt
	todo     []produce // batches of the transaction that are not acknowledged
	unsure   bool      // something of the transaction may arrive later still
	sent     bool      // something was sent that may have begun the transaction
}

var plainProduce = partition.Produce{Acks: partition.AcksAll, Version: 11}

func outputAt(p int32) store.TopicPartition {
	return store.TopicPartition{Topic: outputTopic, Partition: p}
}

// run goes on, after a pause if there is one, unless the instance is dead.
func (x *instance) run(next func()) {
	switch {
	case x.dead:
	case x.w.Now < x.pausedUntil && !x.w.Calm:
		x.w.At(x.pausedUntil, func() { x.run(next) })
	default:
		next()
	}
}

func (x *instance) later(next func()) {
	x.w.After(x.w.Between(5*time.Millisecond, 150*time.Millisecond), func() { x.run(next) })
}

// ask sends a request to the coordinator of the transaction or of the group.
func (x *instance) ask(topic string, req kmsg.Request, done func(kmsg.Response)) {
	id := x.id
	if topic == offsetsTopic {
		id = x.c.group
	}
	m := message{from: x.name, to: x.w.coordinator(x.w.someImage(), topic, id), body: req, timeout: x.w.patience(), ordered: !x.tv2}
	x.w.send(m, func(answer any) {
		x.run(func() {
			resp, _ := answer.(kmsg.Response)
			done(resp)
		})
	})
}

// die is the end of an instance that was told that it is fenced, or worse.
func (x *instance) die(what string, code int16) {
	x.w.Tracef("%s: gives up: %s %d", x.name, what, code)
	x.w.Count("client gave up")
	x.dead = true
}

// init asks for a producer id, or for a new epoch of the one that it has.
func (x *instance) init() {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version, req.TransactionalID, req.TransactionTimeoutMillis = 4, &x.id, int32(x.c.plan.timeout.Milliseconds())
	if x.tv2 {
		req.Version = 5
	}
	req.ProducerID, req.ProducerEpoch = -1, -1
	if x.known {
		req.ProducerID, req.ProducerEpoch = x.pid, x.epoch
	}
	x.ask(stateTopic, req, func(r kmsg.Response) {
		resp, _ := r.(*kmsg.InitProducerIDResponse)
		switch {
		case resp == nil || retriable(resp.ErrorCode):
			x.later(x.init)
		case resp.ErrorCode != 0:
			x.die("InitProducerId", resp.ErrorCode)
		default:
			x.adopt(resp.ProducerID, resp.ProducerEpoch)
			x.resume()
		}
	})
}

// resume goes on after the instance got a producer: as a member of the team first,
// if it is to be one.
func (x *instance) resume() {
	switch m := x.member; {
	case m == nil || m.synced:
		x.fetchOffsets()
	case m.joining:
		x.later(x.resume)
	default:
		x.join()
	}
}

// adopt takes a producer id and epoch.
func (x *instance) adopt(pid int64, epoch int16) {
	x.w.Tracef("%s: is %d/%d", x.name, pid, epoch)
	x.pid, x.epoch, x.known = pid, epoch, true
	x.seqs = map[store.TopicPartition]int32{}
}

func retriable(code int16) bool {
	switch code {
	case kerr.ConcurrentTransactions.Code, kerr.CoordinatorLoadInProgress.Code, kerr.CoordinatorNotAvailable.Code, kerr.NotCoordinator.Code,
		kerr.UnstableOffsetCommit.Code, kerr.NotLeaderForPartition.Code, kerr.NotEnoughReplicas.Code, kerr.NotEnoughReplicasAfterAppend.Code,
		kerr.KafkaStorageError.Code, kerr.UnknownTopicOrPartition.Code, kerr.RequestTimedOut.Code:
		return true
	}
	return false
}

// fetchOffsets finds out from where to copy on. As long as an offset is pending
// someone's transaction may still change it, and it waits.
func (x *instance) fetchOffsets() {
	if x.mustJoin() {
		x.join()
		return
	}
	if x.member != nil {
		x.member.moved = false
	}
	if len(x.parts) == 0 {
		x.later(x.begin)
		return
	}
	t := kmsg.NewOffsetFetchRequestGroupTopic()
	t.Topic, t.Partitions = inputTopic, x.parts
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group, g.Topics = x.c.group, []kmsg.OffsetFetchRequestGroupTopic{t}
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.RequireStable, req.Groups = 8, true, []kmsg.OffsetFetchRequestGroup{g}
	x.ask(offsetsTopic, req, func(r kmsg.Response) {
		resp, _ := r.(*kmsg.OffsetFetchResponse)
		if resp == nil || resp.Groups[0].ErrorCode != 0 {
			x.later(x.fetchOffsets)
			return
		}
		x.pos = map[int32]int64{}
		for _, p := range resp.Groups[0].Topics[0].Partitions {
			if p.ErrorCode != 0 {
				if !x.unstable {
					x.w.Count(fmt.Sprintf("owner parked by %d", p.ErrorCode))
				}
				x.unstable = true
				x.later(x.fetchOffsets)
				return
			}
			x.pos[p.Partition] = max(p.Offset, 0)
		}
		x.unstable = false
		x.begin()
	})
}

// begin begins a transaction, if there is anything to copy.
func (x *instance) begin() {
	w := x.w
	if m := x.member; m != nil && (m.joining || m.moved || m.dismissed) {
		x.resume()
		return
	}
	most := int64(5)
	if w.Calm {
		most = 50 // The rest, quickly.
	}
	var spans []span
	for _, p := range x.parts {
		if left := w.inputs[p] - x.pos[p]; left > 0 {
			spans = append(spans, span{p, x.pos[p], x.pos[p] + min(left, 1+w.Rand.Int64N(most))})
		}
	}
	if len(spans) == 0 {
		x.later(x.begin)
		return
	}
	x.a = &attempt{number: len(w.attempts), c: x.c, spans: spans}
	if x.member != nil {
		x.a.place = x.member.place()
	}
	w.attempts = append(w.attempts, x.a)
	x.unsure, x.sent, x.busy, x.todo = false, false, true, nil
	for _, s := range spans {
		x.copy(s, most)
	}
	x.copyAside()
	w.Tracef("%s: begins transaction %d, input %v", x.name, x.a.number, spans)
	w.Count("transaction begun")
	if x.tv2 {
		x.produce(0)
	} else {
		x.add(0)
	}
}

// copy makes batches of a part of the input.
func (x *instance) copy(s span, most int64) {
	w := x.w
	for i := s.from; i < s.to; {
		p := w.Rand.Int32N(w.plan.outputs)
		var recs []record.Record
		for n := 1 + w.Rand.Int64N(max(2, most/3)); n > 0 && i < s.to; n-- {
			key := strconv.Itoa(int(s.partition)) + "/" + strconv.FormatInt(i, 10)
			x.a.keys = append(x.a.keys, key)
			recs = append(recs, record.Record{
				OffsetDelta: int32(len(recs)), Timestamp: w.Clock().UnixMilli(), Key: []byte(key), Value: []byte(strconv.Itoa(x.a.number)),
			})
			i++
		}
		x.todo = append(x.todo, x.batch(outputAt(p), recs))
	}
}

// batch makes a batch of the transaction.
func (x *instance) batch(tp store.TopicPartition, recs []record.Record) produce {
	t := record.PlainTemplate()
	t.ProducerID, t.ProducerEpoch, t.Transactional, t.BaseSequence = x.pid, x.epoch, true, x.seqs[tp]
	x.seqs[tp] += int32(len(recs))
	b, err := record.Build(t, recs)
	if err != nil {
		panic(err)
	}
	how := partition.Produce{Acks: partition.AcksAll, TransactionalID: x.id, Version: 11}
	if x.tv2 {
		how.Version = 12
	} else if x.c.n%2 == 0 {
		how.Version = 10
	}
	return produce{tp: tp, batch: b, how: how}
}

// maxTries is how often a request within a transaction is sent, at most.
const maxTries = 8

// patience is how long a client waits for an answer.
func (w *world) patience() time.Duration {
	if w.Rand.IntN(3) == 0 && !w.Calm {
		return w.Between(100*time.Millisecond, time.Second)
	}
	return w.Between(time.Second, 5*time.Second)
}

// add tells the coordinator which partitions will be written.
func (x *instance) add(tries int) {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version, req.TransactionalID, req.ProducerID, req.ProducerEpoch = 3, x.id, x.pid, x.epoch
	for _, name := range []string{outputTopic, sideTopic} {
		t := kmsg.NewAddPartitionsToTxnRequestTopic()
		t.Topic = name
		for _, m := range x.todo {
			if m.tp.Topic == name && !slices.Contains(t.Partitions, m.tp.Partition) {
				t.Partitions = append(t.Partitions, m.tp.Partition)
			}
		}
		if len(t.Partitions) > 0 {
			req.Topics = append(req.Topics, t)
		}
	}
	x.ask(stateTopic, req, func(r kmsg.Response) {
		resp, _ := r.(*kmsg.AddPartitionsToTxnResponse)
		code := int16(0)
		for _, p := range flatten(resp) {
			code = max(code, p)
		}
		x.outcome("AddPartitionsToTxn", resp != nil, code, tries, x.add, func() {
			x.sent = true
			x.produce(0)
		})
	})
}

func flatten(r *kmsg.AddPartitionsToTxnResponse) (out []int16) {
	if r == nil {
		return nil
	}
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			out = append(out, p.ErrorCode)
		}
	}
	return out
}

// outcome goes on by the answer to a request of the transaction: on, once more, to
// an abort, or to the end of the instance.
func (x *instance) outcome(what string, answered bool, code int16, tries int, again func(int), next func()) {
	x.sent = x.sent || !answered
	switch {
	case answered && code == 0:
		next()
	case (!answered || retriable(code)) && (tries < x.w.Rand.IntN(maxTries) || x.w.Calm):
		x.later(func() { again(tries + 1) })
	case code == kerr.ProducerFenced.Code || code == kerr.InvalidProducerIDMapping.Code || code == kerr.InvalidProducerEpoch.Code && !x.tv2 && what != "Produce":
		x.die(what, code)
	default:
		x.w.Tracef("%s: aborts because of %s %d", x.name, what, code)
		x.w.Count("abort because of an error")
		x.unsure = true
		x.end(false)
	}
}
