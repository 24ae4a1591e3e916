package handler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/audit"
	"muster/internal/auth"
	"muster/internal/handler"
	"muster/internal/metadata"
)

// audited has a world remember what the audit is told.
func audited(t *testing.T) (*world, func() []audit.Entry) {
	w := newWorld(t)
	var got []audit.Entry
	w.opts.Audit = func(e audit.Entry) { got = append(got, e) }
	w.h = handler.New(w.opts)
	return w, func() []audit.Entry {
		defer func() { got = nil }()
		return got
	}
}

// summary is an entry in the form kind type name (detail), …
func summary(entries []audit.Entry) string {
	var out []string
	for _, e := range entries {
		line := string(e.Kind)
		for _, r := range e.Resources {
			line += fmt.Sprintf(" %s %s (%s)", r.Type, r.Name, r.Detail)
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

func topicToCreate(name string, partitions int32) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 1
	return t
}

func creates(validate bool, topics ...kmsg.CreateTopicsRequestTopic) kmsg.Request {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.ValidateOnly, req.Topics = 7, validate, topics
	return req
}

func grows(validate bool, name string, count int32) kmsg.Request {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.Version, req.ValidateOnly = 3, validate
	req.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: name, Count: count}}
	return req
}

func alters(validate bool, kind kmsg.ConfigResourceType, name string, op kmsg.IncrementalAlterConfigOp, setting, value string) kmsg.Request {
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Version, req.ValidateOnly = 1, validate
	req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{
		ResourceType: kind, ResourceName: name,
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: setting, Op: op, Value: &value}},
	}}
	return req
}

func replaces(validate bool, name, setting, value string) kmsg.Request {
	req := kmsg.NewPtrAlterConfigsRequest()
	req.Version, req.ValidateOnly = 2, validate
	req.Resources = []kmsg.AlterConfigsRequestResource{{
		ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: name,
		Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: setting, Value: &value}},
	}}
	return req
}

func commits(version int16, member string, generation int32, topics ...kmsg.OffsetCommitRequestTopic) kmsg.Request {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.MemberID, req.Generation, req.Topics = version, "g", member, generation, topics
	return req
}

func committed(name string, id [16]byte, partition int32, offset int64) kmsg.OffsetCommitRequestTopic {
	return kmsg.OffsetCommitRequestTopic{Topic: name, TopicID: id, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: partition, Offset: offset}}}
}

func forgets(group string, topics ...string) kmsg.Request {
	req := kmsg.NewPtrOffsetDeleteRequest()
	req.Group = group
	for _, name := range topics {
		req.Topics = append(req.Topics, kmsg.OffsetDeleteRequestTopic{Topic: name, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}}})
	}
	return req
}

func deletes(names ...string) kmsg.Request {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.Version = 6
	for _, name := range names {
		req.Topics = append(req.Topics, kmsg.DeleteTopicsRequestTopic{Topic: &name})
	}
	return req
}

func deletesGroups(names ...string) kmsg.Request {
	req := kmsg.NewPtrDeleteGroupsRequest()
	req.Version, req.Groups = 2, names
	return req
}

func deletesRecords(topics ...string) kmsg.Request {
	req := kmsg.NewPtrDeleteRecordsRequest()
	req.Version = 2
	for _, name := range topics {
		req.Topics = append(req.Topics, kmsg.DeleteRecordsRequestTopic{Topic: name, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: 1, Offset: -1}}})
	}
	return req
}

func TestTheAuditIsToldWhatWasChangedAndNothingElse(t *testing.T) {
	w, got := audited(t)
	id := w.c.Image().Topic("t").ID
	topic, broker, group := kmsg.ConfigResourceTypeTopic, kmsg.ConfigResourceTypeBroker, kmsg.ConfigResourceTypeGroupConfig
	set, unset := kmsg.IncrementalAlterConfigOpSet, kmsg.IncrementalAlterConfigOpDelete
	for _, c := range []struct {
		req  kmsg.Request
		want string
	}{
		{creates(true, topicToCreate("a", 3)), ""},
		{creates(false, topicToCreate("a", 3), topicToCreate("t", 1), topicToCreate("b", 1)), "topic-created topic a (3 partitions) topic b (1 partition)"},
		{creates(false, topicToCreate("a", 3)), ""},
		{grows(true, "a", 4), ""},
		{grows(false, "a", 4), "partitions-added topic a (4 partitions)"},
		{moves("a", 1, 1), "partitions-reassigned topic a (partition 1 to broker 1)"},
		{moves("a", 1, 9), ""},
		{grows(false, "a", 4), ""},
		{alters(true, topic, "a", set, "retention.ms", "1000"), ""},
		{alters(false, topic, "a", set, "retention.ms", "1000"), "settings-changed topic a (retention.ms=1000)"},
		{alters(false, topic, "a", unset, "retention.ms", ""), "settings-changed topic a (retention.ms as by default)"},
		{alters(false, topic, "a", set, "retention.ms", "x"), ""},
		{alters(false, group, "g", set, "consumer.session.timeout.ms", "50000"), "settings-changed group g (consumer.session.timeout.ms=50000)"},
		{alters(false, broker, "", set, "log.retention.ms", "12345"), "settings-changed cluster  (log.retention.ms)"},
		{replaces(true, "a", "segment.bytes", "1048576"), ""},
		{replaces(false, "a", "segment.bytes", "1048576"), "settings-changed topic a (all others as by default; segment.bytes=1048576)"},
		{commits(9, "", -1, committed("t", id, 0, 7), committed("none", id, 0, 7)), "offsets-set group g (t-0=7)"},
		{commits(10, "", -1, committed("", id, 1, 8), committed("", [16]byte{1}, 1, 8)), "offsets-set group g (t-1=8)"},
		{commits(9, "", -1, committed("none", id, 0, 7)), ""},
		{commits(9, "m", 1, committed("t", id, 0, 7)), ""},
		{forgets("g", "t"), "offsets-deleted group g (t-0)"},
		{forgets("nobody", "t"), ""},
		{deletesRecords("t", metadata.OffsetsTopic), "records-deleted topic t (partition 1 before 0)"},
		{deletesGroups("g", "nobody"), "group-deleted group g ()"},
		{deletes("a", "none", metadata.OffsetsTopic), "topic-deleted topic a ()"},
	} {
		w.request(c.req)
		if got := summary(got()); got != c.want {
			t.Errorf("%s: the audit is told %q, want %q\n%+v", kmsg.NameForKey(c.req.Key()), got, c.want, c.req)
		}
	}
}

