package subscription

import (
	"bytes"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// All versions of a subscription start like version 0, and what follows does not
// matter: later versions must be readable too.
func TestSubscribedTopicsReadsEveryVersion(t *testing.T) {
	for version := range int16(12) {
		m := kmsg.NewConsumerMemberMetadata()
		m.Version, m.Topics, m.UserData = version, []string{"t", "user-events"}, []byte("sticky")
		m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "t", Partitions: []int32{1, 2}}}
		m.Generation = 7
		got, err := SubscribedTopics(append(m.AppendTo(nil), "of a later version"...))
		if err != nil || !slices.Equal(got, m.Topics) {
			t.Errorf("version %d: %v, %v", version, got, err)
		}
	}
}

func TestSubscribedTopicsRefusesWhatIsNoSubscription(t *testing.T) {
	for _, v := range []string{
		"", "\x00", "\x00\x00\x00\x00\x00", // Too short.
		"\x00\x00\x00\x00\x00\x01",              // A topic that is not there.
		"\x00\x00\x00\x00\x00\x01\x00\x05t",     // A name that is cut.
		"\x00\x00\x00\x00\x00\x01\xff\xfft",     // A name of negative length.
		"\x00\x00\xff\xff\xff\xff\x00\x01t",     // A negative count.
		"\x00\x00\x7f\xff\xff\xff\x00\x01t",     // A count that cannot be.
		"\x00\x00\x00\x00\x00\x02\x00\x01t\x00", // One of two.
	} {
		if got, err := SubscribedTopics([]byte(v)); err == nil {
			t.Errorf("%q: %v", v, got)
		}
	}
	if got, err := SubscribedTopics([]byte("\x00\x00\x00\x00\x00\x00")); err != nil || len(got) != 0 {
		t.Errorf("no topics: %v, %v", got, err)
	}
}

// What the schema's own decoder finds, we find too.
func FuzzSubscription(f *testing.F) {
	for version := range int16(4) {
		m := kmsg.NewConsumerMemberMetadata()
		m.Version, m.Topics, m.UserData = version, []string{"t", "u"}, []byte("data")
		m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "t", Partitions: []int32{0, 1}}}
		f.Add(m.AppendTo(nil))
	}
	f.Add([]byte("\x00\x03\x00\x00\x00\x01\x00\x01t"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := SubscribedTopics(b)
		if len(got) > len(b) {
			t.Errorf("%d topics in %d bytes", len(got), len(b))
		}
		if len(b) > 1<<12 {
			return
		}
		// The decoder takes a negative count for none; Kafka refuses it, and so do we.
		m := kmsg.NewConsumerMemberMetadata()
		if m.ReadFrom(b) == nil && len(m.Topics) > 0 && (err != nil || !slices.Equal(got, m.Topics)) {
			t.Errorf("%v, %v; it says %v", got, err, m.Topics)
		}
		whole, err := ReadSubscription(b)
		if m.ReadFrom(b) == nil && len(m.Topics) > 0 && (err != nil || !bytes.Equal(whole.UserData, m.UserData)) {
			t.Errorf("data %q, %v; it says %q", whole.UserData, err, m.UserData)
		}
	})
}

func FuzzAssignment(f *testing.F) {
	f.Add((&kmsg.ConsumerMemberAssignment{Topics: []kmsg.ConsumerMemberAssignmentTopic{{Topic: "t", Partitions: []int32{0, 1}}}}).AppendTo(nil))
	f.Add((&kmsg.ConsumerMemberAssignment{}).AppendTo(nil))
	f.Add([]byte("\x00\x00\x00\x00\x00\x01\x00\x01t\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		again := kmsg.NewConsumerMemberAssignment()
		EachAssigned(b, func(tp TopicPartition) {
			n++
			e := kmsg.NewConsumerMemberAssignmentTopic()
			e.Topic, e.Partitions = tp.Topic, []int32{tp.Partition}
			again.Topics = append(again.Topics, e)
		})
		if n > len(b)/4 {
			t.Errorf("%d partitions in %d bytes", n, len(b))
		}
		m := 0
		EachAssigned(again.AppendTo(nil), func(TopicPartition) { m++ })
		if m != n {
			t.Errorf("%d partitions, %d when written and read again", n, m)
		}
	})
}
