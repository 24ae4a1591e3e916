package broker

import (
	"context"
	"sync"
	"time"

	"muster/internal/handler"
	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/redis"
	"muster/internal/watch"
	"muster/internal/watch/lag"
)

const (
	// datingTime is how long a pass looks for timestamps of records. A disk may be slow,
	// and after a start there may be many to look for: the next pass goes on.
	datingTime = 300 * time.Millisecond
	// refreshTime and refreshAtOnce bound how a pass asks Redis where streams end that
	// others write to.
	refreshTime   = 2 * time.Second
	refreshAtOnce = 32
)

// openStatus makes the watch. It looks at nothing yet.
func (b *Broker) openStatus(now func() time.Time) {
	b.watched = &watched{b: b, now: now}
	kept := groupHistory{b}
	b.watch = watch.New(watch.Options{
		Node: b.nodeID(), Source: b.watched, MaxBytes: b.cfg.Int("muster.group.history.max.bytes"), Now: now, Logger: b.logger,
		History: kept, HistoryEvery: kept.every(), Suspected: b.suspected,
	})
}

// Status returns what is known of groups and topics, as of a moment ago.
func (b *Broker) Status() *watch.Watch { return b.watch }

// tellWatch passes on what the journal is told of groups. It is called under a lock.
func (b *Broker) tellWatch(entries []journal.Entry) {
	for i := range entries {
		switch e := &entries[i]; e.Kind {
		case journal.KindDeleted:
			b.watch.Deleted(e.Group)
		case journal.KindSettled:
			cause := ""
			if len(e.Triggers) > 0 {
				cause = string(e.Triggers[0].Kind)
			}
			b.watch.Rebalanced(e.Group, e.Time, cause)
		}
		b.tellDeaths(&entries[i])
	}
}

// tellDeaths passes on where members were that died, and takes it out of the entry.
func (b *Broker) tellDeaths(e *journal.Entry) {
	for i := range e.Triggers {
		t := &e.Triggers[i]
		if len(t.At) == 0 {
			continue
		}
		deaths := make([]lag.Death, len(t.At))
		for j, p := range t.At {
			deaths[j] = lag.Death{Who: lag.Who(t.Member), Topic: p.Topic, Partition: p.Partition, Committed: p.Committed}
		}
		b.watch.Died(e.Group, deaths)
		t.At = nil
	}
}

// suspected writes to the journal that a record may kill who reads it.
func (b *Broker) suspected(s watch.Suspicion) {
	e := journal.Entry{Time: s.At, Group: s.Group, Kind: journal.KindSuspected, State: s.State, Before: s.Members, After: s.Members, SuspectN: s.N}
	if s.Type == typeConsumer {
		e.Type = journal.TypeConsumer
	}
	for _, p := range s.Partitions {
		e.Suspects = append(e.Suspects, journal.Suspect(p))
	}
	entries := []journal.Entry{e} // Of one group: they belong to one partition.
	b.journal.add(entries)
	b.changes.add(entries)
}

// watched is this broker as the watch asks it. It implements watch.Source.
type watched struct {
	b       *Broker
	now     func() time.Time
	counter handler.Counter // The one that requests use too, so that one counts at a time; nil if nobody need count.
	looking looking
	rolls   map[int32]*roll // Of the shards that the last pass saw.
	marks   shardMarks
	dating  time.Duration // How long this pass has looked for timestamps.
	// refreshFrom is which of the streams the next pass first asks for.
	refreshFrom int
}

// Image implements watch.Source.
func (w *watched) Image() *metadata.Image { return w.b.image() }

