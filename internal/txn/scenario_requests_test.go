package txn

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
)

// args are the arguments of a command. The first word of a request is the client.
type args struct {
	s *scenario
	d *datadriven.TestData
}

func (a args) who() string { return a.d.CmdArgs[0].Key }

func (a args) text(name, otherwise string) string {
	for _, c := range a.d.CmdArgs {
		if c.Key == name && len(c.Vals) > 0 {
			return strings.Join(c.Vals, ",")
		}
	}
	return otherwise
}

func (a args) flag(name string) bool {
	return slices.ContainsFunc(a.d.CmdArgs, func(c datadriven.CmdArg) bool { return c.Key == name && len(c.Vals) == 0 })
}

func (a args) number(name string, otherwise int) int {
	return parseInt(a.s.t, a.text(name, fmt.Sprint(otherwise)))
}

func (a args) list(name string) (out []string) {
	for _, c := range a.d.CmdArgs {
		if c.Key == name {
			out = append(out, c.Vals...)
		}
	}
	return out
}

func (a args) id() string { return a.text("id", "x") }

// pair is what the client was told last, or as given: pair=1/5.
func (a args) pair() pair {
	v := a.text("pair", "")
	if v == "" {
		p, ok := a.s.pairs[a.who()]
		if !ok {
			return noPair
		}
		return p
	}
	return parsePair(a, v)
}

func parsePair(a args, v string) pair {
	id, epoch, _ := strings.Cut(v, "/")
	return pair{int64(parseInt(a.s.t, id)), int16(parseInt(a.s.t, epoch))}
}

// partitions are the arguments of the form t:0.
func (a args) partitions() (out []topic) {
	for _, c := range a.d.CmdArgs {
		name, p, ok := strings.Cut(c.Key, ":")
		if !ok {
			continue
		}
		if n := len(out); n == 0 || out[n-1].name != name {
			out = append(out, topic{name: name})
		}
		last := &out[len(out)-1]
		last.partitions = append(last.partitions, int32(parseInt(a.s.t, p)))
	}
	return out
}

// init a [mine] [id=x] [timeout=60s] [pair=1/5] [v=5] [operator]: mine has the client
// send what it was told last.
func (s *scenario) init(a args) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.Version = int16(a.number("v", 5))
	id := a.id()
	if !a.flag("null") {
		req.TransactionalID = &id
	}
	req.TransactionTimeoutMillis = int32(parseDuration(s.t, a.text("timeout", "60s")).Milliseconds())
	p := noPair
	if a.flag("mine") || a.text("pair", "") != "" {
		p = a.pair()
	}
	req.ProducerID, req.ProducerEpoch = p.id, p.epoch
	if a.flag("operator") {
		journal.MarkOperator(&req.UnknownTags)
	}
	s.request(a.who(), req)
}

// add a t:0 t:1 [id=x] [pair=1/5] [v=3] [verify] [topic-id=7]: from version 4 on as a
// broker sends it, which may know a topic by another id.
func (s *scenario) add(a args) {
	req := kmsg.NewPtrAddPartitionsToTxnRequest()
	req.Version = int16(a.number("v", 3))
	if req.Version >= addBatched {
		req.Transactions = append(req.Transactions, transactionOf(a))
		s.request(a.who(), req)
		return
	}
	p := a.pair()
	req.TransactionalID, req.ProducerID, req.ProducerEpoch = a.id(), p.id, p.epoch
	for _, t := range a.partitions() {
		req.Topics = append(req.Topics, kmsg.AddPartitionsToTxnRequestTopic{Topic: t.name, Partitions: t.partitions})
	}
	s.request(a.who(), req)
}

