package handler_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/handler"
	"muster/internal/metadata"
	"muster/internal/record"
)

// times is how often the requests below name a thing.
const times = 10_000

func again[T any](v T) []T {
	out := make([]T, times)
	for i := range out {
		out[i] = v
	}
	return out
}

// repeating has, for every key that can name a thing, requests that name one
// thing again and again: by repeating topics, and by repeating partitions.
func repeating(id [16]byte) []kmsg.Request {
	big, bigs := "big", again(int32(0))
	other := func(v int16) *kmsg.MetadataRequest {
		req := &kmsg.MetadataRequest{Version: v, AllowAutoTopicCreation: true}
		for i := range times { // By id, with a name beside it that does not count.
			name := strconv.Itoa(i)
			req.Topics = append(req.Topics, kmsg.MetadataRequestTopic{Topic: &name, TopicID: id})
		}
		return req
	}
	group := "g"
	return []kmsg.Request{
		&kmsg.ProduceRequest{Version: 9, Acks: 1, Topics: []kmsg.ProduceRequestTopic{{Topic: big, Partitions: make([]kmsg.ProduceRequestTopicPartition, 1000)}}},
		&kmsg.FetchRequest{Version: 12, SessionEpoch: -1, MaxBytes: 1 << 20, Topics: []kmsg.FetchRequestTopic{{Topic: big, Partitions: again(kmsg.FetchRequestTopicPartition{PartitionMaxBytes: 1 << 20})}}},
		&kmsg.FetchRequest{Version: 13, MaxBytes: 1 << 20, Topics: again(kmsg.FetchRequestTopic{TopicID: id, Partitions: make([]kmsg.FetchRequestTopicPartition, 1)})},
		&kmsg.ListOffsetsRequest{Version: 9, Topics: []kmsg.ListOffsetsRequestTopic{{Topic: big, Partitions: again(kmsg.ListOffsetsRequestTopicPartition{Timestamp: -1})}}},
		&kmsg.MetadataRequest{Version: 9, Topics: again(kmsg.MetadataRequestTopic{Topic: &big})},
		other(12),
		&kmsg.OffsetFetchRequest{Version: 8, Groups: again(kmsg.OffsetFetchRequestGroup{Group: "g"})},
		&kmsg.OffsetFetchRequest{Version: 8, Groups: []kmsg.OffsetFetchRequestGroup{{Group: "g", Topics: []kmsg.OffsetFetchRequestGroupTopic{{Topic: big, Partitions: bigs}}}}},
		&kmsg.OffsetFetchRequest{Version: 7, Group: "g", Topics: again(kmsg.OffsetFetchRequestTopic{Topic: big, Partitions: []int32{0}})},
		&kmsg.FindCoordinatorRequest{Version: 4, CoordinatorKeys: again("g")},
		&kmsg.LeaveGroupRequest{Version: 4, Group: "g", Members: make([]kmsg.LeaveGroupRequestMember, times)},
		&kmsg.DescribeGroupsRequest{Version: 5, Groups: again("g")},
		&kmsg.ListGroupsRequest{Version: 5, StatesFilter: again("Empty"), TypesFilter: again("classic")},
		&kmsg.CreateTopicsRequest{Version: 7, ValidateOnly: true, Topics: again(kmsg.CreateTopicsRequestTopic{Topic: "new", NumPartitions: 1000, ReplicationFactor: 1})},
		&kmsg.DeleteTopicsRequest{Version: 6, Topics: again(kmsg.DeleteTopicsRequestTopic{TopicID: id})},
		&kmsg.DeleteTopicsRequest{Version: 1, TopicNames: again(big)},
		&kmsg.DeleteRecordsRequest{Version: 2, Topics: []kmsg.DeleteRecordsRequestTopic{{Topic: big, Partitions: make([]kmsg.DeleteRecordsRequestTopicPartition, times)}}},
		&kmsg.OffsetForLeaderEpochRequest{Version: 4, Topics: []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: big, Partitions: again(kmsg.OffsetForLeaderEpochRequestTopicPartition{CurrentLeaderEpoch: -1})}}},
		&kmsg.DescribeConfigsRequest{Version: 4, IncludeSynonyms: true, IncludeDocumentation: true, Resources: again(kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: big})},
		&kmsg.AlterConfigsRequest{Version: 2, Resources: again(kmsg.AlterConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: big})},
		&kmsg.DescribeLogDirsRequest{Version: 4, Topics: again(kmsg.DescribeLogDirsRequestTopic{Topic: big, Partitions: []int32{0, 1}})},
		&kmsg.CreatePartitionsRequest{Version: 3, Topics: again(kmsg.CreatePartitionsRequestTopic{Topic: big, Count: 9999})},
		&kmsg.DeleteGroupsRequest{Version: 2, Groups: again("none")},
		&kmsg.ElectLeadersRequest{Version: 2, Topics: []kmsg.ElectLeadersRequestTopic{{Topic: big, Partitions: bigs}}},
		&kmsg.IncrementalAlterConfigsRequest{Version: 1, Resources: again(kmsg.IncrementalAlterConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: big})},
		&kmsg.AlterReplicaLogDirsRequest{Version: 2, Dirs: again(kmsg.AlterReplicaLogDirsRequestDir{Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: big, Partitions: []int32{0, 1}}}})},
		&kmsg.AlterPartitionAssignmentsRequest{Topics: []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: big, Partitions: again(kmsg.AlterPartitionAssignmentsRequestTopicPartition{Replicas: []int32{9}})}}},
		&kmsg.DescribeQuorumRequest{Version: 2, Topics: []kmsg.DescribeQuorumRequestTopic{{Topic: metadata.ClusterMetadataTopic, Partitions: make([]kmsg.DescribeQuorumRequestTopicPartition, times)}}},
		&kmsg.UpdateFeaturesRequest{Version: 1, FeatureUpdates: again(kmsg.UpdateFeaturesRequestFeatureUpdate{Feature: "group.version"})},
		&kmsg.ListPartitionReassignmentsRequest{Topics: []kmsg.ListPartitionReassignmentsRequestTopic{{Topic: big, Partitions: bigs}}},
		&kmsg.OffsetCommitRequest{Version: 8, Group: "g", Generation: -1, Topics: again(kmsg.OffsetCommitRequestTopic{Topic: big, Partitions: make([]kmsg.OffsetCommitRequestTopicPartition, 2)})},
		&kmsg.OffsetDeleteRequest{Group: "g", Topics: []kmsg.OffsetDeleteRequestTopic{{Topic: big, Partitions: make([]kmsg.OffsetDeleteRequestTopicPartition, times)}}},
		&kmsg.ShareFetchRequest{Version: 2, GroupID: &group, MemberID: &group, MaxBytes: 1 << 20, MaxRecords: 500, Topics: again(kmsg.ShareFetchRequestTopic{TopicID: id, Partitions: make([]kmsg.ShareFetchRequestTopicPartition, 2)})},
		&kmsg.ShareAcknowledgeRequest{Version: 2, GroupID: &group, MemberID: &group, ShareSessionEpoch: 1, Topics: again(kmsg.ShareAcknowledgeRequestTopic{TopicID: id, Partitions: []kmsg.ShareAcknowledgeRequestTopicPartition{
			{AcknowledgementBatches: []kmsg.ShareAcknowledgeRequestTopicPartitionAcknowledgementBatch{{AcknowledgeTypes: []int8{1}}}},
		}})},
		&kmsg.ShareFetchRequest{Version: 2, GroupID: &group, MemberID: &group, ShareSessionEpoch: 2, MaxBytes: 1 << 20, MaxRecords: 500, ForgottenTopicsData: again(kmsg.ShareFetchRequestForgottenTopicsData{TopicID: id, Partitions: []int32{0, 1}})},
		&kmsg.DescribeProducersRequest{Topics: []kmsg.DescribeProducersRequestTopic{{Topic: big, Partitions: bigs}}},
		&kmsg.AddPartitionsToTxnRequest{Version: 3, TransactionalID: "x", Topics: again(kmsg.AddPartitionsToTxnRequestTopic{Topic: big, Partitions: []int32{0, 1}})},
		&kmsg.AddPartitionsToTxnRequest{Version: 5, Transactions: again(kmsg.AddPartitionsToTxnRequestTransaction{TransactionalID: "x", Topics: []kmsg.AddPartitionsToTxnRequestTransactionTopic{{Topic: big, Partitions: []int32{0}}}})},
		&kmsg.WriteTxnMarkersRequest{Version: 1, Markers: []kmsg.WriteTxnMarkersRequestMarker{{ProducerID: 1, Topics: again(kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: big, Partitions: []int32{0, 1}})}}},
		&kmsg.WriteTxnMarkersRequest{Version: 1, Markers: []kmsg.WriteTxnMarkersRequestMarker{{ProducerID: 1, Topics: again(kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: metadata.OffsetsTopic, Partitions: []int32{0, 1}})}}},
		&kmsg.WriteTxnMarkersRequest{Version: 1, Markers: []kmsg.WriteTxnMarkersRequestMarker{{ProducerID: 1, Topics: again(kmsg.WriteTxnMarkersRequestMarkerTopic{Topic: "none", Partitions: []int32{0, 1}})}}},
		&kmsg.TxnOffsetCommitRequest{Version: 3, TransactionalID: "x", Group: "g", Generation: -1, Topics: again(kmsg.TxnOffsetCommitRequestTopic{Topic: big, Partitions: make([]kmsg.TxnOffsetCommitRequestTopicPartition, 2)})},
		&kmsg.DescribeTransactionsRequest{TransactionalIDs: again("none")},
		&kmsg.ListTransactionsRequest{Version: 2, StateFilters: again("none"), ProducerIDFilters: again(int64(5))},
		&kmsg.ConsumerGroupHeartbeatRequest{Version: 1, Group: "new", MemberID: "m", RebalanceTimeoutMillis: 1, SubscribedTopicNames: again(big), Topics: []kmsg.ConsumerGroupHeartbeatRequestTopic{}},
		&kmsg.ConsumerGroupHeartbeatRequest{Version: 1, Group: "new", MemberID: "m", MemberEpoch: 2, RebalanceTimeoutMillis: -1, Topics: again(kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: id, Partitions: []int32{0, 1}})},
		&kmsg.ConsumerGroupDescribeRequest{Version: 1, Groups: again("g")},
		&kmsg.ShareGroupHeartbeatRequest{Version: 1, GroupID: "shared", MemberID: "m", SubscribedTopicNames: again(big)},
		&kmsg.ShareGroupDescribeRequest{Version: 1, GroupIDs: again("shared")},
		streamsJoin(kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{SourceTopics: again(big)}),
		streamsJoin(kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{SourceTopics: []string{big}, StateChangelogTopics: again(kmsg.TopicInfo{Topic: "log"})}),
		streamsJoin(kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{SourceTopics: []string{big}, CopartitionGroups: again(
			kmsg.StreamsGroupHeartbeatRequestTopologySubtopologyCopartitionGroup{SourceTopics: []int16{0}})}),
		streamsJoin(again(kmsg.StreamsGroupHeartbeatRequestTopologySubtopology{SourceTopics: []string{big}})...),
		&kmsg.StreamsGroupHeartbeatRequest{Group: "streams", MemberID: "m", MemberEpoch: 2, RebalanceTimeoutMillis: -1,
			ActiveTasks: again(kmsg.TaskIDs{SubtopologyID: "0", Partitions: []int32{0, 1}}), StandbyTasks: []kmsg.TaskIDs{}, WarmupTasks: []kmsg.TaskIDs{}},
		&kmsg.StreamsGroupDescribeRequest{Groups: again("streams")},
		&kmsg.DescribeShareGroupOffsetsRequest{Version: 1, Groups: again(kmsg.DescribeShareGroupOffsetsRequestGroup{GroupID: "shared"})},
		&kmsg.DescribeShareGroupOffsetsRequest{Version: 1, Groups: []kmsg.DescribeShareGroupOffsetsRequestGroup{{GroupID: "shared", Topics: again(kmsg.DescribeShareGroupOffsetsRequestGroupTopic{Topic: big, Partitions: bigs})}}},
		&kmsg.AlterShareGroupOffsetsRequest{GroupID: "other", Topics: again(kmsg.AlterShareGroupOffsetsRequestTopic{Topic: big, Partitions: make([]kmsg.AlterShareGroupOffsetsRequestTopicPartition, 2)})},
		&kmsg.DeleteShareGroupOffsetsRequest{GroupID: "other", Topics: again(kmsg.DeleteShareGroupOffsetsRequestTopic{Topic: big})},
		&kmsg.DescribeConfigsRequest{Version: 4, Resources: again(kmsg.DescribeConfigsRequestResource{ResourceType: kmsg.ConfigResourceTypeGroupConfig, ResourceName: "g"})},
		&kmsg.ListConfigResourcesRequest{Version: 1, ResourceTypes: again(int8(kmsg.ConfigResourceTypeTopic))},
		&kmsg.DescribeTopicPartitionsRequest{ResponsePartitionLimit: 2000, Topics: again(kmsg.DescribeTopicPartitionsRequestTopic{Topic: big})},
		&kmsg.CreateACLsRequest{Version: 3, Creations: again(kmsg.CreateACLsRequestCreation{ResourceType: 2, ResourceName: big, ResourcePatternType: 3, Principal: "User:u", Host: "*", Operation: 3, PermissionType: 3})},
		&kmsg.DeleteACLsRequest{Version: 3, Filters: again(kmsg.DeleteACLsRequestFilter{ResourceType: 2, ResourceName: &big, ResourcePatternType: 3, Operation: 3, PermissionType: 3})},
		&kmsg.DescribeClientQuotasRequest{Version: 1, Components: again(kmsg.DescribeClientQuotasRequestComponent{EntityType: "user", MatchType: 2})},
		&kmsg.AlterClientQuotasRequest{Version: 1, Entries: again(kmsg.AlterClientQuotasRequestEntry{
			Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &big}}, Ops: []kmsg.AlterClientQuotasRequestEntryOp{{Key: "producer_byte_rate", Value: 1}}})},
		&kmsg.DescribeUserSCRAMCredentialsRequest{Users: again(kmsg.DescribeUserSCRAMCredentialsRequestUser{Name: "u"})},
		&kmsg.AlterUserSCRAMCredentialsRequest{Deletions: again(kmsg.AlterUserSCRAMCredentialsRequestDeletion{Name: "u", Mechanism: 1})},
	}
}

