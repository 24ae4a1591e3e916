package main

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// thread is a thread of a Kafka Streams application that counts what is in topic orders.
type thread struct {
	*shell
	req *kmsg.StreamsGroupHeartbeatRequest
}

func newThread(s *shell, group string) *thread {
	none := []kmsg.TaskIDs{}
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	req.Group, req.MemberID, req.RebalanceTimeoutMillis, req.ProcessID = group, "thread", 60_000, new("process")
	req.ActiveTasks, req.StandbyTasks, req.WarmupTasks = none, none, none
	req.Topology = &kmsg.StreamsGroupHeartbeatRequestTopology{Subtopologies: []kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{
		{SubtopologyID: "0", SourceTopics: []string{"orders"}, StateChangelogTopics: []kmsg.TopicInfo{{Topic: "counts-changelog"}}},
	}}
	return &thread{s, req}
}

// beatUntil has it send heartbeats until it has so many tasks and statuses.
func (w *thread) beatUntil(tasks, statuses int) {
	w.t.Helper()
	client := w.client()
	eventually(w.t, func() error {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.CoordinatorKey, find.CoordinatorKeys = w.req.Group, []string{w.req.Group}
		if _, err := find.RequestWith(w.t.Context(), client); err != nil { // Which creates __consumer_offsets.
			return err
		}
		resp, err := w.req.RequestWith(w.t.Context(), client.Broker(1)) // The client knows no coordinator of this request.
		switch {
		case err != nil:
			return err
		case resp.ErrorCode != 0:
			return kerr.ErrorForCode(resp.ErrorCode)
		}
		w.req.MemberEpoch, w.req.Topology, w.req.ProcessID = resp.MemberEpoch, nil, nil
		w.req.ActiveTasks, w.req.StandbyTasks, w.req.WarmupTasks = nil, nil, nil
		if len(resp.ActiveTasks) != tasks || len(resp.Status) != statuses {
			return fmt.Errorf("tasks %v, status %+v", resp.ActiveTasks, resp.Status)
		}
		return nil
	})
}

func TestGroupsDescribeShowsAStreamsGroup(t *testing.T) {
	s := newShell(t, "group.streams.initial.rebalance.delay.ms", "0", "group.streams.assignment.interval.ms", "0")
	w := newThread(s, "counts")
	w.beatUntil(0, 1)
	says(t, s.run("groups", "describe", "counts").ok(), "Type:         streams", "State:        NotReady",
		"Waits for:    missing topics: counts-changelog, orders", "Subtopology:  0 reads orders; has state in counts-changelog")
	s.pipe("1\n2\n3\n", "produce", "orders").ok()
	w.beatUntil(1, 0)
	says(t, s.run("groups", "describe", "counts").ok(), "State:        Stable", "process  thread", "0:0     none     the same", "orders          0")
	says(t, s.run("groups", "list").ok(), "counts  streams  Stable")
	g := s.describe("counts")
	same(t, "the process", g.Members[0].Process, "process")
	same(t, "the task", fmt.Sprint(*g.Members[0].Tasks), "{[{0 [0]}] []}")
	same(t, "the owner", *g.Partitions[0].Owner, "thread")
	s.run("groups", "delete", "counts", "--yes").fails(exitFailed, "has members")
	w.req.MemberEpoch = -1
	_, err := w.req.RequestWith(t.Context(), w.client().Broker(1))
	must(t, err)
	s.run("groups", "delete", "counts", "--yes").ok()
}
