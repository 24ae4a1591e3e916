package txn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/harness"
	"muster/internal/journal"
	"muster/internal/machine"
)

// args are the arguments of a command.
type args struct {
	harness.Args
	s *scenario
}

func (s *scenario) args(d *datadriven.TestData) args { return args{harness.Args{T: s.T, D: d}, s} }

func (a args) id() string { return a.Text("id", "x") }

// pair is what the client was told last, or as given: pair=1/5.
func (a args) pair() pair {
	v := a.Text("pair", "")
	if v == "" {
		p, ok := a.s.pairs[a.Who()]
		if !ok {
			return noPair
		}
		return p
	}
	return parsePair(a, v)
}

func parsePair(a args, v string) pair {
	id, epoch, _ := strings.Cut(v, "/")
	return pair{int64(harness.ParseInt(a.T, id)), int16(harness.ParseInt(a.T, epoch))}
}

// partitions are the arguments of the form t:0.
func (a args) partitions() (out []topic) {
	for _, c := range a.D.CmdArgs {
		name, p, ok := strings.Cut(c.Key, ":")
		if !ok {
			continue
		}
		if n := len(out); n == 0 || out[n-1].name != name {
			out = append(out, topic{name: name})
		}
		last := &out[len(out)-1]
		last.partitions = append(last.partitions, int32(harness.ParseInt(a.T, p)))
	}
	return out
}

// init a [mine] [id=x] [timeout=60s] [pair=1/5] [v=5] [operator]: mine has the client
// send what it was told last.
func (s *scenario) init(a args) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = int16(a.Number("v", 5))
	id := a.id()
	if !a.Flag("null") {
		req.TransactionalID = &id
	}
	req.TransactionTimeoutMillis = int32(harness.ParseDuration(s.T, a.Text("timeout", "60s")).Milliseconds())
	p := noPair
	if a.Flag("mine") || a.Text("pair", "") != "" {
		p = a.pair()
	}
	req.ProducerID, req.ProducerEpoch = p.id, p.epoch
	if a.Flag("operator") {
		journal.MarkOperator(&req.UnknownTags)
	}
	s.request(a.Who(), req)
}

// add a t:0 t:1 [id=x] [pair=1/5] [v=3] [verify] [topic-id=7]: from version 4 on as a
// broker sends it, which may know a topic by another id.
func (s *scenario) add(a args) {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = int16(a.Number("v", 3))
	if req.Version >= addBatched {
		req.Transactions = append(req.Transactions, transactionOf(a))
		s.request(a.Who(), req)
		return
	}
	p := a.pair()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = a.id(), p.id, p.epoch
	for _, t := range a.partitions() {
		req.Topics = append(req.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: t.name, Partitions: t.partitions})
	}
	s.request(a.Who(), req)
}

func transactionOf(a args) kmsg.AddPartitionsToTxnRequestTransaction {
	p := a.pair()
	out := kmsg.AddPartitionsToTxnRequestTransaction{TransactionalID: a.id(), ProducerID: p.id, ProducerEpoch: p.epoch, VerifyOnly: a.Flag("verify")}
	for _, t := range a.partitions() {
		topic := kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.name, Partitions: t.partitions}
		if id := a.Number("topic-id", 0); id != 0 {
			machine.TopicID{15: byte(id)}.Set(&topic.UnknownTags)
		}
		out.Topics = append(out.Topics, topic)
	}
	return out
}

// ask leader: a broker asks about several transactions, a line each: a t:0 [id=x]
// [pair=1/5] [verify].
func (s *scenario) askBatch(a args) {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = 5
	for line := range strings.Lines(a.D.Input) {
		_, fields, err := datadriven.ParseLine("add " + line)
		assert.Must(s.T, err)
		req.Transactions = append(req.Transactions, transactionOf(s.args(&datadriven.TestData{CmdArgs: fields})))
	}
	s.request(a.Who(), req)
}

// offsets a [group=g] [v=3].
func (s *scenario) offsets(a args) {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.Version, req.TransactionalID, req.Group = int16(a.Number("v", 3)), a.id(), a.Text("group", "g")
	req.ProducerID, req.ProducerEpoch = a.pair().id, a.pair().epoch
	s.request(a.Who(), req)
}

// commit a [v=5] [pair=1/5], abort a: EndTxn.
func (s *scenario) commit(a args) { s.end(a, true) }
func (s *scenario) abort(a args)  { s.end(a, false) }