func streamsJoin(subtopologies ...kmsg.StreamsGroupHeartbeatRequestTopologySubtopology) *kmsg.StreamsGroupHeartbeatRequest {
	req := kmsg.NewPtrStreamsGroupHeartbeatRequest()
	joinsStreams(req, subtopologies...)
	req.Group = "streams"
	return req
}

// namesNothing lists the keys without a list of things to name, or where naming
// one twice is an error of its own (members and protocols of a group).
var namesNothing = map[int16]bool{11: true, 12: true, 14: true, 17: true, 18: true, 22: true, 25: true, 26: true, 29: true, 36: true, 60: true}

// linear lists the keys that answer what they are asked as often as they are
// asked it, with at most a few times the bytes.
var linear = map[int16]bool{0: true, 13: true, 23: true, 30: true, 31: true, 49: true}

// The answer about one thing, its topic and its group is well below this.
const onceKnown = 40 << 10

func TestNamingAThingAgainAndAgainTakesNoMoreThanNamingItOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it computes much, in one goroutine")
	}
	w := newShareWorld(t)
	w.create(metadata.NewTopic{Name: "big", Partitions: 1000, Replication: 1})
	commit := &kmsg.OffsetCommitRequest{Version: 8, Group: "g", Generation: -1, Topics: []kmsg.OffsetCommitRequestTopic{{Topic: "big"}}}
	text := strings.Repeat("x", 4000)
	commit.Topics[0].Partitions = []kmsg.OffsetCommitRequestTopicPartition{{Metadata: &text}}
	w.request(commit)
	for id := range int64(50) {
		produce := w.produceRequest(9, 0)
		from := record.PlainTemplate()
		from.ProducerID, from.ProducerEpoch, from.BaseSequence = id, 0, 0
		b, err := record.Build(from, []record.Record{{Value: []byte("v")}})
		must(t, err)
		produce.Topics[0].Partitions[0].Records = b
		produce.Topics[0].Topic = "big"
		w.request(produce)
	}
	tested := map[int16]bool{}
	for _, req := range repeating(w.c.Image().Topic("big").ID) {
		tested[req.Key()] = true
		w.fits(req)
	}
	for _, e := range handler.Table() {
		if tested[e.Key] == namesNothing[e.Key] {
			t.Errorf("%s is tested: %v; it names nothing: %v", e.Name(), tested[e.Key], namesNothing[e.Key])
		}
	}
}

