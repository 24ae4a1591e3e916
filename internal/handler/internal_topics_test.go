package handler_test

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/metadata"
)

func (w *world) metadataOf(names ...string) []kmsg.MetadataResponseTopic {
	w.t.Helper()
	req := kmsg.NewPtrMetadataRequest()
	req.Version, req.AllowAutoTopicCreation = 12, true
	for _, name := range names {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		req.Topics = append(req.Topics, topic)
	}
	return w.request(req).(*kmsg.MetadataResponse).Topics
}

func TestAskingForAnInternalTopicCreatesItAsItMustBe(t *testing.T) {
	for name, want := range map[string]struct {
		kind       int8
		partitions int
	}{metadata.OffsetsTopic: {0, 3}, metadata.TransactionsTopic: {1, 2}} {
		byMetadata, byCoordinator := emptyWorld(t), emptyWorld(t)
		if got := byMetadata.metadataOf(name)[0]; got.ErrorCode != 0 || len(got.Partitions) != want.partitions || !got.IsInternal {
			t.Errorf("%s: error %d, %d partitions, internal %v", name, got.ErrorCode, len(got.Partitions), got.IsInternal)
		}
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.Version, find.CoordinatorKey, find.CoordinatorType = 3, "g", want.kind
		byCoordinator.request(find)
		for by, w := range map[string]*world{"Metadata": byMetadata, "FindCoordinator": byCoordinator} {
			topic := w.c.Image().Topic(name)
			assert.MustTrue(t, topic != nil, "%s did not create %s", by, name)
			if c := topic.Config; !c.Compact || c.Delete || c.MaxMessageBytes != 64<<20 || c.SegmentBytes != 100<<20 || len(topic.Partitions) != want.partitions {
				t.Errorf("%s created %s with %d partitions and %+v", by, name, len(topic.Partitions), c)
			}
		}
	}
}

func TestNamesThatAreMustersOwnAreNotCreatedByAskingForThem(t *testing.T) {
	w := emptyWorld(t)
	for _, name := range []string{"__cluster_metadata", "__group_journal", "__transaction_journal", "__share_group_state", "__group_history", "__audit_log"} {
		assert.Equal(t, w.metadataOf(name)[0].ErrorCode, kerr.UnknownTopicOrPartition.Code, "%s: error", name)
		req := kmsg.NewPtrCreateTopicsRequest()
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, 1, 1
		req.Version, req.Topics = 7, append(req.Topics, topic)
		got := w.request(req).(*kmsg.CreateTopicsResponse).Topics[0]
		wantRefused(t, "CreateTopics of "+name, got.ErrorCode, got.ErrorMessage, kerr.InvalidTopicException)
		assert.True(t, w.c.Image().Topic(name) == nil, "%s exists", name)
	}
}

// wantRefused wants an error, and a message that says why.
func wantRefused(t *testing.T, what string, code int16, message *string, want *kerr.Error) {
	t.Helper()
	if code != want.Code || message == nil || !strings.Contains(*message, "internal") {
		t.Errorf("%s: error %d, message %v, want %s and a reason", what, code, message, want.Message)
	}
}

func TestInternalTopicsCannotBeDamagedByClients(t *testing.T) {
	w := newWorld(t)
	w.create(metadata.NewTopic{Name: metadata.JournalTopic})
	w.create(metadata.NewTopic{Name: metadata.TransactionJournalTopic})
	for _, name := range []string{metadata.OffsetsTopic, metadata.JournalTopic, metadata.TransactionsTopic, metadata.TransactionJournalTopic} {
		before := w.c.Image().Topic(name)

		records := kmsg.NewPtrDeleteRecordsRequest()
		records.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: name, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Offset: -1}}}}
		assert.Equal(t, w.request(records).(*kmsg.DeleteRecordsResponse).Topics[0].Partitions[0].ErrorCode, kerr.InvalidTopicException.Code, "DeleteRecords of %s", name)

		grow := kmsg.NewPtrCreatePartitionsRequest()
		grow.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: name, Count: 9}}
		grown := w.request(grow).(*kmsg.CreatePartitionsResponse).Topics[0]
		wantRefused(t, "CreatePartitions of "+name, grown.ErrorCode, grown.ErrorMessage, kerr.InvalidTopicException)

		del := kmsg.NewPtrDeleteTopicsRequest()
		del.Version = 6
		del.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &name}}
		deleted := w.request(del).(*kmsg.DeleteTopicsResponse).Topics[0]
		wantRefused(t, "DeleteTopics of "+name, deleted.ErrorCode, deleted.ErrorMessage, kerr.InvalidTopicException)

		produce := w.produceRequest(9, 0)
		produce.Topics[0].Topic = name
		produced := w.request(produce).(*kmsg.ProduceResponse).Topics[0].Partitions[0]
		wantRefused(t, "Produce to "+name, produced.ErrorCode, produced.ErrorMessage, kerr.InvalidTopicException)

		assert.Equal(t, w.c.Image().Topic(name), before, "%s changed", name)
	}
}

