package schema

import (
	"fmt"
	"reflect"
	"testing"
)

func offsetOf(group, topic string, partition int32) *OffsetRecord {
	return &OffsetRecord{Group: group, Topic: topic, Partition: partition, Value: &Offset{Offset: int64(partition) * 7, LeaderEpoch: 3, CommitTimestamp: 5, ExpireTimestamp: -1, TopicID: [16]byte{1}}}
}

// A broker may have millions of offsets to load.
func TestOffsetsOfAGroupAreReadWithoutGarbage(t *testing.T) {
	key, value := offsetOf("a group", "a topic", 3).Encode()
	r := NewReader()
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := r.Decode(key, value); err != nil {
			t.Error(err)
		}
		r.Done()
	}); n > 0 {
		t.Errorf("%v allocations for each", n)
	}
}

// What was decoded stays as it is until the reader is told that no one uses it any
// more, also in a batch of more records than it has room for.
func TestRecordsOfABatchAreReadApart(t *testing.T) {
	r := NewReader()
	for batch := range 3 {
		var want, got []*OffsetRecord
		for i := range 2*roomFor + batch {
			rec := offsetOf(fmt.Sprint("g", batch, i/10), fmt.Sprint("t", i/4), int32(i))
			if i%5 == batch {
				rec.Value = nil
			}
			again, err := r.Decode(rec.Encode())
			if err != nil {
				t.Fatal(err)
			}
			want, got = append(want, rec), append(got, again.(*OffsetRecord))
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("batch %d is read as something else", batch)
		}
		r.Done()
	}
}