// fits serves a request and holds what that took against the request's size.
func (w *world) fits(req kmsg.Request) {
	w.t.Helper()
	what := kmsg.NameForKey(req.Key()) + " v" + strconv.Itoa(int(req.GetVersion()))
	frame := kmsg.NewRequestFormatter(kmsg.FormatterClientID("test")).AppendRequest(nil, req, 7)[4:]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, err := w.h.Serve(w.t.Context(), handler.Origin{Listener: "L", Host: "127.0.0.1"}, frame)
	if err != nil {
		w.t.Errorf("%s: %v", what, err)
		return
	}
	if resp.Pending() {
		<-resp.Ready()
	}
	runtime.ReadMemStats(&after)
	size := 0
	for _, p := range resp.Parts {
		size += len(p.Bytes) + p.Records.Len
	}
	resp.Release()
	took := int(after.TotalAlloc - before.TotalAlloc)
	w.t.Logf("%-32s %7d bytes asked, %7d answered, %9d allocated", what, len(frame), size, took)
	most := onceKnown
	if linear[req.Key()] {
		most = 8 * len(frame)
	}
	assert.True(w.t, size <= most && took <= 64*len(frame)+32*onceKnown, "%s: %d bytes were answered with %d, and took %d", what, len(frame), size, took)
}

