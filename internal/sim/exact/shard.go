package exact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/coordinator/pump"
	"muster/internal/group"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/sim/shell"
	"muster/internal/store"
	"muster/internal/txn"
)

// peerTimeout is how long brokers wait for one another.
const peerTimeout = 10 * time.Second

// shard is one that a broker leads.
type shard struct {
	*shell.Shell
	b       *broker
	tp      store.TopicPartition
	epoch   int32
	kind    machine.Definition
	core    machine.Core
	gone    bool
	waiting map[machine.RequestID]*call
	appends int       // under way
	run     store.Run // of its log, that it was loaded in
	start   int       // likewise, of the server
}

// call is a request that a shard has not answered.
type call struct {
	req     kmsg.Request
	arrived time.Duration
	reply   func(kmsg.Response)
}

// kind is what a topic's shards are.
func (w *world) kind(topic string) machine.Definition {
	if topic == offsetsTopic {
		cfg := group.DefaultConfig()
		cfg.MinSession, cfg.InitialDelay = time.Second, w.plan.team.initial
		return group.Definition(func() group.Config { return cfg })
	}
	cfg := w.txnConfig()
	return txn.Definition(func() txn.Config { return cfg })
}

// coordinator is the broker that coordinates a group or a transaction, by an
// image.
func (w *world) coordinator(i *metadata.Image, topic, id string) int32 {
	n := int32(len(i.Topic(topic).Partitions))
	return leaderOf(i, store.TopicPartition{Topic: topic, Partition: journal.PartitionFor(id, n)})
}

func newShard(b *broker, tp store.TopicPartition, epoch int32) *shard {
	s := &shard{b: b, tp: tp, epoch: epoch, kind: b.w.kind(tp.Topic), waiting: map[machine.RequestID]*call{}}
	s.Shell = shell.New(b.w.World, s, shell.Pace{
		Moment: time.Millisecond, Skew: b.skew, Late: func() float64 { return b.w.faults().lateTimer }, MaxLate: time.Second, Plant: b.w.plant,
	})
	return s
}

// Input implements shell.Host.
func (s *shard) Input() machine.Input {
	w := s.b.w
	in := machine.Input{Now: s.b.clock(), Image: s.b.image, MaxBatch: 1 << 20}
	for i := range in.Random {
		in.Random[i] = byte(w.Rand.Uint32())
	}
	return in
}

// Do implements shell.Host.
func (s *shard) Do(run func()) {
	s.b.do(s.b.life, func() {
		if !s.gone {
			run()
		}
	})
}

// load replays the log into a new core, after a while, and goes on until it can.
func (s *shard) load() {
	w, life := s.b.w, s.Pump.Life()
	d := w.Between(time.Millisecond, 30*time.Millisecond)
	if !w.Calm && w.Rand.IntN(4) == 0 {
		d = w.Between(0, 2*time.Second)
	}
	b, brokerLife := s.b, s.b.life
	w.After(d, func() {
		b.do(brokerLife, func() {
			if s.gone || s.Pump.Life() != life {
				return
			}
			core, err := s.replay()
			if err != nil {
				w.Tracef("broker %d: %v cannot be loaded: %v", s.b.id, s.tp, err)
				s.load()
				return
			}
			w.Count("load of " + s.tp.Topic)
			w.Tracef("broker %d: loaded %s-%d in epoch %d", s.b.id, s.tp.Topic, s.tp.Partition, s.epoch)
			s.core = core
			s.Begin(life, core, machine.Loaded{Epoch: s.epoch, Run: machine.Run(s.run)})
			s.Drain()
		})
	})
}

// replay reads the log into a core.
func (s *shard) replay() (machine.Core, error) {
	p := s.b.manager.Get(s.tp.Topic, s.tp.Partition)
	if p == nil || p.LeaderEpoch() != s.epoch {
		return nil, kerr.NotLeaderForPartition
	}
	ctx := context.Background()
	s.b.w.store.atOnce = true
	err := p.Reopen(ctx)
	s.b.w.store.atOnce = false
	if err != nil {
		return nil, err
	}
	s.run, s.start = p.Run(), s.b.w.store.startFor(s.b, s.tp)
	core := s.kind.New()
	kind, done := s.kind, func() {}
	if kind.Reader != nil {
		kind.Decode, done = kind.Reader()
	}
	for offset := p.LogStartOffset(); ; {
		f := p.Read(ctx, partition.Fetch{Offset: offset, LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: 1 << 16, MinOne: true})
		if f.Err != nil {
			return nil, f.Err
		}
		b, err := f.Records.Load()
		f.Records.Release()
		if err != nil || len(b) == 0 {
			return core, err
		}
		for len(b) > 0 {
			var batch record.Batch
			if batch, b, err = record.Next(b); err != nil {
				return nil, err
			}
			core.Replay(s.b.w.decoded(kind, batch))
			done()
			offset = batch.LastOffset() + 1
		}
	}
}

