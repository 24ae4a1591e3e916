package group

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
)

// All versions of a subscription start like version 0, and what follows does not
// matter: later versions must be readable too.
func TestSubscribedTopicsReadsEveryVersion(t *testing.T) {
	for version := range int16(12) {
		m := kmsg.NewConsumerMemberMetadata()
		m.Version, m.Topics, m.UserData = version, []string{"t", "user-events"}, []byte("sticky")
		m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "t", Partitions: []int32{1, 2}}}
		m.Generation = 7
		got, err := subscribedTopics(append(m.AppendTo(nil), "of a later version"...))
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
		if got, err := subscribedTopics([]byte(v)); err == nil {
			t.Errorf("%q: %v", v, got)
		}
	}
	if got, err := subscribedTopics([]byte("\x00\x00\x00\x00\x00\x00")); err != nil || len(got) != 0 {
		t.Errorf("no topics: %v, %v", got, err)
	}
}

// What the schema's own decoder finds, we find too.
func FuzzSubscription(f *testing.F) {
	f.Add(subscription("t"))
	f.Add(subscription("t+u"))
	f.Add(subscription("t^0+1~data"))
	f.Add([]byte("\x00\x03\x00\x00\x00\x01\x00\x01t"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := subscribedTopics(b)
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
		whole, err := readSubscription(b)
		if m.ReadFrom(b) == nil && len(m.Topics) > 0 && (err != nil || !bytes.Equal(whole.userData, m.UserData)) {
			t.Errorf("data %q, %v; it says %q", whole.userData, err, m.UserData)
		}
	})
}

func FuzzAssignment(f *testing.F) {
	f.Add(assignment("t:0+1"))
	f.Add(assignment(""))
	f.Add([]byte("\x00\x00\x00\x00\x00\x01\x00\x01t\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		again := kmsg.NewConsumerMemberAssignment()
		eachAssigned(b, func(tp topicPartition) {
			n++
			e := kmsg.NewConsumerMemberAssignmentTopic()
			e.Topic, e.Partitions = tp.topic, []int32{tp.partition}
			again.Topics = append(again.Topics, e)
		})
		if n > len(b)/4 {
			t.Errorf("%d partitions in %d bytes", n, len(b))
		}
		m := 0
		eachAssigned(again.AppendTo(nil), func(topicPartition) { m++ })
		if m != n {
			t.Errorf("%d partitions, %d when written and read again", n, m)
		}
	})
}

// The client may put what it likes into a reason; the journal keeps a part.
func TestJournalCutsReasons(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"closing", "closing"},
		{strings.Repeat("x", 255), strings.Repeat("x", 255)},
		{strings.Repeat("x", 256), strings.Repeat("x", 255)},
		{strings.Repeat("é", 300), strings.Repeat("é", 255)},
	} {
		if got := trigger(journal.TriggerLeft, &member{}, &c.in).Reason; got != c.want {
			t.Errorf("a reason of %d bytes is kept as %d bytes", len(c.in), len(got))
		}
	}
	m := &member{}
	if got := trigger(journal.TriggerLeft, m, nil).Reason; got != "" {
		t.Errorf("no reason is kept as %q", got)
	}
}
