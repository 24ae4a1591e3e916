package broker_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The broker creates the internal topics of a topology by itself, and then assigns the tasks.
func TestAStreamsGroupGetsItsInternalTopicsAndTasks(t *testing.T) {
	b := start(t, map[string]string{"group.streams.initial.rebalance.delay.ms": "0", "group.streams.assignment.interval.ms": "0"})
	c := client(t, b)
	if _, err := kadm.NewClient(c).CreateTopic(t.Context(), 3, 1, nil, "words"); err != nil {
		t.Fatal(err)
	}
	none := []kmsg.TaskIDs{}
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Group, req.MemberID, req.RebalanceTimeoutMillis, req.ProcessID = "counts", "thread", 60_000, new("process")
	req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = none, none, none
	compact := "compact"
	log := kmsg.TopicInfo{Topic: "counts-store-changelog", Configs: []kmsg.TopicInfoConfig{{Key: "cleanup.policy", Value: compact}}}
	req.Topology = &kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{
		{SubtopologyID: "0", SourceTopics: []string{"words"}, RepartitionSinkTopics: []string{"counts-repartition"}},
		{SubtopologyID: "1", RepartitionSourceTopics: []kmsg.TopicInfo{{Topic: "counts-repartition"}}, StateChangelogTopics: []kmsg.TopicInfo{log}},
	}}
	find := kmsg.NewPtrFindCoordinatorRequest()
	find.CoordinatorKey, find.CoordinatorKeys = req.Group, []string{req.Group}
	if _, err := find.RequestWith(t.Context(), c); err != nil { // Which creates __consumer_offsets.
		t.Fatal(err)
	}
	eventually(t, "tasks", func(ctx context.Context) error {
		resp, err := req.RequestWith(ctx, c.Broker(1)) // The client knows no coordinator of this request.
		switch {
		case err != nil:
			return err
		case resp.ErrorCode != 0:
			return kerr.ErrorForCode(resp.ErrorCode)
		}
		req.MemberEpoch, req.Topology, req.ProcessID = resp.MemberEpoch, nil, nil
		if req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = nil, nil, nil; len(resp.ActiveTasks) != 2 {
			return fmt.Errorf("tasks %v, status %+v", resp.ActiveTasks, resp.Status)
		}
		return nil
	})
	topics, err := kadm.NewClient(c).ListTopics(t.Context(), "counts-store-changelog", "counts-repartition")
	must(t, err)
	for _, topic := range topics.Sorted() {
		if topic.Err != nil || len(topic.Partitions) != 3 {
			t.Errorf("%s has %d partitions, %v", topic.Topic, len(topic.Partitions), topic.Err)
		}
	}
	describe := kmsg.NewPtrStreamsGroupDescribeRequest()
	describe.Groups = []string{"counts"}
	resp, err := describe.RequestWith(t.Context(), c.Broker(1))
	must(t, err)
	if g := resp.Groups[0]; g.ErrorCode != 0 || g.State != "Stable" || len(g.Members) != 1 || g.Topology.Subtopologies[1].StateChangelogTopics[0].NumPartitions != 3 {
		t.Errorf("described as %+v", g)
	}
}