// decoded reads a batch for a replay.
func (w *world) decoded(kind machine.Definition, b record.Batch) machine.Stored {
	out, err := pump.Decode(slices.Clone(b), kind.Decode, func(offset int64, err error) { w.Violated("record at %d cannot be read: %v", offset, err) })
	if err != nil {
		w.Violated("a batch cannot be read: %v", err)
	}
	return out
}

// request gives a request to the core.
func (s *shard) request(from string, m kmsg.Request, reply func(kmsg.Response)) {
	w := s.b.w
	if !s.Pump.Active() {
		w.Count("request while loading")
		reply(s.kind.Fail(m, kerr.CoordinatorLoadInProgress))
		return
	}
	w.ids++
	id := w.ids
	s.waiting[id] = &call{req: packed(m)().(kmsg.Request), arrived: w.Now, reply: reply}
	s.Request(machine.Request{ID: id, ClientID: from, Host: "10.0.0.1", Msg: m})
}

// end is a shard that this broker leads no more.
func (s *shard) end() {
	s.Pump.End()
	s.gone = true
	s.failAll()
}

// failAll tells everybody who waits that the shard cannot answer.
func (s *shard) failAll() {
	calls := s.waiting
	s.waiting = map[machine.RequestID]*call{}
	for _, id := range slices.Sorted(maps.Keys(calls)) {
		calls[id].reply(s.kind.Fail(calls[id].req, kerr.NotCoordinator))
	}
}

// Out implements shell.Host.
func (s *shard) Out(life uint64, out pump.Out) {
	for _, r := range out.Replies {
		s.answer(r)
	}
	for _, m := range out.Sends {
		s.send(life, m)
	}
	w := s.b.w
	for _, t := range out.Tasks {
		w.After(w.About(time.Millisecond), func() { s.Do(func() { s.TaskDone(life, t.ID, t.Run()) }) })
	}
}

// Lost implements shell.Host.
func (s *shard) Lost() {
	w := s.b.w
	w.Count("shard lost")
	w.Tracef("broker %d: %s-%d is lost", s.b.id, s.tp.Topic, s.tp.Partition)
	s.failAll()
	s.load()
}

// answer lets a reply out. A broker whose lease is over answers no one.
func (s *shard) answer(r machine.Reply) {
	w := s.b.w
	c := s.waiting[r.ID]
	if c == nil {
		w.Violated("%s: request %d is answered that does not wait: %T", s.tp.Topic, r.ID, r.Msg)
	}
	delete(s.waiting, r.ID)
	if !w.leads(s.b, s.tp, s.epoch) || s.isStale() {
		w.Count("answer of a deposed coordinator withheld")
		c.reply(s.kind.Fail(c.req, kerr.NotCoordinator))
		return
	}
	w.model.answered(c, r.Msg)
	c.reply(r.Msg)
}

func (s *shard) send(life uint64, m machine.Send) {
	w := s.b.w
	to := m.To
	if to == machine.Self {
		to = s.b.id
	}
	w.Count(fmt.Sprintf("send of %T", m.Msg)[len("send of *kmsg."):])
	done := func(answer any) {
		s.Do(func() {
			out := machine.Sent{ID: m.ID}
			if answer == nil {
				out.Err = errors.New("no answer")
			} else {
				out.Msg = answer.(kmsg.Response)
			}
			s.Sent(life, out)
		})
	}
	if to < 0 || int(to) >= len(w.brokers) {
		w.After(0, func() { done(nil) })
		return
	}
	msg := message{from: s.b.name(), to: to, body: m.Msg, timeout: peerTimeout}
	if _, ok := m.Msg.(*kmsg.WriteTxnMarkersRequest); ok && w.Chance(3*w.faults().duplicate) {
		w.Count("marker sent again later")
		msg.opens = w.store.opens
		body := packed(m.Msg)
		w.After(w.Between(0, 8*time.Second), func() { w.deliver(msg, body(), func(any) {}) })
	}
	w.send(msg, done)
}

// Append implements shell.Host.
func (s *shard) Append(a pump.Append) {
	w := s.b.w
	b, err := pump.Encode(&a.Batch, s.b.clock())
	if err != nil {
		w.Violated("a batch cannot be encoded: %v", err)
	}
	s.appends++
	done := func(base int64, err error) {
		s.appends--
		if s.gone {
			return
		}
		if err != nil {
			w.Tracef("broker %d: append to %s-%d: %v", s.b.id, s.tp.Topic, s.tp.Partition, err)
		}
		s.Appended(a.Life, s.Input(), base, err != nil)
	}
	p := s.b.manager.Get(s.tp.Topic, s.tp.Partition)
	if p == nil {
		done(-1, kerr.NotLeaderForPartition)
		return
	}
	p.AppendOwnIn(context.Background(), s.run.ID, b, done)
}