func TestWhatIsNamedTwiceIsRefusedWhereKafkaRefusesIt(t *testing.T) {
	w := newWorld(t)
	name := "t"
	resource := kmsg.ConfigResourceTypeTopic
	offsets := &kmsg.ListOffsetsRequest{Version: 9, Topics: []kmsg.ListOffsetsRequestTopic{{Topic: name, Partitions: []kmsg.ListOffsetsRequestTopicPartition{{Timestamp: -1}, {Timestamp: -2}, {Partition: 1, Timestamp: -1}}}}}
	parts := w.request(offsets).(*kmsg.ListOffsetsResponse).Topics[0].Partitions
	if len(parts) != 2 || parts[0].ErrorCode != kerr.InvalidRequest.Code || parts[0].Offset != -1 || parts[1].ErrorCode != 0 {
		t.Errorf("ListOffsets: %+v", parts)
	}
	codes := map[string][]int16{}
	for _, r := range w.request(&kmsg.CreateTopicsRequest{Version: 7, Topics: []kmsg.CreateTopicsRequestTopic{{Topic: "n", NumPartitions: 1, ReplicationFactor: 1}, {Topic: "n", NumPartitions: 1, ReplicationFactor: 1}}}).(*kmsg.CreateTopicsResponse).Topics {
		codes["CreateTopics"] = append(codes["CreateTopics"], r.ErrorCode)
	}
	for _, r := range w.request(&kmsg.CreatePartitionsRequest{Version: 3, Topics: []kmsg.CreatePartitionsRequestTopic{{Topic: name, Count: 3}, {Topic: name, Count: 4}}}).(*kmsg.CreatePartitionsResponse).Topics {
		codes["CreatePartitions"] = append(codes["CreatePartitions"], r.ErrorCode)
	}
	for _, r := range w.request(&kmsg.DeleteTopicsRequest{Version: 6, Topics: []kmsg.DeleteTopicsRequestTopic{{Topic: &name}, {Topic: &name}}}).(*kmsg.DeleteTopicsResponse).Topics {
		codes["DeleteTopics"] = append(codes["DeleteTopics"], r.ErrorCode)
	}
	for _, r := range w.request(&kmsg.AlterConfigsRequest{Version: 2, Resources: []kmsg.AlterConfigsRequestResource{{ResourceType: resource, ResourceName: name}, {ResourceType: resource, ResourceName: name}}}).(*kmsg.AlterConfigsResponse).Resources {
		codes["AlterConfigs"] = append(codes["AlterConfigs"], r.ErrorCode)
	}
	for _, r := range w.request(&kmsg.IncrementalAlterConfigsRequest{Version: 1, Resources: []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: resource, ResourceName: name}, {ResourceType: resource, ResourceName: name}}}).(*kmsg.IncrementalAlterConfigsResponse).Resources {
		codes["IncrementalAlterConfigs"] = append(codes["IncrementalAlterConfigs"], r.ErrorCode)
	}
	for _, key := range []string{"CreateTopics", "CreatePartitions", "DeleteTopics", "AlterConfigs", "IncrementalAlterConfigs"} {
		if got := codes[key]; len(got) != 1 || got[0] != kerr.InvalidRequest.Code {
			t.Errorf("%s: %v", key, got)
		}
	}
	if topic := w.c.Image().Topic(name); topic == nil || len(topic.Partitions) != 2 {
		t.Errorf("the topic is %+v", topic)
	}
}

