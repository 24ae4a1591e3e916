package subscription

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestReadWantsReadsAllVersions(t *testing.T) {
	rack := "r"
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics, m.UserData, m.Generation, m.Rack = []string{"t", "u"}, []byte("x"), 7, &rack
	m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "t", Partitions: []int32{2, 0}}, {Topic: "u"}}
	for version := range int16(5) {
		m.Version = version
		w, err := Read(m.AppendTo(nil))
		if err != nil || w.version != version || !slices.Equal(w.Topics, m.Topics) {
			t.Fatalf("version %d: %+v, %v", version, w, err)
		}
		if want := []TopicPartition{{"t", 2}, {"t", 0}}; version > 0 != slices.Equal(w.Owned, want) {
			t.Errorf("version %d owns %v", version, w.Owned)
		}
		if version >= 3 != (w.Rack != nil) {
			t.Errorf("version %d is in rack %v", version, w.Rack)
		}
	}
}

// Clients that name version 1 and end with the data of their assignor are about.
func TestReadWantsNeedsNothingAfterTheUserData(t *testing.T) {
	m := kmsg.NewConsumerMemberMetadata()
	m.Topics = []string{"t"}
	b := m.AppendTo(nil)
	b[1] = 1
	if w, err := Read(b); err != nil || len(w.Owned) > 0 {
		t.Errorf("%+v, %v", w, err)
	}
}

// Whatever a client sends, no more room is made than it has sent bytes for.
func FuzzReadWants(f *testing.F) {
	rack := "r"
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics, m.Rack = 3, []string{"t", "u"}, &rack
	m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "t", Partitions: []int32{2, 0}}}
	whole := m.AppendTo(nil)
	for n := range len(whole) + 1 {
		f.Add(whole[:n])
	}
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Add([]byte{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0x7f, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, err := Read(b)
		if err == nil && len(w.Topics)*2+len(w.Owned)*4 > len(b) {
			t.Errorf("%d bytes say %+v", len(b), w)
		}
	})
}

func TestReadWantsRefusesWhatIsCutShort(t *testing.T) {
	rack := "rack"
	m := kmsg.NewConsumerMemberMetadata()
	m.Version, m.Topics, m.Rack = 3, []string{"t"}, &rack
	m.OwnedPartitions = []kmsg.ConsumerMemberMetadataOwnedPartition{{Topic: "t", Partitions: []int32{1}}}
	whole := m.AppendTo(nil)
	missing := map[int]bool{} // Where a version may end.
	sub := len(whole) - (2 + len(rack)) - 4
	missing[sub] = true
	old := m
	old.Version = 0
	missing[len(old.AppendTo(nil))] = true
	for n := range whole {
		if _, err := Read(whole[:n]); (err == nil) != missing[n] {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
}
