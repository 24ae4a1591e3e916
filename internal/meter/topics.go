package meter

import (
	"hash/maphash"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// topicShards is how many maps of topics there are. Each is made anew when a topic is
// added to it.
const topicShards = 256

// topicSeed spreads names over the shards in a way that clients cannot know.
var topicSeed = maphash.MakeSeed()

// Topics finds the counters of topics by name, without a lock.
type Topics struct {
	mu     sync.Mutex // Of those who add and remove.
	shards [topicShards]atomic.Pointer[map[string]*Topic]
}

// Topic counts what is produced to a topic and fetched from it.
type Topic struct {
	stripes [stripes]traffic
	made    time.Time
}

// traffic is one stripe, which is as large as a line of a processor's cache.
type traffic struct {
	produced, refused, records, bytesIn atomic.Uint64
	fetched, failed, bytesOut           atomic.Uint64
	_                                   uint64
}

// Of returns the counters of a topic, which exists: those of names that clients make
// up would never end.
func (t *Topics) Of(name string) *Topic {
	shard := &t.shards[maphash.String(topicSeed, name)%topicShards]
	if m := shard.Load(); m != nil {
		if c := (*m)[name]; c != nil {
			return c
		}
	}
	return t.add(shard, name)
}

func (t *Topics) add(shard *atomic.Pointer[map[string]*Topic], name string) *Topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	after := map[string]*Topic{}
	if m := shard.Load(); m != nil {
		if c := (*m)[name]; c != nil {
			return c
		}
		after = maps.Clone(*m)
	}
	c := &Topic{made: time.Now()}
	after[strings.Clone(name)] = c
	shard.Store(&after)
	return c
}

// Keep forgets the topics that are not to be kept. Those that were first used after the
// moment that this goes by are.
func (t *Topics) Keep(at time.Time, keep func(name string) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.shards {
		m := t.shards[i].Load()
		if m == nil {
			continue
		}
		var gone []string // Mostly none is, and nothing need be made anew.
		for name, c := range *m {
			if c.made.Before(at) && !keep(name) {
				gone = append(gone, name)
			}
		}
		if len(gone) > 0 {
			after := maps.Clone(*m)
			for _, name := range gone {
				delete(after, name)
			}
			t.shards[i].Store(&after)
		}
	}
}

// Produced counts a batch of records that was appended to a partition.
func (t *Topic) Produced(conn uint32, records, bytes int) {
	s := &t.stripes[conn%stripes]
	s.produced.Add(1)
	s.records.Add(uint64(max(records, 0)))
	s.bytesIn.Add(uint64(bytes))
}

// Refused counts a batch that was not appended.
func (t *Topic) Refused(conn uint32) {
	s := &t.stripes[conn%stripes]
	s.produced.Add(1)
	s.refused.Add(1)
}

// Fetched counts partitions that a request has asked for, those of them that had an
// error for an answer, and the bytes of records that it got.
func (t *Topic) Fetched(conn uint32, partitions, failed, bytes int) {
	s := &t.stripes[conn%stripes]
	s.fetched.Add(uint64(partitions))
	if failed > 0 {
		s.failed.Add(uint64(failed))
	}
	if bytes > 0 {
		s.bytesOut.Add(uint64(bytes))
	}
}

// Traffic is what was counted of a topic.
type Traffic struct {
	Produced, Refused, Records, BytesIn uint64
	Fetched, Failed, BytesOut           uint64
}

// Read returns the traffic of a topic; nothing if there was none.
func (t *Topics) Read(name string) (out Traffic) {
	m := t.shards[maphash.String(topicSeed, name)%topicShards].Load()
	if m == nil || (*m)[name] == nil {
		return out
	}
	c := (*m)[name]
	for i := range c.stripes {
		s := &c.stripes[i]
		out.Produced += s.produced.Load()
		out.Refused += s.refused.Load()
		out.Records += s.records.Load()
		out.BytesIn += s.bytesIn.Load()
		out.Fetched += s.fetched.Load()
		out.Failed += s.failed.Load()
		out.BytesOut += s.bytesOut.Load()
	}
	return out
}