func TestOfACommitThatNamesAPartitionTwiceTheLastCounts(t *testing.T) {
	w := newWorld(t)
	commit := &kmsg.OffsetCommitRequest{Version: 8, Group: "g", Generation: -1, Topics: []kmsg.OffsetCommitRequestTopic{
		{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 5}, {Partition: 1, Offset: 9}, {Offset: 6}}},
		{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 7}}},
	}}
	w.request(commit)
	got := w.request(&kmsg.OffsetFetchRequest{Version: 8, Groups: []kmsg.OffsetFetchRequestGroup{{Group: "g"}}}).(*kmsg.OffsetFetchResponse).Groups[0].Topics
	assert.True(t, len(got) == 1 && len(got[0].Partitions) == 2 && got[0].Partitions[0].Offset == 7 && got[0].Partitions[1].Offset == 9, "committed %+v", got)
}

func TestOneRequestCreatesNoMorePartitionsThanKafkaAllows(t *testing.T) {
	w := newWorld(t)
	req := &kmsg.CreateTopicsRequest{Version: 7, ValidateOnly: true}
	for i := range 3 {
		req.Topics = append(req.Topics, kmsg.CreateTopicsRequestTopic{Topic: "n" + strconv.Itoa(i), NumPartitions: 5000, ReplicationFactor: 1})
	}
	for _, r := range w.request(req).(*kmsg.CreateTopicsResponse).Topics {
		assert.Equal(t, r.ErrorCode, kerr.PolicyViolation.Code, "%s: error", r.Topic)
	}
	req.Topics = req.Topics[:2]
	for _, r := range w.request(req).(*kmsg.CreateTopicsResponse).Topics {
		assert.Equal(t, r.ErrorCode, 0, "%s: error", r.Topic)
	}
}