func (s *scenario) end(a args, commit bool) {
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.Commit = int16(a.Number("v", 5)), a.id(), commit
	req.ProducerID, req.ProducerEpoch = a.pair().id, a.pair().epoch
	s.request(a.Who(), req)
}

// describe a [ids=(x,y)].
func (s *scenario) describe(a args) {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	if req.TransactionalIDs = a.List("ids"); req.TransactionalIDs == nil {
		req.TransactionalIDs = []string{"x"}
	}
	s.request(a.Who(), req)
}

// list a [states=(Ongoing)] [longer=10s] [v=1].
func (s *scenario) list(a args) {
	req := kmsg.NewPtrListTransactionsRequest()
	req.Version, req.StateFilters = int16(a.Number("v", 1)), a.List("states")
	if longer := a.Text("longer", ""); longer != "" {
		req.DurationFilterMillis = harness.ParseDuration(s.T, longer).Milliseconds()
	}
	s.request(a.Who(), req)
}

// answer [2] [t:0=6] [error] [nonsense]: a broker answers a send, or all that have
// no outcome; partitions that are not named are well. One that was answered before
// is answered again.
func (s *scenario) answer(a args) {
	which := slices.Clone(s.open)
	if len(a.D.CmdArgs) > 0 {
		if v := a.D.CmdArgs[0].Key; v[0] >= '0' && v[0] <= '9' {
			which = []uint64{uint64(harness.ParseInt(s.T, v))}
		}
	}
	assert.True(s.T, len(which) != 0, "there is nothing to answer")
	for _, id := range which {
		s.open = slices.DeleteFunc(s.open, func(o uint64) bool { return o == id })
		out := machine.Sent{ID: id}
		switch {
		case a.Flag("error"):
			out.Err = errors.New("no answer")
		case a.Flag("nonsense"):
			out.Msg = kmsg.NewPtrHeartbeatResponse()
		default:
			out.Msg = markersAnswer(s.sends[id].Msg.(*kmsg.WriteTxnMarkersRequest), func(tp string) int16 { return int16(a.Number(tp, 0)) })
		}
		s.step(out)
	}
}

// missing stands for a partition that an answer does not have.
const missing = 999

func markersAnswer(req *kmsg.WriteTxnMarkersRequest, code func(tp string) int16) *kmsg.WriteTxnMarkersResponse {
	resp := kmsg.NewPtrWriteTxnMarkersResponse()
	for _, m := range req.Markers {
		out := kmsg.NewWriteTxnMarkersResponseMarker()
		out.ProducerID = m.ProducerID
		for _, t := range m.Topics {
			topic := kmsg.NewWriteTxnMarkersResponseMarkerTopic()
			topic.Topic = t.Topic
			for _, p := range t.Partitions {
				e := kmsg.NewWriteTxnMarkersResponseMarkerTopicPartition()
				e.Partition, e.ErrorCode = p, code(fmt.Sprintf("%s:%d", t.Topic, p))
				if e.ErrorCode != missing {
					topic.Partitions = append(topic.Partitions, e)
				}
			}
			out.Topics = append(out.Topics, topic)
		}
		resp.Markers = append(resp.Markers, out)
	}
	return resp
}

// ids by-hand | ids 3 [len=10] [start=5] [code=14] [error]: from now on producer ids are given
// by hand, which the second form does.
func (s *scenario) ids(a args) {
	if a.Who() == "by-hand" {
		s.blockLen = 0
		return
	}
	id := uint64(harness.ParseInt(s.T, a.Who()))
	if a.Flag("error") || a.Text("code", "") != "" || a.Text("start", "") != "" {
		resp := kmsg.NewPtrAllocateProducerIDsResponse()
		resp.ErrorCode, resp.ProducerIDStart, resp.ProducerIDLen = int16(a.Number("code", 0)), int64(a.Number("start", 0)), int32(a.Number("len", 10))
		out := machine.Sent{ID: id, Msg: resp}
		if a.Flag("error") {
			out = machine.Sent{ID: id, Err: errors.New("no answer")}
		}
		s.open = slices.DeleteFunc(s.open, func(o uint64) bool { return o == id })
		s.step(out)
		return
	}
	s.giveIDs(id, int32(a.Number("len", 10)))
}

func (s *scenario) giveIDs(send uint64, n int32) {
	resp := kmsg.NewPtrAllocateProducerIDsResponse()
	resp.ProducerIDStart, resp.ProducerIDLen = s.nextID, n
	s.nextID += int64(n)
	s.open = slices.DeleteFunc(s.open, func(o uint64) bool { return o == send })
	s.step(machine.Sent{ID: send, Msg: resp})
}
