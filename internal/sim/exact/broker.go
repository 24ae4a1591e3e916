package exact

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/store"
)

// broker is a process. What the broker's packages add to its cores and
// partitions, goroutines, connections and clocks, is played here.
type broker struct {
	w           *world
	id          int32
	up          bool
	life        int
	frozenUntil time.Duration
	skew        time.Duration // of its clock
	version     int           // of the image that it knows
	image       *metadata.Image
	applied     *metadata.Image // as far as the manager knows it
	manager     *partition.Manager
	handles     map[store.TopicPartition]*handle // the last that it has opened
	raises      []raise                          // of leader epochs, that its manager wants
	shards      map[store.TopicPartition]*shard
}

func (b *broker) name() string { return fmt.Sprintf("broker %d", b.id) }

// clock is the time of day that this broker believes in.
func (b *broker) clock() time.Time { return b.w.Clock().Add(b.skew) }

// do does something in this broker, after a freeze if there is one, and never in
// another life.
func (b *broker) do(life int, run func()) {
	switch {
	case b.life != life || !b.up:
	case b.w.Now < b.frozenUntil:
		b.w.At(b.frozenUntil, func() { b.do(life, run) })
	default:
		run()
	}
}

// boot starts the broker.
func (b *broker) boot() {
	w := b.w
	b.up = true
	b.version, b.image, b.applied = -1, nil, metadata.NewImage(w.defaults)
	b.shards, b.handles = map[store.TopicPartition]*shard{}, map[store.TopicPartition]*handle{}
	life := b.life
	b.manager = partition.NewManager(partition.Options{
		Store: nodeStore{w.store, b, life}, Self: b.id, Now: b.clock, Logger: w.quiet,
		Alive: func() bool { return b.life == life }, Coordinator: asker{b, life},
		Raise: b.raise,
		Later: func(d time.Duration, do func()) { w.After(d, func() { b.do(life, do) }) },
	})
	b.learn(len(w.images) - 1)
}

// learn takes in an image, unless the broker has heard of a newer one.
func (b *broker) learn(version int) {
	if version <= b.version {
		return
	}
	before := b.image
	b.version, b.image = version, b.w.images[version]
	b.open()
	b.lead()
	changed := machine.TopicsChanged{Topics: topicNames}
	if before != nil && before.Topic(sideTopic) != nil && (b.image.Topic(sideTopic) == nil || b.image.Topic(sideTopic).ID != before.Topic(sideTopic).ID) {
		changed.Gone = []string{sideTopic}
	}
	for _, tp := range b.w.partitions() {
		if s := b.shards[tp]; s != nil {
			s.Tell(changed)
		}
	}
	if len(changed.Gone) > 0 {
		b.checkForgotten()
	}
}

// open opens and closes partitions by the image. What could not be opened is
// tried again.
func (b *broker) open() {
	missing := false
	for _, name := range topicNames {
		missing = b.openTopic(name) || missing
	}
	if !missing {
		return
	}
	life, version := b.life, b.version
	b.w.After(300*time.Millisecond, func() {
		b.do(life, func() {
			if b.version == version {
				b.open()
			}
		})
	})
}

// openTopic opens what is to be opened of a topic, and says whether something could
// not be. The manager opens several partitions at the same time, in no certain
// order: so it is told of one after the other.
func (b *broker) openTopic(name string) (missing bool) {
	want := b.image.Topic(name)
	if had := b.applied.Topic(name); had != nil && (want == nil || want.ID != had.ID) {
		b.apply(name, nil)
	}
	if want == nil {
		return false
	}
	t := *want
	t.Partitions = slices.Clone(want.Partitions)
	var todo []int32
	for i, led := range want.Partitions {
		if p := b.manager.Get(name, int32(i)); led.Leader == b.id && (p == nil || p.LeaderEpoch() != led.LeaderEpoch) {
			todo = append(todo, int32(i))
			t.Partitions[i].Leader = metadata.NoBroker
		}
	}
	b.apply(name, &t)
	for _, i := range todo {
		t.Partitions = slices.Clone(t.Partitions)
		t.Partitions[i] = want.Partitions[i]
		b.apply(name, &t)
		b.w.store.log(store.TopicPartition{Topic: name, Partition: i}).loaded = b.w.store.opens
		if b.manager.Get(name, i) == nil {
			missing = true
			t.Partitions = slices.Clone(t.Partitions)
			t.Partitions[i].Leader = metadata.NoBroker // Else it would be tried again beside the next one.
		}
	}
	return missing
}

// apply has the manager do what one topic demands, which is gone if it is nil.
func (b *broker) apply(name string, t *metadata.Topic) {
	edit := b.applied.Edit()
	if t == nil {
		edit.RemoveTopic(name)
	} else {
		edit.PutTopic(*t)
	}
	after := edit.Image()
	err := b.manager.Apply(context.Background(), b.applied, after, []string{name})
	if v := b.w.store.found; v != nil {
		panic(*v)
	}
	if err != nil {
		b.w.Violated("broker %d: %v", b.id, err)
	}
	b.applied = after
}

// lead begins and ends shards by the image.
func (b *broker) lead() {
	for _, tp := range b.w.partitions() {
		if tp.Topic != stateTopic && tp.Topic != offsetsTopic {
			continue
		}
		p := b.image.Topic(tp.Topic).Partitions[tp.Partition]
		old := b.shards[tp]
		if old != nil && (p.Leader != b.id || p.LeaderEpoch != old.epoch) {
			old.end()
			delete(b.shards, tp)
			old = nil
		}
		if old == nil && p.Leader == b.id {
			b.shards[tp] = newShard(b, tp, p.LeaderEpoch)
			b.shards[tp].load()
		}
	}
}

