package kind

import (
	"maps"
	"slices"

	"muster/internal/group/schema"
	"muster/internal/metadata"
)

// TopicOffsets is what a group has committed of one topic. There may be millions of
// offsets, so what nearly all of them have in common is not kept with each of them:
// the topic's id, an empty text, and that they do not expire by themselves.
type TopicOffsets struct {
	ids   []metadata.TopicID // see kept.topic; mostly one
	Parts map[int32]Kept
}

// Kept is a committed offset in memory.
type Kept struct {
	At     int64
	commit int64
	epoch  int32
	topic  int32 // which of the ids it was committed under, from 1 on; 0 if it is not known
	more   *more // nil if there is nothing more
}

// more is what few offsets have.
type more struct {
	metadata string
	expire   int64
}

// maxIDs is at how many topic ids those are looked for that no offset has any more. A
// topic that is deleted and created again has another one.
const maxIDs = 4

func (t *TopicOffsets) Len() int {
	if t == nil {
		return 0
	}
	return len(t.Parts)
}

// Partitions lists those that have an offset.
func (t *TopicOffsets) Partitions() []int32 {
	if t == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(t.Parts))
}

func (t *TopicOffsets) Get(partition int32) (o schema.Offset, ok bool) {
	if t == nil {
		return o, false
	}
	k, ok := t.Parts[partition]
	if !ok {
		return o, false
	}
	o = schema.Offset{Offset: k.At, LeaderEpoch: k.epoch, CommitTimestamp: k.commit, ExpireTimestamp: -1}
	if k.more != nil {
		o.Metadata, o.ExpireTimestamp = k.more.metadata, k.more.expire
	}
	if k.topic > 0 {
		o.TopicID = t.ids[k.topic-1]
	}
	return o, true
}

// MayBeStale says whether there can be an offset of another topic of that name than the
// one which there is now.
func (t *TopicOffsets) MayBeStale(now *metadata.Topic) bool {
	return t != nil && (now == nil || slices.ContainsFunc(t.ids, func(id metadata.TopicID) bool { return id != now.ID }))
}

func (t *TopicOffsets) put(partition int32, o *schema.Offset) {
	k := Kept{At: o.Offset, commit: o.CommitTimestamp, epoch: o.LeaderEpoch, topic: t.index(o.TopicID)}
	if o.Metadata != "" || o.ExpireTimestamp != -1 {
		k.more = &more{o.Metadata, o.ExpireTimestamp}
	}
	t.Parts[partition] = k
}

// index returns the number of a topic id.
func (t *TopicOffsets) index(id metadata.TopicID) int32 {
	if id == (metadata.TopicID{}) {
		return 0
	}
	at := slices.Index(t.ids, id)
	if at < 0 {
		if len(t.ids) >= maxIDs {
			t.forgetIDs()
		}
		at = len(t.ids)
		t.ids = append(t.ids, id)
	}
	return int32(at) + 1
}

// forgetIDs forgets the topic ids that no offset has.
func (t *TopicOffsets) forgetIDs() {
	old := t.ids
	t.ids = nil
	for _, p := range t.Partitions() {
		k := t.Parts[p]
		if k.topic == 0 {
			continue
		}
		id := old[k.topic-1]
		at := slices.Index(t.ids, id)
		if at < 0 {
			at = len(t.ids)
			t.ids = append(t.ids, id)
		}
		k.topic = int32(at) + 1
		t.Parts[p] = k
	}
}
