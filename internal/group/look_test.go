package group

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/classic"
	"muster/internal/group/consumer"
	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// described is what clients are told of a group.
func described(s *Shard, id string) *kmsg.DescribeGroupsResponseGroup {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 5, []string{id}
	fx := s.Step(machine.Input{Event: machine.Request{ID: 99, Msg: req}})
	return &fx.Replies[0].Msg.(*kmsg.DescribeGroupsResponse).Groups[0]
}

func TestALookAtAClassicGroupIsWhatClientsAreTold(t *testing.T) {
	s := stableGroup(t)
	s.apply(&schema.OffsetRecord{Group: "g", Topic: "u", Partition: 1, Value: &schema.Offset{Offset: 3, CommitTimestamp: 77, ExpireTimestamp: -1}})
	s.apply(&schema.OffsetRecord{Group: "g", Topic: "t", Partition: 10, Value: &schema.Offset{Offset: 5, CommitTimestamp: 78, ExpireTimestamp: -1}})
	s.apply(&schema.OffsetRecord{Group: "g", Topic: "t", Partition: 9, Value: &schema.Offset{Offset: 4, CommitTimestamp: 79, ExpireTimestamp: -1}})
	s.apply(&schema.OffsetRecord{Group: "simple", Topic: "t", Partition: 9, Value: &schema.Offset{Offset: 1, ExpireTimestamp: -1}})
	names := s.Names()
	delete(s.Groups, "simple") // Meanwhile.
	if got := names.List(); !slices.Equal(got, []string{"g", "simple"}) {
		t.Errorf("the groups are %v", got)
	}
	s.Groups["simple"] = names.groups["simple"]
	look := kind.Look{Members: []kind.MemberLook{{Parts: []kind.PartLook{{Partition: 3}}, Topics: []string{"x"}}}, Offsets: make([]kind.OffsetLook, 9)}
	if s.LookAt("none", &look) {
		t.Error("a group that is not there is seen")
	}
	if !s.LookAt("g", &look) {
		t.Fatal("the group is not seen")
	}
	want := described(s, "g")
	if look.Name != "g" || look.Type != "classic" || look.State != want.State || look.ProtocolType != want.ProtocolType || look.Protocol != want.Protocol || len(look.Members) != len(want.Members) {
		t.Fatalf("%+v, want %+v", look, want)
	}
	for i, m := range look.Members {
		w := &want.Members[i]
		if m.ID != w.MemberID || m.ClientID != w.ClientID || "/"+m.Host != w.ClientHost || string(m.Subscription) != string(w.ProtocolMetadata) ||
			string(m.Assignment) != string(w.MemberAssignment) || len(m.Parts)+len(m.Topics) > 0 {
			t.Errorf("%+v, want %+v", m, w)
		}
	}
	if want := []kind.OffsetLook{{Topic: "t", Partition: 9, Offset: 4, At: 79}, {Topic: "t", Partition: 10, Offset: 5, At: 78}, {Topic: "u", Partition: 1, Offset: 3, At: 77}}; !slices.Equal(look.Offsets, want) {
		t.Errorf("%v, want %v", look.Offsets, want)
	}
	// However few of many partitions were committed.
	s.apply(&schema.OffsetRecord{Group: "simple", Topic: "t", Partition: 0, Value: &schema.Offset{Offset: 2, ExpireTimestamp: -1}})
	for _, p := range []int32{1, 2, 3, 4, 1 << 30} {
		s.apply(&schema.OffsetRecord{Group: "simple", Topic: "u", Partition: p, Value: &schema.Offset{Offset: int64(p), ExpireTimestamp: -1}})
	}
	s.LookAt("simple", &look)
	var seen []string
	for _, o := range look.Offsets {
		seen = append(seen, fmt.Sprintf("%s-%d@%d", o.Topic, o.Partition, o.Offset))
	}
	if got := strings.Join(seen, " "); got != "t-0@2 t-9@1 u-1@1 u-2@2 u-3@3 u-4@4 u-1073741824@1073741824" {
		t.Error(got)
	}
	s.classic("g").State = classic.PreparingRebalance
	if s.LookAt("g", &look); look.Members[0].Assignment != nil || look.Members[0].Subscription != nil {
		t.Error("while it rebalances members have what they had")
	}
	if !s.LookAt("simple", &look) || look.State != "Empty" || len(look.Members) != 0 || len(look.Offsets) != 7 {
		t.Errorf("a simple group: %+v", look)
	}
}

func TestALookAtAConsumerGroupHasItsPartitions(t *testing.T) {
	s, _ := consumerBeats(t)
	var look kind.Look
	for range 2 { // The second time in the same memory.
		if !s.LookAt("g", &look) || look.Type != "consumer" || look.ProtocolType != "consumer" || len(look.Members) != 2 {
			t.Fatalf("%+v", look)
		}
		for i, m := range look.Members {
			mem := s.consumer("g").Members[i]
			if m.ID != mem.ID || m.ClientID != mem.Metadata.ClientID || m.Host != "10.0.0.1" || !slices.Equal(m.Topics, mem.Metadata.Topics) || len(m.Topics) == 0 {
				t.Errorf("%+v", m)
			}
			if len(m.Parts) != len(mem.Now().Assigned) {
				t.Errorf("%s has %v", m.ID, m.Parts)
			}
			for j, p := range mem.Now().Assigned {
				if m.Parts[j] != (kind.PartLook{Topic: p.Part.Topic, Partition: p.Part.Number}) {
					t.Errorf("%s has %v", m.ID, m.Parts)
				}
			}
		}
	}
	mem := s.consumer("g").Members[0]
	pattern := "t.*"
	mem.Metadata.Regex = &pattern
	s.consumer("g").Regexes[pattern] = &consumer.Regex{Topics: []string{"t", "tt"}}
	if s.LookAt("g", &look); !slices.Equal(look.Members[0].Regex, []string{"t", "tt"}) || look.Members[1].Regex != nil {
		t.Errorf("%+v", look.Members)
	}
}