func transactionOf(a args) kmsg.AddPartitionsToTxnRequestTransaction {
	p := a.pair()
	out := kmsg.AddPartitionsToTxnRequestTransaction{TransactionalID: a.id(), ProducerID: p.id, ProducerEpoch: p.epoch, VerifyOnly: a.flag("verify")}
	for _, t := range a.partitions() {
		topic := kmsg.AddPartitionsToTxnRequestTransactionTopic{Topic: t.name, Partitions: t.partitions}
		if id := a.number("topic-id", 0); id != 0 {
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
	for line := range strings.Lines(a.d.Input) {
		_, fields, err := datadriven.ParseLine("add " + line)
		if err != nil {
			s.t.Fatal(err)
		}
		req.Transactions = append(req.Transactions, transactionOf(args{s, &datadriven.TestData{CmdArgs: fields}}))
	}
	s.request(a.who(), req)
}

// offsets a [group=g] [v=3].
func (s *scenario) offsets(a args) {
	req := kmsg.NewPtrAddOffsetsToTxnRequest()
	req.Version, req.TransactionalID, req.Group = int16(a.number("v", 3)), a.id(), a.text("group", "g")
	req.ProducerID, req.ProducerEpoch = a.pair().id, a.pair().epoch
	s.request(a.who(), req)
}

// commit a [v=5] [pair=1/5], abort a: EndTxn.
func (s *scenario) commit(a args) { s.end(a, true) }
func (s *scenario) abort(a args)  { s.end(a, false) }

func (s *scenario) end(a args, commit bool) {
	req := kmsg.NewPtrEndTxnRequest()
	req.Version, req.TransactionalID, req.Commit = int16(a.number("v", 5)), a.id(), commit
	req.ProducerID, req.ProducerEpoch = a.pair().id, a.pair().epoch
	s.request(a.who(), req)
}

// describe a [ids=(x,y)].
func (s *scenario) describe(a args) {
	req := kmsg.NewPtrDescribeTransactionsRequest()
	if req.TransactionalIDs = a.list("ids"); req.TransactionalIDs == nil {
		req.TransactionalIDs = []string{"x"}
	}
	s.request(a.who(), req)
}

// list a [states=(Ongoing)] [longer=10s] [v=1].
func (s *scenario) list(a args) {
	req := kmsg.NewPtrListTransactionsRequest()
	req.Version, req.StateFilters = int16(a.number("v", 1)), a.list("states")
	if longer := a.text("longer", ""); longer != "" {
		req.DurationFilterMillis = parseDuration(s.t, longer).Milliseconds()
	}
	s.request(a.who(), req)
}

// answer [2] [t:0=6] [error] [nonsense]: a broker answers a send, or all that have
// no outcome; partitions that are not named are well. One that was answered before
// is answered again.
func (s *scenario) answer(a args) {
	which := slices.Clone(s.open)
	if len(a.d.CmdArgs) > 0 {
		if v := a.d.CmdArgs[0].Key; v[0] >= '0' && v[0] <= '9' {
			which = []uint64{uint64(parseInt(s.t, v))}
		}
	}
	if len(which) == 0 {
		s.t.Error("there is nothing to answer")
	}
	for _, id := range which {
		s.open = slices.DeleteFunc(s.open, func(o uint64) bool { return o == id })
		out := machine.Sent{ID: id}
		switch {
		case a.flag("error"):
			out.Err = errors.New("no answer")
		case a.flag("nonsense"):
			out.Msg = kmsg.NewPtrHeartbeatResponse()
		default:
			out.Msg = markersAnswer(s.sends[id].Msg.(*kmsg.WriteTxnMarkersRequest), func(tp string) int16 { return int16(a.number(tp, 0)) })
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
	if a.who() == "by-hand" {
		s.blockLen = 0
		return
	}
	id := uint64(parseInt(s.t, a.who()))
	if a.flag("error") || a.text("code", "") != "" || a.text("start", "") != "" {
		resp := kmsg.NewPtrAllocateProducerIDsResponse()
		resp.ErrorCode, resp.ProducerIDStart, resp.ProducerIDLen = int16(a.number("code", 0)), int64(a.number("start", 0)), int32(a.number("len", 10))
		out := machine.Sent{ID: id, Msg: resp}
		if a.flag("error") {
			out = machine.Sent{ID: id, Err: errors.New("no answer")}
		}
		s.open = slices.DeleteFunc(s.open, func(o uint64) bool { return o == id })
		s.step(out)
		return
	}
	s.giveIDs(id, int32(a.number("len", 10)))
}

func (s *scenario) giveIDs(send uint64, n int32) {
	resp := kmsg.NewPtrAllocateProducerIDsResponse()
	resp.ProducerIDStart, resp.ProducerIDLen = s.nextID, n
	s.nextID += int64(n)
	s.open = slices.DeleteFunc(s.open, func(o uint64) bool { return o == send })
	s.step(machine.Sent{ID: send, Msg: resp})
}