// crash ends the broker. What it has not synced is in doubt. It comes back, or
// others lead what it led, or both.
func (b *broker) crash() {
	w := b.w
	if !b.up {
		return
	}
	w.Tracef("broker %d: crashes", b.id)
	w.Count("broker crashed")
	b.up = false
	b.life++
	for _, tp := range w.partitions() {
		if l := w.store.log(tp); l.owner != nil && l.owner.b == b {
			l.inDoubt = true
		}
		if s := b.shards[tp]; s != nil {
			s.gone = true
		}
	}
	if w.Rand.IntN(2) == 0 {
		w.After(w.Between(100*time.Millisecond, 2*time.Second), func() { w.replace(b) })
	}
	w.After(w.Between(200*time.Millisecond, 5*time.Second), b.restart)
}

// restart boots the broker again. What it still leads it leads under new epochs.
func (b *broker) restart() {
	w := b.w
	if b.up {
		return
	}
	leaders := map[store.TopicPartition]int32{}
	for _, tp := range w.partitions() {
		if leaderOf(w.image(), tp) == b.id {
			leaders[tp] = b.id
		}
	}
	w.elect(leaders)
	w.Tracef("broker %d: starts", b.id)
	b.boot()
}

// receive handles a request, as the handlers do.
func (b *broker) receive(from message, body any, reply func(any)) {
	ctx := context.Background()
	switch m := body.(type) {
	case produce:
		p := b.manager.Get(m.tp.Topic, m.tp.Partition)
		if p == nil {
			reply(partition.Appended{Err: kerr.NotLeaderForPartition})
			return
		}
		p.Append(ctx, m.batch, m.how, func(a partition.Appended) { reply(a) })
	case fetch:
		b.fetch(m, reply)
	case *kmsg.WriteTxnMarkersRequest:
		b.markers(from, m, reply)
	case *kmsg.AllocateProducerIDsRequest:
		resp := m.ResponseKind().(*kmsg.AllocateProducerIDsResponse)
		resp.ProducerIDStart, resp.ProducerIDLen = b.w.nextPID, 2
		b.w.nextPID += 2
		reply(resp)
	case kmsg.Request:
		b.existing(m)
		topic, id := coordinated(m)
		n := int32(len(b.image.Topic(topic).Partitions))
		b.ask(store.TopicPartition{Topic: topic, Partition: journal.PartitionFor(id, n)}, from.from, m, func(r kmsg.Response) { reply(r) })
	}
}

// existing leaves topics out of a commit that there are not, as the handler does.
func (b *broker) existing(m kmsg.Request) {
	if m, ok := m.(*kmsg.TxnOffsetCommitRequest); ok {
		m.Topics = slices.DeleteFunc(m.Topics, func(t kmsg.TxnOffsetCommitRequestTopic) bool { return b.image.Topic(t.Topic) == nil })
	}
}

// ask gives a request to a shard.
func (b *broker) ask(tp store.TopicPartition, from string, m kmsg.Request, reply func(kmsg.Response)) {
	s := b.shards[tp]
	if s == nil {
		reply(b.w.kind(tp.Topic).Fail(m, kerr.NotCoordinator))
		return
	}
	s.request(from, m, reply)
}

// coordinated says which topic's shards handle a request, and whose.
func coordinated(m kmsg.Request) (topic, id string) {
	switch m := m.(type) {
	case *kmsg.InitProducerIDRequest:
		return stateTopic, *m.TransactionalID
	case *kmsg.AddPartitionsToTxnRequest:
		if m.Version >= 4 {
			return stateTopic, m.Transactions[0].TransactionalID
		}
		return stateTopic, m.TransactionalID
	case *kmsg.AddOffsetsToTxnRequest:
		return stateTopic, m.TransactionalID
	case *kmsg.EndTxnRequest:
		return stateTopic, m.TransactionalID
	case *kmsg.DescribeTransactionsRequest:
		return stateTopic, m.TransactionalIDs[0]
	case *kmsg.TxnOffsetCommitRequest:
		return offsetsTopic, m.Group
	case *kmsg.OffsetFetchRequest:
		return offsetsTopic, m.Groups[0].Group
	case *kmsg.OffsetCommitRequest:
		return offsetsTopic, m.Group
	case *kmsg.JoinGroupRequest:
		return offsetsTopic, m.Group
	case *kmsg.SyncGroupRequest:
		return offsetsTopic, m.Group
	case *kmsg.HeartbeatRequest:
		return offsetsTopic, m.Group
	}
	panic(fmt.Sprintf("nobody handles %T", m))
}

func (b *broker) fetch(m fetch, reply func(any)) {
	p := b.manager.Get(m.tp.Topic, m.tp.Partition)
	if p == nil {
		reply(fetched{Fetched: partition.Fetched{Err: kerr.NotLeaderForPartition}})
		return
	}
	if b.w.store.stale(b, m.tp) {
		reply(fetched{Fetched: partition.Fetched{Err: kerr.NotLeaderForPartition}})
		return
	}
	f := p.Read(context.Background(), m.Fetch)
	if f.Err != nil {
		reply(fetched{Fetched: f})
		return
	}
	bytes, err := f.Records.Load()
	f.Records.Release()
	if err != nil {
		b.w.Violated("records of %v cannot be read: %v", m.tp, err)
	}
	b.w.model.fetched(b, m, f, bytes)
	reply(fetched{f, bytes})
}