func TestSettingsThatAnInternalTopicNeedsCannotBeAltered(t *testing.T) {
	w := newWorld(t)
	w.create(metadata.NewTopic{Name: metadata.JournalTopic})
	alter := func(topic, name, value string) kmsg.IncrementalAlterConfigsResponseResource {
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		res := kmsg.NewIncrementalAlterConfigsRequestResource()
		res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, topic
		res.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: name, Value: &value}}
		req.Resources = append(req.Resources, res)
		return w.request(req).(*kmsg.IncrementalAlterConfigsResponse).Resources[0]
	}
	for _, set := range [][2]string{
		{"cleanup.policy", "delete"}, {"cleanup.policy", "compact,delete"}, {"retention.ms", "1000"}, {"retention.bytes", "1000"}, {"max.message.bytes", "100"},
		{"muster.redis.layout", "stream"}, {"message.timestamp.type", "LogAppendTime"}, {"message.timestamp.after.max.ms", "0"}, {"message.timestamp.before.max.ms", "0"},
	} {
		got := alter(metadata.OffsetsTopic, set[0], set[1])
		wantRefused(t, set[0]+"="+set[1], got.ErrorCode, got.ErrorMessage, kerr.InvalidConfig)
	}
	got := alter(metadata.JournalTopic, "cleanup.policy", "compact")
	wantRefused(t, "the journal's cleanup.policy", got.ErrorCode, got.ErrorMessage, kerr.InvalidConfig)
	for _, set := range [][3]string{
		{metadata.OffsetsTopic, "cleanup.policy", "compact"}, // As it is.
		{metadata.OffsetsTopic, "segment.bytes", "1048576"},
		{metadata.JournalTopic, "retention.ms", "1000"},
	} {
		if got := alter(set[0], set[1], set[2]); got.ErrorCode != 0 {
			t.Errorf("%v: %v", set, *got.ErrorMessage)
		}
	}
}

func TestReplacingTheSettingsOfAnInternalTopicKeepsWhatItNeeds(t *testing.T) {
	w := newWorld(t)
	value := "1048576"
	req := kmsg.NewPtrAlterConfigsRequest()
	res := kmsg.NewAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeTopic, metadata.OffsetsTopic
	res.Configs = []kmsg.AlterConfigsRequestResourceConfig{{Name: "segment.bytes", Value: &value}}
	req.Resources = append(req.Resources, res)
	if got := w.request(req).(*kmsg.AlterConfigsResponse).Resources[0]; got.ErrorCode != 0 {
		t.Fatal(*got.ErrorMessage)
	}
	if c := w.c.Image().Topic(metadata.OffsetsTopic).Config; !c.Compact || c.Delete || c.SegmentBytes != 1<<20 || c.MaxMessageBytes != 64<<20 {
		t.Errorf("settings %+v", c)
	}
}

// An application must not have the broker read or create such topics for it.
func TestATopologyNamesNoInternalTopicAndNoInvalidOne(t *testing.T) {
	w := newWorld(t)
	type topology = kmsg.StreamsGroupHeartbeatRequestTopologySubtopology
	for _, bad := range []string{metadata.OffsetsTopic, metadata.ClusterMetadataTopic, "", "a/b", "..", strings.Repeat("x", 250)} {
		info := []kmsg.TopicInfo{{Topic: bad}}
		for _, s := range []topology{{SourceTopics: []string{bad}}, {RepartitionSinkTopics: []string{bad}}, {StateChangelogTopics: info}, {RepartitionSourceTopics: info}} {
			got := w.request(streamsJoin(s)).(*kmsg.StreamsGroupHeartbeatResponse)
			assert.Equal(t, got.ErrorCode, kerr.StreamsInvalidTopology.Code, "%q in %+v", bad, s)
		}
	}
	got := w.request(streamsJoin(topology{SourceTopics: []string{"t"}})).(*kmsg.StreamsGroupHeartbeatResponse)
	assert.Equal(t, got.ErrorCode, 0, "a good one")
}
