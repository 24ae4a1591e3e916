package requests

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/metadata"
)

func TestKeysAreThoseOfKafka(t *testing.T) {
	k := Key{Group: "g:1", Topic: metadata.TopicID{1, 2, 0xfb, 15: 9}, Partition: 7}
	assert.Equal(t, k.String(), "g:1:AQL7AAAAAAAAAAAAAAAACQ:7", "key")
	got, ok := ParseKey(k.String())
	assert.True(t, ok && got == k, "%v", got)
	for _, bad := range []string{"", "g", "g:7", ":AQL7AAAAAAAAAAAAAAAACQ:7", "g:AQL7AAAAAAAAAAAAAAAACQ:", "g:AQL7AAAAAAAAAAAAAAAACQ:-1", "g:AQL7AAAAAAAAAAAAAAAACQ:x", "g:AQL7:0", "g::0", "g:AQL7AAAAAAAAAAAAAAAACQAA:0"} {
		_, ok := ParseKey(bad)
		assert.True(t, !ok, "%q is a key", bad)
	}
	// "a" is 97, as Java has it.
	assert.Equal(t, Key{Group: "a", Topic: metadata.TopicID{}}.Shard(50), int32(javaHash("a:AAAAAAAAAAAAAAAAAAAAAA:0")%50), "shard")
}

func javaHash(s string) int64 {
	var h int32
	for _, c := range s {
		h = 31*h + c
	}
	return int64(max(h, -h))
}

// asked are requests of all kinds, about partitions 0 to 2 of one topic and 0 of another.
func asked() []kmsg.Request {
	one, other := [16]byte{1}, [16]byte{2}
	return []kmsg.Request{
		&kmsg.InitializeShareGroupStateRequest{GroupID: "g", Topics: []kmsg.InitializeShareGroupStateRequestTopic{
			{TopicID: one, Partitions: []kmsg.InitializeShareGroupStateRequestTopicPartition{{StartOffset: 1}, {Partition: 1, StartOffset: 2}, {Partition: 2, StartOffset: 3}}},
			{TopicID: other, Partitions: []kmsg.InitializeShareGroupStateRequestTopicPartition{{StartOffset: 4}}},
		}},
		&kmsg.ReadShareGroupStateRequest{GroupID: "g", Topics: []kmsg.ReadShareGroupStateRequestTopic{
			{TopicID: one, Partitions: []kmsg.ReadShareGroupStateRequestTopicPartition{{LeaderEpoch: 1}, {Partition: 1, LeaderEpoch: 2}, {Partition: 2, LeaderEpoch: 3}}},
			{TopicID: other, Partitions: []kmsg.ReadShareGroupStateRequestTopicPartition{{LeaderEpoch: 4}}},
		}},
		&kmsg.WriteShareGroupStateRequest{Version: 1, GroupID: "g", Topics: []kmsg.WriteShareGroupStateRequestTopic{
			{TopicID: one, Partitions: []kmsg.WriteShareGroupStateRequestTopicPartition{{LeaderEpoch: 1}, {Partition: 1, LeaderEpoch: 2}, {Partition: 2, LeaderEpoch: 3}}},
			{TopicID: other, Partitions: []kmsg.WriteShareGroupStateRequestTopicPartition{{LeaderEpoch: 4}}},
		}},
		&kmsg.DeleteShareGroupStateRequest{GroupID: "g", Topics: []kmsg.DeleteShareGroupStateRequestTopic{
			{TopicID: one, Partitions: []kmsg.DeleteShareGroupStateRequestTopicPartition{{}, {Partition: 1}, {Partition: 2}}},
			{TopicID: other, Partitions: []kmsg.DeleteShareGroupStateRequestTopicPartition{{}}},
		}},
		&kmsg.ReadShareGroupStateSummaryRequest{Version: 1, GroupID: "g", Topics: []kmsg.ReadShareGroupStateSummaryRequestTopic{
			{TopicID: one, Partitions: []kmsg.ReadShareGroupStateSummaryRequestTopicPartition{{LeaderEpoch: 1}, {Partition: 1, LeaderEpoch: 2}, {Partition: 2, LeaderEpoch: 3}}},
			{TopicID: other, Partitions: []kmsg.ReadShareGroupStateSummaryRequestTopicPartition{{LeaderEpoch: 4}}},
		}},
	}
}

// show is the share partitions of an answer with their errors, or those of a request.
func show(resp kmsg.Response) string {
	var out []string
	each(resp, func(topic metadata.TopicID, partition int32, code int16) {
		out = append(out, fmt.Sprintf("%d-%d:%d", topic[0], partition, code))
	})
	return strings.Join(out, " ")
}

// named shows which share partitions a request is about.
func named(req kmsg.Request) string {
	var out []string
	Split(req, func(k Key) int32 {
		out = append(out, fmt.Sprintf("%s/%d-%d", k.Group, k.Topic[0], k.Partition))
		return 0
	})
	return strings.Join(out, " ")
}