func TestAFilterOfGroupsIsHeldAgainstWhatCanMatch(t *testing.T) {
	w := newWorld(t)
	w.request(&kmsg.OffsetCommitRequest{Version: 8, Group: "g", Generation: -1, Topics: []kmsg.OffsetCommitRequestTopic{{Topic: "t", Partitions: make([]kmsg.OffsetCommitRequestTopicPartition, 1)}}})
	for _, tt := range []struct {
		states, types []string
		want          int
	}{
		{nil, nil, 1}, {[]string{" empty ", "EMPTY", "x"}, []string{"Classic", "y"}, 1}, {[]string{"x", "y"}, nil, 0}, {nil, []string{"x"}, 0}, {[]string{"Stable"}, nil, 0},
	} {
		got := w.request(&kmsg.ListGroupsRequest{Version: 5, StatesFilter: tt.states, TypesFilter: tt.types}).(*kmsg.ListGroupsResponse).Groups
		assert.Equal(t, len(got), tt.want, "states %q, types %q: groups", tt.states, tt.types)
	}
}

func TestACommitForAPartitionThatDoesNotExistIsRefusedForItself(t *testing.T) {
	w := newWorld(t)
	req := &kmsg.OffsetCommitRequest{Version: 8, Group: "g", Generation: -1, Topics: []kmsg.OffsetCommitRequestTopic{
		{Topic: "t", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: -1}, {Partition: 1}, {Partition: 2}}},
	}}
	got := w.request(req).(*kmsg.OffsetCommitResponse).Topics[0].Partitions
	missing := kerr.UnknownTopicOrPartition.Code
	assert.True(t, len(got) == 3 && got[0].ErrorCode == missing && got[1].ErrorCode == 0 && got[2].ErrorCode == missing, "%+v", got)
}
