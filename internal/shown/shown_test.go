package shown

import (
	"context"
	"maps"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/store"
)

// groups shows a group whose members a test describes, over the topic orders with two
// partitions and an internal one.
func groups(t *testing.T, g kmsg.DescribeGroupsResponseGroup) *Groups {
	t.Helper()
	edit := metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1}).Edit()
	edit.PutTopic(metadata.Topic{Name: "orders", ID: metadata.TopicID{1}, Partitions: []metadata.Partition{{Leader: 1}, {Leader: 1}}})
	edit.PutTopic(metadata.Topic{Name: "__x", ID: metadata.TopicID{2}, Internal: true, Partitions: []metadata.Partition{{Leader: 1}}})
	image := edit.Image()
	return &Groups{Options: Options{
		Image: func() *metadata.Image { return image },
		Describe: func(context.Context, string, *kmsg.DescribeGroupsRequest) kmsg.Response {
			return &kmsg.DescribeGroupsResponse{Groups: []kmsg.DescribeGroupsResponseGroup{g}}
		},
	}}
}

func member(id, client string, topic string, partitions ...int32) kmsg.DescribeGroupsResponseGroupMember {
	a := kmsg.NewConsumerMemberAssignment()
	of := kmsg.NewConsumerMemberAssignmentTopic()
	of.Topic, of.Partitions = topic, partitions
	a.Topics = append(a.Topics, of)
	return kmsg.DescribeGroupsResponseGroupMember{MemberID: id, ClientID: client, MemberAssignment: a.AppendTo(nil)}
}

// Members are known by their client, and hold what they were assigned of topics that Redis
// clients see. While a group rebalances that is not known; an empty one has no members.
func TestMembersHoldWhatTheyWereAssigned(t *testing.T) {
	ann, bob, hidden := member("ann-1", "ann", "orders", 0), member("static", "bob", "orders", 1), member("eve-1", "eve", "__x", 0)
	members := []kmsg.DescribeGroupsResponseGroupMember{ann, bob, hidden}
	want := map[store.TopicPartition]string{{Topic: "orders"}: "ann-1", {Topic: "orders", Partition: 1}: "bob-static"}
	for _, c := range []struct {
		group kmsg.DescribeGroupsResponseGroup
		want  map[store.TopicPartition]string
		known bool
	}{
		{kmsg.DescribeGroupsResponseGroup{State: "Stable", Members: members}, want, true},
		{kmsg.DescribeGroupsResponseGroup{State: "PreparingRebalance", Members: members}, nil, false},
		{kmsg.DescribeGroupsResponseGroup{State: "Empty"}, nil, true},
		{kmsg.DescribeGroupsResponseGroup{State: "Stable", ErrorCode: 16, Members: members}, nil, false},
	} {
		got, known := groups(t, c.group).holders(t.Context(), "g")
		if known != c.known || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, known %t", c.group.State, got, known)
		}
	}
}

// What is not shown costs nothing: neither what Redis clients do not see, nor what has no
// room in the queue.
func TestWhatIsNotShownIsLeftOut(t *testing.T) {
	n := groups(t, kmsg.DescribeGroupsResponseGroup{})
	n.queue = make(chan func(context.Context), 1)
	for range 3 {
		n.later(func(context.Context) {})
	}
	if len(n.queue) != 1 {
		t.Errorf("%d wait", len(n.queue))
	}
	for tp, want := range map[store.TopicPartition]bool{{Topic: "orders"}: true, {Topic: "__x"}: false, {Topic: "gone"}: false} {
		if _, seen := n.stream(tp); seen != want {
			t.Errorf("%v is seen: %t", tp, seen)
		}
	}
	n.Committed("g", store.TopicPartition{Topic: "__x"}, 1) // There is nothing to move it by.
}
