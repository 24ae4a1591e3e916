package group

import (
	"math"
	"testing"
	"unsafe"

	"muster/internal/group/schema"
	"muster/internal/metadata"
)

func TestAnOffsetIsKeptAsItWasCommitted(t *testing.T) {
	topics := &topicOffsets{parts: map[int32]kept{}}
	ids := []metadata.TopicID{{}, {15: 1}, {15: 2}}
	var want []schema.Offset
	for i := range 30 {
		o := schema.Offset{Offset: int64(i) << 40, LeaderEpoch: int32(i) - 1, CommitTimestamp: int64(i) * 1000, ExpireTimestamp: -1, TopicID: ids[i%3]}
		if i%4 == 1 {
			o.Metadata = "text"
		}
		if i%5 == 1 {
			o.ExpireTimestamp = math.MaxInt64 - int64(i)
		}
		topics.put(int32(i), &o)
		want = append(want, o)
	}
	for i, o := range want {
		if got, ok := topics.get(int32(i)); !ok || got != o {
			t.Errorf("offset %d is %+v, should be %+v", i, got, o)
		}
	}
	if _, ok := topics.get(30); ok || topics.len() != 30 || len(topics.partitions()) != 30 {
		t.Errorf("%d offsets of %v", topics.len(), topics.partitions())
	}
	if n := unsafe.Sizeof(kept{}); n > 32 {
		t.Errorf("an offset takes %d bytes", n)
	}
}

// A topic that is created again and again has another id each time. Those that no
// offset has any more are forgotten; one that was committed under an old id keeps it.
func TestIDsOfTopicsThatAreGoneAreForgotten(t *testing.T) {
	topics := &topicOffsets{parts: map[int32]kept{}}
	topics.put(9, &schema.Offset{ExpireTimestamp: -1, TopicID: metadata.TopicID{0: 9}})
	topics.put(0, &schema.Offset{ExpireTimestamp: -1, TopicID: metadata.TopicID{0: 1}})
	topics.put(1, &schema.Offset{ExpireTimestamp: -1})
	for i := range 100 {
		id := metadata.TopicID{15: byte(i)}
		if i > 0 {
			topics.put(2, &schema.Offset{ExpireTimestamp: -1, TopicID: id})
		}
		if o, _ := topics.get(2); o.TopicID != id {
			t.Errorf("the id is %v, should be %v", o.TopicID, id)
		}
	}
	first, _ := topics.get(0)
	if last, _ := topics.get(9); first.TopicID != (metadata.TopicID{0: 1}) || last.TopicID != (metadata.TopicID{0: 9}) {
		t.Errorf("the ids of old offsets are %v and %v", first.TopicID, last.TopicID)
	}
	if second, _ := topics.get(1); second.TopicID != (metadata.TopicID{}) {
		t.Errorf("an offset without an id has %v", second.TopicID)
	}
	if len(topics.ids) > maxIDs {
		t.Errorf("%d ids are kept for 4 offsets", len(topics.ids))
	}
}
