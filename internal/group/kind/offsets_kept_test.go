package kind

import (
	"math"
	"testing"
	"unsafe"

	"muster/internal/group/schema"
	"muster/internal/metadata"
)

func TestAnOffsetIsKeptAsItWasCommitted(t *testing.T) {
	topics := &TopicOffsets{Parts: map[int32]Kept{}}
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
		if got, ok := topics.Get(int32(i)); !ok || got != o {
			t.Errorf("offset %d is %+v, should be %+v", i, got, o)
		}
	}
	if _, ok := topics.Get(30); ok || topics.Len() != 30 || len(topics.Partitions()) != 30 {
		t.Errorf("%d offsets of %v", topics.Len(), topics.Partitions())
	}
	if n := unsafe.Sizeof(Kept{}); n > 32 {
		t.Errorf("an offset takes %d bytes", n)
	}
}

// A topic that is created again and again has another id each time. Those that no
// offset has any more are forgotten; one that was committed under an old id keeps it.
func TestIDsOfTopicsThatAreGoneAreForgotten(t *testing.T) {
	topics := &TopicOffsets{Parts: map[int32]Kept{}}
	topics.put(9, &schema.Offset{ExpireTimestamp: -1, TopicID: metadata.TopicID{0: 9}})
	topics.put(0, &schema.Offset{ExpireTimestamp: -1, TopicID: metadata.TopicID{0: 1}})
	topics.put(1, &schema.Offset{ExpireTimestamp: -1})
	for i := range 100 {
		id := metadata.TopicID{15: byte(i)}
		if i > 0 {
			topics.put(2, &schema.Offset{ExpireTimestamp: -1, TopicID: id})
		}
		if o, _ := topics.Get(2); o.TopicID != id {
			t.Errorf("the id is %v, should be %v", o.TopicID, id)
		}
	}
	first, _ := topics.Get(0)
	if last, _ := topics.Get(9); first.TopicID != (metadata.TopicID{0: 1}) || last.TopicID != (metadata.TopicID{0: 9}) {
		t.Errorf("the ids of old offsets are %v and %v", first.TopicID, last.TopicID)
	}
	if second, _ := topics.Get(1); second.TopicID != (metadata.TopicID{}) {
		t.Errorf("an offset without an id has %v", second.TopicID)
	}
	if len(topics.ids) > maxIDs {
		t.Errorf("%d ids are kept for 4 offsets", len(topics.ids))
	}
}
