package handler_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/partition"
)

func moves(topic string, partition int32, to ...int32) *kmsg.AlterPartitionAssignmentsRequest {
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: topic, Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Partition: partition, Replicas: to}}}}
	return req
}

func TestPartitionsOfALoneBrokerAreReassignedToItselfOnly(t *testing.T) {
	w := newWorld(t)
	for _, x := range []struct {
		req  *kmsg.AlterPartitionAssignmentsRequest
		code int16
		says string
	}{
		{moves("t", 0, 1), 0, ""},
		{moves("t", 0, 2), kerr.InvalidReplicaAssignment.Code, "Redis"},
		{moves("t", 0, 1, 2), kerr.InvalidReplicaAssignment.Code, "one replica"},
		{moves("t", 9, 1), kerr.UnknownTopicOrPartition.Code, "partition 9"},
		{moves("none", 0, 1), kerr.UnknownTopicOrPartition.Code, "none"},
		{moves("t", 0), kerr.NoReassignmentInProgress.Code, "in progress"},
	} {
		p := w.request(x.req).(*kmsg.AlterPartitionAssignmentsResponse).Topics[0].Partitions[0]
		if p.ErrorCode != x.code || (p.ErrorMessage == nil) != (x.says == "") || p.ErrorMessage != nil && !strings.Contains(*p.ErrorMessage, x.says) {
			t.Errorf("%+v: %+v", x.req.Topics, p)
		}
	}
	if list := w.request(kmsg.NewPtrListPartitionReassignmentsRequest()).(*kmsg.ListPartitionReassignmentsResponse); list.ErrorCode != 0 || len(list.Topics) != 0 {
		t.Errorf("%+v", list)
	}
}

// nowhere has no partitions: other brokers lead them all.
type nowhere struct{}

func (nowhere) Get(string, int32) *partition.Partition { return nil }

// away replaces some of what the metadata says of topic t.
type away struct {
	handler.Controller
	edit func(*metadata.Topic)
}

func (a away) Image() *metadata.Image {
	edit := a.Controller.Image().Edit()
	topic := *edit.Image().Topic("t")
	a.edit(&topic)
	edit.PutTopic(topic)
	return edit.Image()
}

func TestAnElectionIsAnsweredForPartitionsOfOtherBrokers(t *testing.T) {
	w := newWorld(t)
	opts := w.opts
	opts.Partitions = nowhere{}
	opts.Controller = away{w.c, func(topic *metadata.Topic) {
		topic.Partitions = []metadata.Partition{{Leader: 7}, {Leader: 7}, {Leader: 7}}
		topic.Preferred = []int32{metadata.NoBroker, 8}
	}}
	w.h = handler.New(opts)
	for kind, want := range map[int8][]int16{
		0: {kerr.ElectionNotNeeded.Code, kerr.PreferredLeaderNotAvailable.Code, kerr.ElectionNotNeeded.Code, kerr.UnknownTopicOrPartition.Code},
		1: {kerr.ElectionNotNeeded.Code, kerr.ElectionNotNeeded.Code, kerr.ElectionNotNeeded.Code, kerr.UnknownTopicOrPartition.Code},
	} {
		req := kmsg.NewPtrElectLeadersRequest()
		req.Version, req.ElectionType = 2, kind
		req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "t", Partitions: []int32{0, 1, 2, 3}}, {Topic: "none", Partitions: []int32{0}}}
		resp := w.request(req).(*kmsg.ElectLeadersResponse)
		for i, p := range resp.Topics[0].Partitions {
			if p.ErrorCode != want[i] {
				t.Errorf("type %d, partition %d: %v, want %v", kind, i, kerr.ErrorForCode(p.ErrorCode), kerr.ErrorForCode(want[i]))
			}
		}
		if p := resp.Topics[1].Partitions[0]; p.ErrorCode != kerr.UnknownTopicOrPartition.Code {
			t.Errorf("%+v", p)
		}
	}
}

func TestReplicasStayInTheOneLogDirectory(t *testing.T) {
	w := newWorld(t)
	opts := w.opts
	opts.LogDir = "/var/lib/muster"
	ask := func(dir, topic string) *kerr.Error {
		req := kmsg.NewPtrAlterReplicaLogDirsRequest()
		req.Version = 2
		req.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{{Dir: dir, Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: topic, Partitions: []int32{0}}}}}
		return kerr.TypedErrorForCode(w.request(req).(*kmsg.AlterReplicaLogDirsResponse).Topics[0].Partitions[0].ErrorCode)
	}
	for _, x := range []struct {
		partitions handler.Partitions
		dir, topic string
		want       *kerr.Error
	}{
		{w.m, "/var/lib/muster", "t", nil},
		{w.m, "/var/lib/muster/", "t", nil},
		{w.m, "/elsewhere", "t", kerr.LogDirNotFound},
		{w.m, "/var/lib/muster", "none", kerr.UnknownTopicOrPartition},
		{nowhere{}, "/var/lib/muster", "t", kerr.ReplicaNotAvailable},
	} {
		opts.Partitions = x.partitions
		w.h = handler.New(opts)
		assert.Equal(t, ask(x.dir, x.topic), x.want, "%s of %s", x.dir, x.topic)
	}
}