// Prepare implements watch.Source: it asks Redis where the streams end that this broker
// leads. Whoever waits in a fetch is told; nobody else looks.
func (w *watched) Prepare(ctx context.Context) {
	w.dating = 0
	w.b.tails.forget(func(topic string, index int32) bool { return w.b.manager.Get(topic, index) != nil })
	image := w.b.image()
	if w.b.redis == nil || w.b.away.Load() != nil || image == nil {
		return
	}
	var all []*partition.Partition
	for _, t := range image.Topics() {
		for i := 0; w.TimeBits(t) > 0 && i < len(t.Partitions); i++ {
			if p := w.b.manager.Get(t.Name, int32(i)); p != nil {
				all = append(all, p)
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTime)
	defer cancel()
	w.refreshFrom = inTurn(ctx, len(all), w.refreshFrom, func(i int) {
		_ = all[i].Refresh(ctx) // What could not be asked is as it was.
	})
}

// inTurn does something with each of n, several at once, from one of them on and around, and
// returns from which to go on the next time: the first that was not begun when ctx ended.
func inTurn(ctx context.Context, n, from int, do func(i int)) (next int) {
	todo := make(chan int)
	var running sync.WaitGroup
	for range min(refreshAtOnce, n) {
		running.Go(func() {
			for i := range todo {
				do(i)
			}
		})
	}
	defer running.Wait()
	defer close(todo)
	for i := range n {
		at := (from + i) % n
		if ctx.Err() != nil {
			return at
		}
		todo <- at
	}
	return 0
}

// Log implements watch.Source.
func (w *watched) Log(t *metadata.Topic, index int32) (watch.Log, bool) {
	p := w.b.manager.Get(t.Name, index)
	if p == nil {
		return watch.Log{}, false
	}
	l := watch.Log{Start: p.LogStartOffset(), LastStable: p.LastStableOffset(), Bytes: p.Size()}
	l.End = p.HighWatermark() // Last, since it only grows.
	l.Tail = w.b.tail(p, t.Name, index, l.End)
	return l, true
}

// TimeBits implements watch.Source.
func (w *watched) TimeBits(t *metadata.Topic) uint8 {
	if t.Internal || !t.Config.Traits.Timed {
		return 0
	}
	return uint8(t.Config.SequenceBits)
}

// Fetched implements watch.Source.
func (w *watched) Fetched(r watch.Reader, topic string, index int32) (out watch.Fetched) {
	if h := w.b.front.handler.Load(); h != nil {
		out.At, out.Known = h.Fetched(r.ClientID, r.Host, topic, index)
	}
	return out
}

// Count implements watch.Source.
func (w *watched) Count(ctx context.Context, places []watch.Place) []*lag.Count {
	if w.counter == nil || w.b.away.Load() != nil {
		return nil
	}
	ask := make([]handler.Place, len(places))
	for i, p := range places {
		ask[i] = handler.Place{TopicPartition: store.TopicPartition{Topic: p.Topic, Partition: p.Partition}, Offset: p.Offset}
	}
	out := make([]*lag.Count, len(places))
	for i, n := range w.counter.CountFrom(ctx, ask) {
		if n != nil && (!n.AtLeast || n.Records >= redis.CountLimit) { // Else there was no time for it.
			out[i] = &lag.Count{Records: n.Records, Approximate: n.AtLeast}
		}
	}
	return out
}

// FirstTime implements lag.Records: the time of the head of the batch that has the offset,
// linear within the batch. Of layout stream the offset tells.
func (w *watched) FirstTime(topic string, index int32, offset int64) (millis int64, ok bool) {
	if t := w.b.image().Topic(topic); t != nil && w.TimeBits(t) > 0 {
		return offset >> w.TimeBits(t), true
	}
	p := w.b.manager.Get(topic, index)
	if p == nil || w.dating >= datingTime || w.b.away.Load() != nil {
		return 0, false
	}
	began := time.Now()
	defer func() { w.dating += time.Since(began) }()
	ctx, cancel := context.WithTimeout(context.Background(), datingTime-w.dating)
	defer cancel()
	head, ok := firstHead(ctx, p, offset)
	if !ok {
		return 0, false
	}
	first, last := head.BaseTimestamp(), head.MaxTimestamp()
	if first < 0 || last < 0 {
		return 0, false // Such records have no time.
	}
	if head.LogAppendTime() || offset <= head.BaseOffset() || head.LastOffsetDelta() <= 0 {
		if head.LogAppendTime() {
			return last, true
		}
		return first, true
	}
	part := min(float64(offset-head.BaseOffset())/float64(head.LastOffsetDelta()), 1)
	return first + int64(part*float64(last-first)), true
}

// firstHead reads the header of the batch that has an offset, or of the next one.
func firstHead(ctx context.Context, p *partition.Partition, offset int64) (record.Batch, bool) {
	f := p.Read(ctx, partition.Fetch{
		Offset: offset, LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch, MaxBytes: 1, MinOne: true,
	})
	defer f.Records.Release()
	if f.Err != nil || f.Records.Len < record.HeaderSize {
		return nil, false
	}
	if f.Records.Bytes != nil {
		return record.Batch(append([]byte(nil), f.Records.Bytes[:record.HeaderSize]...)), true
	}
	head := make([]byte, record.HeaderSize)
	if _, err := f.Records.File.ReadAt(head, f.Records.Pos); err != nil {
		return nil, false
	}
	return head, true
}