func TestRequestsAreSplitAndTheirAnswersPutTogether(t *testing.T) {
	for _, req := range asked() {
		name, before := kmsg.NameForKey(req.Key()), req.AppendTo(nil)
		assert.Equal(t, named(req), "g/1-0 g/1-1 g/1-2 g/2-0", name)
		whole := Split(req, func(Key) int32 { return 3 })
		assert.True(t, len(whole) == 1 && whole[3] == req, "%s: what goes to one is split: %v", name, whole)

		parts := Split(req, func(k Key) int32 { return k.Partition % 2 })
		assert.True(t, len(parts) == 2 && named(parts[0]) == "g/1-0 g/1-2 g/2-0" && named(parts[1]) == "g/1-1", "%s: %s and %s", name, named(parts[0]), named(parts[1]))
		assert.True(t, slices.Equal(req.AppendTo(nil), before), "%s: the request is changed", name)
		assert.Equal(t, parts[1].GetVersion(), req.GetVersion(), "%s: version of a part", name)

		answers := []kmsg.Response{Failed(parts[1], kerr.NotCoordinator), Failed(parts[0], nil)}
		assert.Equal(t, show(Merge(req, answers)), "1-0:0 1-1:16 1-2:0 2-0:0", name)
		assert.Equal(t, show(Merge(req, answers[:1])), "1-1:16", name)
		assert.Equal(t, show(Merge(req, append(answers[1:], Failed(kmsg.NewPtrHeartbeatRequest(), nil)))), "1-0:0 1-1:-1 1-2:0 2-0:0", "%s: what no part has answered", name)
		assert.Equal(t, Merge(req, answers).GetVersion(), req.GetVersion(), "%s: version of the answer", name)
	}
	empty := kmsg.NewPtrReadShareGroupStateRequest()
	assert.Equal(t, len(Split(empty, func(Key) int32 { return 0 })), 0, "parts of a request about nothing")
}

// The content goes with the share partition, in a part and in the answer.
func TestPartsKeepWhatIsSaidOfEachSharePartition(t *testing.T) {
	init := Split(asked()[0], func(k Key) int32 { return k.Partition })[1].(*kmsg.InitializeShareGroupStateRequest)
	assert.True(t, len(init.Topics) == 1 && init.Topics[0].Partitions[0].StartOffset == 2, "%+v", init)
	req := asked()[1]
	parts := Split(req, func(k Key) int32 { return k.Partition })
	var answers []kmsg.Response
	for i := range int32(3) {
		r := Failed(parts[i], nil).(*kmsg.ReadShareGroupStateResponse)
		for j := range r.Topics {
			r.Topics[j].Partitions[0].StartOffset = int64(10*i) + int64(r.Topics[j].TopicID[0])
		}
		answers = append(answers, r)
	}
	got := Merge(req, answers).(*kmsg.ReadShareGroupStateResponse).Topics
	assert.True(t, got[0].Partitions[0].StartOffset == 1 && got[0].Partitions[1].StartOffset == 11 && got[0].Partitions[2].StartOffset == 21 && got[1].Partitions[0].StartOffset == 2, "%+v", got)
}

func TestOnlyWhatACoordinatorMayAnswerLaterIsAskedAgain(t *testing.T) {
	for _, req := range asked() {
		name := kmsg.NameForKey(req.Key())
		parts := Split(req, func(k Key) int32 { return int32(k.Topic[0])*10 + k.Partition })
		for err, again := range map[*kerr.Error]bool{
			kerr.NotCoordinator: true, kerr.CoordinatorLoadInProgress: true, kerr.CoordinatorNotAvailable: true,
			kerr.FencedStateEpoch: false, kerr.FencedLeaderEpoch: false, kerr.InvalidRequest: false, kerr.UnknownTopicOrPartition: false,
		} {
			resp := Merge(req, []kmsg.Response{Failed(parts[10], nil), Failed(parts[11], err), Failed(parts[12], nil), Failed(parts[20], nil)})
			got := Again(req, resp)
			switch {
			case again && (got == nil || named(got) != "g/1-1"):
				t.Errorf("%s after %v: asked again is %v", name, err, got)
			case !again && got != nil:
				t.Errorf("%s after %v: asked again is %s", name, err, named(got))
			}
		}
		assert.True(t, Again(req, Failed(req, kerr.NotCoordinator)) == req, "%s: all is to be asked again", name)
	}
}

func TestRequestsAreSentInTheirNewestVersion(t *testing.T) {
	for _, req := range asked() {
		v, ok := Newest(req.Key())
		assert.True(t, ok && v == req.MaxVersion(), "%s: %d, %v", kmsg.NameForKey(req.Key()), v, ok)
	}
	_, ok := Newest(kmsg.Heartbeat.Int16())
	assert.True(t, !ok, "a heartbeat is about share partitions")
}