func TestTheQuorumIsTheController(t *testing.T) {
	w := newWorld(t)
	for version := range int16(3) {
		before := w.c.LogEndOffset()
		w.create(metadata.NewTopic{Name: "new-" + string(rune('0'+version)), Partitions: 1, Replication: 1})
		req := kmsg.NewPtrDescribeQuorumRequest()
		req.Version = version
		req.Topics = []kmsg.DescribeQuorumRequestTopic{
			{Topic: metadata.ClusterMetadataTopic, Partitions: []kmsg.DescribeQuorumRequestTopicPartition{{Partition: 0}, {Partition: 1}}},
			{Topic: "t", Partitions: []kmsg.DescribeQuorumRequestTopicPartition{{Partition: 0}}},
		}
		resp := w.request(req).(*kmsg.DescribeQuorumResponse)
		p := resp.Topics[0].Partitions[0]
		if resp.ErrorCode != 0 || p.ErrorCode != 0 || p.LeaderID != 1 || p.HighWatermark != before+1 || len(p.CurrentVoters) != 1 || len(p.Observers) != 0 {
			t.Fatalf("version %d: %+v", version, resp)
		}
		if v := p.CurrentVoters[0]; v.ReplicaID != 1 || v.LogEndOffset != before+1 || version > 0 && v.LastCaughtUpTimestamp <= 0 {
			t.Errorf("version %d: %+v", version, v)
		}
		assert.False(t, version == 2 && (len(resp.Nodes) != 1 || resp.Nodes[0].NodeID != 1 || resp.Nodes[0].Listeners[0].Host != "h"), "%+v", resp.Nodes)
		for _, p := range []kmsg.DescribeQuorumResponseTopicPartition{resp.Topics[0].Partitions[1], resp.Topics[1].Partitions[0]} {
			assert.Equal(t, p.ErrorCode, kerr.UnknownTopicOrPartition.Code, "version %d: %+v", version, p)
		}
	}
}

func TestFeaturesStayAtTheirLevels(t *testing.T) {
	w := newWorld(t)
	const up, down, unsafe = 1, 2, 3
	for _, x := range []struct {
		feature string
		level   int16
		kind    int8
		want    *kerr.Error
	}{
		{"group.version", 1, up, nil},
		{"group.version", 1, down, nil},
		{"transaction.version", 2, up, nil},
		{"transaction.version", 3, up, kerr.InvalidUpdateVersion},
		{"transaction.version", 1, up, kerr.InvalidUpdateVersion},
		{"transaction.version", 1, down, kerr.FeatureUpdateFailed},
		{"transaction.version", 0, unsafe, kerr.FeatureUpdateFailed},
		{"transaction.version", -1, unsafe, kerr.InvalidUpdateVersion},
		{"transaction.version", 2, 4, kerr.InvalidUpdateVersion},
		{"metadata.version", 7, up, kerr.InvalidUpdateVersion},
	} {
		for version := range int16(3) {
			req := kmsg.NewPtrUpdateFeaturesRequest()
			req.Version, req.ValidateOnly = version, true
			req.FeatureUpdates = []kmsg.UpdateFeaturesRequestFeatureUpdate{
				{Feature: x.feature, MaxVersionLevel: x.level, UpgradeType: x.kind, AllowDowngrade: x.kind != up},
			}
			resp := w.request(req).(*kmsg.UpdateFeaturesResponse)
			want := x.want
			if version == 0 && x.kind == 4 {
				want = nil // There are no kinds yet.
			}
			if got := kerr.TypedErrorForCode(resp.ErrorCode); got != want || (resp.ErrorMessage == nil) != (want == nil) {
				t.Errorf("version %d: %+v: %v, want %v", version, x, got, want)
			}
			if results := resp.Results; version < 2 && (len(results) != 1 || results[0].ErrorCode != resp.ErrorCode) {
				t.Errorf("version %d: %+v: %+v", version, x, results)
			}
		}
	}
}
