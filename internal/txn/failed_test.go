package txn

import (
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/machine"
)

// words makes a command of a line.
func words(line string) *datadriven.TestData {
	cmd, fields, err := datadriven.ParseLine(line)
	if err != nil {
		panic(err)
	}
	return &datadriven.TestData{Cmd: cmd, CmdArgs: fields}
}

func arg(key, value string) datadriven.CmdArg {
	return datadriven.CmdArg{Key: key, Vals: []string{value}}
}

// Every request has an answer that says that this is not the coordinator, in every
// version, for all that was asked about.
func TestEveryRequestCanFail(t *testing.T) {
	id := "x"
	asks := kmsg.AddPartitionsToTxnRequestTransaction{TransactionalID: "x", Topics: []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: "t", Partitions: []int32{0, 1}}}}
	kind := Definition(DefaultConfig)
	for want, req := range map[string]kmsg.Request{
		"init: NOT_COORDINATOR (16)":                             &kmsg.InitProducerIDRequest{Version: 5, TransactionalID: &id},
		"add: t:0 NOT_COORDINATOR (16) t:1 NOT_COORDINATOR (16)": &kmsg.AddPartitionsToTxnRequest{Version: 3, Topics: []kmsg.AddPartitionsToTxnRequestTopic{{Topic: "t", Partitions: []int32{0, 1}}}},
		"add: x( t:0 NOT_COORDINATOR (16) t:1 NOT_COORDINATOR (16) )": &kmsg.AddPartitionsToTxnRequest{
			Version: 5, Transactions: []kmsg.AddPartitionsToTxnRequestTransaction{asks},
		},
		"offsets: NOT_COORDINATOR (16)":     &kmsg.AddOffsetsToTxnRequest{Version: 3},
		"end: NOT_COORDINATOR (16)":         &kmsg.EndTxnRequest{Version: 5},
		"list: NOT_COORDINATOR (16)":        &kmsg.ListTransactionsRequest{Version: 1},
		"describe: x: NOT_COORDINATOR (16)": &kmsg.DescribeTransactionsRequest{TransactionalIDs: []string{"x"}},
	} {
		s := newScenario(t)
		assert.Equal(t, s.showReply("a", s.Wire(req, kind.Fail(req, kerr.NotCoordinator))), want, "%T", req)
		assert.False(t, kind.NeedsRandom(req), "%T needs random bytes", req)
	}
}

// A request that is not for transactions is a mistake of the broker.
func TestOtherRequestsAreRefused(t *testing.T) {
	defer func() {
		assert.True(t, recover() != nil, "a heartbeat is handled")
	}()
	Definition(DefaultConfig).New().Step(machine.Input{Event: machine.Request{ID: 1, Msg: kmsg.NewPtrHeartbeatRequest()}})
}

// However many wait, for the end of one transaction or for producer ids, the others
// are turned away at once.
func TestNotEverybodyMayWait(t *testing.T) {
	for what, c := range map[string]struct {
		setup []string
		want  string
	}{
		"for the end": {[]string{"init a", "add a t:0", "commit a v=4"}, "b ← init: CONCURRENT_TRANSACTIONS (51)\n"},
		"for ids":     {[]string{"ids by-hand"}, "b ← init: COORDINATOR_LOAD_IN_PROGRESS (14)\n"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScenario(t)
			for _, cmd := range c.setup {
				s.command(words(cmd))
			}
			for range maxWaiting {
				s.command(words("init b"))
			}
			assert.MustEqual(t, len(s.Asked), maxWaiting)
			s.Out.Reset()
			s.command(words("init b"))
			assert.Equal(t, s.Out.String(), c.want, "one more")
			s.check("then")
		})
	}
}

// A load is about all transactions at once, and what it needed room for is not kept.
func TestTheRoomOfALargeStepIsGivenBack(t *testing.T) {
	s := NewShard(DefaultConfig())
	s.step.out = machine.Effects{
		Replies: make([]machine.Reply, 10_000), Timers: make([]machine.Timer, 10_000), Sends: make([]machine.Send, 10_000), Batches: make([]machine.Batch, 10_000),
	}
	s.step.records = make([]machine.Record, 10_000)
	s.Step(machine.Input{Event: machine.TopicsChanged{}})
	if x := &s.step; cap(x.out.Replies) > keep || cap(x.out.Timers) > keep || cap(x.out.Sends) > keep || cap(x.out.Batches) > keep || cap(x.records) > keep {
		t.Error("room is kept")
	}
}

// Without metadata no one knows that a topic is gone: its marker waits.
func TestNoPartitionIsDroppedWithoutMetadata(t *testing.T) {
	s := newScenario(t)
	s.log = []machine.Record{s.parseRecord(s.args(words("x PrepareCommit 1/0 t:0")))}
	s.image = nil
	s.load()
	s.check("after the load")
	if x := s.shard.txns["x"]; x.hard.State != PrepareCommit || len(x.ending.left) != 1 {
		t.Errorf("%+v", x.hard)
	}
}
