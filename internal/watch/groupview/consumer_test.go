package groupview

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
)

// What a broker tells of a consumer group is there, in order, and with what only ours tell.
func TestAConsumerGroupIsAsItsBrokerTells(t *testing.T) {
	assign := func(topics ...string) (a kmsg.Assignment) {
		for _, topic := range topics {
			a.TopicPartitions = append(a.TopicPartitions, kmsg.AssignmentTopicPartition{Topic: topic, Partitions: []int32{2, 0}})
		}
		return a
	}
	b := kmsg.ConsumerGroupDescribeResponseGroupMember{
		MemberID: "b", ClientID: "app", ClientHost: "/10.0.0.1", InstanceID: kmsg.StringPtr("b-1"), MemberEpoch: 3, MemberType: 1,
		SubscribedTopics: []string{"orders"}, SubscribedTopicRegex: kmsg.StringPtr("o.*"), Assignment: assign("users", "orders"), TargetAssignment: assign("orders"),
	}
	matches, since := 2, time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	(&journal.MemberStatus{
		Assignor: "range", Matches: &matches, Waits: true, Revoking: []journal.Parts{{Topic: "users", Partitions: []int32{1}}},
		Since: since, Until: since.Add(1), Heard: since.Add(2), Session: since.Add(3),
	}).Set(&b.UnknownTags)
	a := kmsg.ConsumerGroupDescribeResponseGroupMember{MemberID: "a"}
	got, err := json.Marshal(FromConsumer(&kmsg.ConsumerGroupDescribeResponseGroup{
		State: Reconciling, AssignorName: "uniform", Epoch: 4, AssignmentEpoch: 3, Members: []kmsg.ConsumerGroupDescribeResponseGroupMember{b, a},
	}))
	const want = `{"name":"","type":"consumer","state":"Reconciling","protocol_type":"consumer","assignor":"uniform","epoch":4,"target_epoch":3,"coordinator":null,"members":[` +
		`{"member_id":"a","client_id":"","host":"","instance_id":null,"topics":null,"assigned":[],"epoch":0,"classic":true},` +
		`{"member_id":"b","client_id":"app","host":"10.0.0.1","instance_id":"b-1","topics":["orders"],"assigned":[{"topic":"orders","partitions":[0,2]},{"topic":"users","partitions":[0,2]}],` +
		`"pattern":"o.*","epoch":3,"target":[{"topic":"orders","partitions":[0,2]}],"assignor":"range","matches":2,"revoking":[{"topic":"users","partitions":[1]}],"waits":true,` +
		`"since":"2026-01-31T12:00:00Z","until":"2026-01-31T12:00:00.000000001Z","heard":"2026-01-31T12:00:00.000000002Z","session":"2026-01-31T12:00:00.000000003Z"}],` +
		`"partitions":null,"total_lag":null,"uncommitted_partitions":0}`
	if err != nil || string(got) != want {
		t.Errorf("%s, %v\nwant %s", got, err, want)
	}
}
