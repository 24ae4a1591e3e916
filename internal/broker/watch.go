package broker

import (
	"context"
	"time"

	"muster/internal/handler"
	"muster/internal/journal"
	"muster/internal/partition"
	"muster/internal/store"
	"muster/internal/store/redis"
	"muster/internal/watch"
	"muster/internal/watch/lag"
	"muster/internal/watch/source"
)

// How often the history of groups is written. Redis keeps it in memory, so there it is
// less often.
const (
	historyEvery      = 10 * time.Minute
	historyEveryRedis = time.Hour
)

// openWatch makes the watch. It looks at nothing yet.
func (b *Broker) openWatch() {
	every := historyEvery
	if b.redis != nil {
		every = historyEveryRedis
	}
	b.source = source.New(source.Options{
		Image: b.image, Partition: b.partition, Groups: b.groups, Ask: b.peers.Do, CreateTopic: b.createInternal,
		Fetched: b.fetched, Count: b.countFrom, Away: func() bool { return b.away.Load() != nil }, Shared: b.redis != nil,
		Now: b.now, Logger: b.logger,
	})
	b.watch = watch.New(watch.Options{
		Node: b.nodeID(), Source: b.source, MaxBytes: b.cfg.Int("muster.group.history.max.bytes"), Now: b.now, Logger: b.logger,
		History: b.source.History(), HistoryEvery: every, Suspected: b.suspected,
	})
}

// Status returns what is known of groups and topics, as of a moment ago.
func (b *Broker) Status() *watch.Watch { return b.watch }

// suspected writes to the journal that a record may kill who reads it.
func (b *Broker) suspected(e journal.Entry) {
	entries := []journal.Entry{e} // Of one group: they belong to one partition.
	b.journal.Add(entries)
	b.facts.Happened(entries)
}

// partition returns a partition that this broker leads, nil if it does not.
func (b *Broker) partition(topic string, index int32) *partition.Partition {
	return b.manager.Get(topic, index)
}

// fetched says when a client last fetched a partition, if that is known.
func (b *Broker) fetched(clientID, host, topic string, index int32) (at time.Time, known bool) {
	if h := b.front.handler.Load(); h != nil {
		return h.Fetched(clientID, host, topic, index)
	}
	return time.Time{}, false
}

// countFrom counts records for the watch by the counter that requests use too, so that
// one counts at a time.
func (b *Broker) countFrom(ctx context.Context, places []watch.PartitionOffset) []*lag.Count {
	if b.counter == nil {
		return nil
	}
	ask := make([]handler.Place, len(places))
	for i, p := range places {
		ask[i] = handler.Place{TopicPartition: store.TopicPartition{Topic: p.Topic, Partition: p.Partition}, Offset: p.Offset}
	}
	out := make([]*lag.Count, len(places))
	for i, n := range b.counter.CountFrom(ctx, ask) {
		if n != nil && (!n.AtLeast || n.Records >= redis.CountLimit) { // Else there was no time for it.
			out[i] = &lag.Count{Records: n.Records, Approximate: n.AtLeast}
		}
	}
	return out
}
