package handler

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/store"
)

func imageOf(topic string, partitions int) *metadata.Image {
	edit := metadata.NewImage(&config.Broker{}).Edit()
	edit.PutTopic(metadata.Topic{Name: topic, Partitions: make([]metadata.Partition, partitions)})
	return edit.Image()
}

func TestAnAssignmentIsReadAsFarAsItIsPlausible(t *testing.T) {
	image := imageOf("t", 3)
	a := kmsg.NewConsumerMemberAssignment()
	a.Topics = []kmsg.ConsumerMemberAssignmentTopic{
		{Topic: "none", Partitions: []int32{0, 1}}, {Topic: "t", Partitions: []int32{2, 0, 2, 3, -1}}, {Topic: "t", Partitions: []int32{0, 1}},
	}
	a.UserData = []byte("mine")
	good := a.AppendTo(nil)
	want := []store.TopicPartition{{Topic: "t", Partition: 2}, {Topic: "t", Partition: 0}, {Topic: "t", Partition: 1}}
	if got, ok := AssignedPartitions(image, good); !ok || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got, ok := AssignedPartitions(image, (&kmsg.ConsumerMemberAssignment{}).AppendTo(nil)); !ok || len(got) != 0 {
		t.Errorf("a consumer without partitions: %v, %v", got, ok)
	}
	claims := binary.BigEndian.AppendUint32([]byte{0, 0}, 1<<30)
	for name, bad := range map[string][]byte{
		"nothing": nil, "half a version": {0}, "a billion topics": claims,
		"a billion partitions": binary.BigEndian.AppendUint32([]byte{0, 0, 0, 0, 0, 1, 0, 1, 't'}, 1<<30),
		"cut short":            good[:len(good)-14],
	} {
		if got, ok := AssignedPartitions(image, bad); ok || got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAnAssignmentThatClaimsMuchTakesNoMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	image := imageOf("t", 3)
	// A million topics without name and partitions: kmsg would take 64 MB.
	bad := append(binary.BigEndian.AppendUint32([]byte{0, 0}, 1_000_000), bytes.Repeat([]byte{0}, 6_000_000)...)
	if n := testing.AllocsPerRun(1, func() { _, _ = AssignedPartitions(image, bad) }); n > 10 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzAssignedPartitions(f *testing.F) {
	image := imageOf("t", 3)
	a := kmsg.NewConsumerMemberAssignment()
	a.Topics = []kmsg.ConsumerMemberAssignmentTopic{{Topic: "t", Partitions: []int32{2, 0}}}
	f.Add(a.AppendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, _ := AssignedPartitions(image, b); len(got) > 3 {
			t.Errorf("%v of three partitions", got)
		}
	})
}