func TestTheAuditIsToldWhoDidItAndHow(t *testing.T) {
	w, got := audited(t)
	w.request(deletes("t"))
	entries := got()
	assert.MustEqual(t, len(entries), 1, "entries")
	e := entries[0]
	if e.Principal != string(auth.Anonymous) || e.Host != "127.0.0.1" || e.ClientID != "test" || e.Via != audit.ViaKafka || e.Request != "DeleteTopics" || e.Broker != 1 || e.Time.IsZero() {
		t.Errorf("the entry is %+v", e)
	}
}

func TestWhatTheBrokerDoesItselfIsNotAudited(t *testing.T) {
	w, got := audited(t)
	if _, err := w.h.Do(t.Context(), deletes("t")); err != nil {
		t.Fatal(err)
	}
	if w.c.Image().Topic("t") != nil || len(got()) != 0 {
		t.Errorf("topic t is there: %v, or the audit was told", w.c.Image().Topic("t") != nil)
	}
}

// TestEveryKeyThatChangesSomethingIsAudited goes by the rights that keys need: who may
// create, delete or alter changes something. The others say why they do not.
func TestEveryKeyThatChangesSomethingIsAudited(t *testing.T) {
	not := map[int16]string{
		3:  "told where topics are created on demand",
		43: "the leader is always the only replica",
		34: "a broker has one log directory", 57: "levels are fixed", 88: "not served", 92: "not served",
		24: "brokers only",
	}
	changing := []auth.Operation{auth.Create, auth.Delete, auth.Alter, auth.AlterConfigs}
	for _, key := range auth.NeedsKeys() {
		needs, _ := auth.Needs(key)
		changes := slices.ContainsFunc(needs, func(n auth.Need) bool {
			return slices.ContainsFunc(n.AnyOf, func(r auth.Right) bool { return slices.Contains(changing, r.Operation) })
		})
		if _, excused := not[key]; changes && !excused && !handler.Audits(key) {
			t.Errorf("%s (%d) changes something, and the audit is not told", kmsg.NameForKey(key), key)
		}
	}
}

func TestMarkersOfBrokersAreNotAudited(t *testing.T) {
	w, got := audited(t)
	if codes := codesOf(w.byBroker(markers(7, 0, "t", 0))); !slices.Equal(codes, []int16{0}) || len(got()) != 0 {
		t.Errorf("%v, or the audit was told", codes)
	}
	if codes := w.marked(markers(7, 1, "t", 0)); !slices.Equal(codes, []int16{0}) || len(got()) != 1 {
		t.Errorf("%v, or the audit was not told of an operator's", codes)
	}
}

func TestWhatMembersCommitIsNotAudited(t *testing.T) {
	w, got := audited(t)
	join := kmsg.NewPtrJoinGroupRequest()
	join.Version, join.Group, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis, join.ProtocolType = 1, "g", 10000, 10000, "consumer"
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: []byte{}}}
	joined := w.request(join).(*kmsg.JoinGroupResponse)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Version, sync.Group, sync.MemberID, sync.Generation = 1, "g", joined.MemberID, joined.Generation
	w.request(sync)
	resp := w.request(commits(8, joined.MemberID, joined.Generation, committed("t", [16]byte{}, 0, 7))).(*kmsg.OffsetCommitResponse)
	assert.MustEqual(t, resp.Topics[0].Partitions[0].ErrorCode, 0, "the member's commit: error")
	if entries := got(); len(entries) != 0 {
		t.Errorf("the audit is told %s", summary(entries))
	}
}

func TestTopicsThatAreCreatedOnDemandAreAudited(t *testing.T) {
	w, got := audited(t)
	w.metadataOf("wanted", "t", "a/b")
	w.metadataOf("wanted")
	assert.Equal(t, summary(got()), "topic-created topic wanted (on demand)", "the audit is told")
}
