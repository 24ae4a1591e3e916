package interop

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// newTopic is one topic of a CreateTopics request, with settings given as key,
// value, key, value.
func newTopic(name string, partitions int32, replicas int16, settings ...string) kmsg.CreateTopicsRequestTopic {
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, replicas
	for i := 0; i+1 < len(settings); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = settings[i], &settings[i+1]
		t.Configs = append(t.Configs, c)
	}
	return t
}

func create(w *wire, validateOnly bool, topics ...kmsg.CreateTopicsRequestTopic) []kmsg.CreateTopicsResponseTopic {
	w.t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis, req.ValidateOnly, req.Topics = 7, 10_000, validateOnly, topics
	return ask[*kmsg.CreateTopicsResponse](w, req).Topics
}

func TestCreateTopicsRefusesBadTopics(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "exists", 1)
	w := dial(t, addr)
	tests := []struct {
		name  string
		topic kmsg.CreateTopicsRequestTopic
		want  error
		says  string
	}{
		{"a slash in the name", newTopic("bad/name", 1, 1), kerr.InvalidTopicException, "/"},
		{"no name", newTopic("", 1, 1), kerr.InvalidTopicException, "empty"},
		{"the name ..", newTopic("..", 1, 1), kerr.InvalidTopicException, ".."},
		{"a long name", newTopic(strings.Repeat("x", 250), 1, 1), kerr.InvalidTopicException, "249"},
		{"a topic that exists", newTopic("exists", 1, 1), kerr.TopicAlreadyExists, "exists"},
		{"no partitions", newTopic("none", 0, 1), kerr.InvalidPartitions, "partitions"},
		{"-2 partitions", newTopic("negative", -2, 1), kerr.InvalidPartitions, "partitions"},
		{"a million partitions", newTopic("many", 1_000_000, 1), kerr.InvalidPartitions, "partitions"},
		{"no replicas", newTopic("unreplicated", 1, 0), kerr.InvalidReplicationFactor, "replication"},
		{"two replicas", newTopic("two", 1, 2), kerr.InvalidReplicationFactor, "replication"},
		{"-2 replicas", newTopic("minus", 1, -2), kerr.InvalidReplicationFactor, "replication"},
		{"an unknown setting", newTopic("misspelt", 1, 1, "retention.mss", "1"), kerr.InvalidConfig, "retention.ms"},
		{"a bad value", newTopic("value", 1, 1, "retention.ms", "soon"), kerr.InvalidConfig, "retention.ms"},
		{"a value out of range", newTopic("range", 1, 1, "min.cleanable.dirty.ratio", "7"), kerr.InvalidConfig, "min.cleanable.dirty.ratio"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := create(w, false, tt.topic)[0]
			wantCode(t, tt.name, got.ErrorCode, tt.want)
			if !strings.Contains(text(got.ErrorMessage), tt.says) {
				t.Errorf("the message %q does not say %q", text(got.ErrorMessage), tt.says)
			}
		})
	}
	names, err := kadm.NewClient(connect(t, addr)).ListTopics(t.Context())
	if err != nil || len(names) != 1 {
		t.Errorf("there are the topics %v (%v), want only the one that was created well", names.Names(), err)
	}
}

func TestCreateTopicsCreatesOnlyWhatItShould(t *testing.T) {
	addr := startInProcess(t, t.TempDir(), map[string]string{"num.partitions": "4"}).Addr()
	w := dial(t, addr)
	tried := create(w, true, newTopic("tried", 3, 1))[0]
	wantCode(t, "validate only", tried.ErrorCode, nil)
	topics := create(w, false, newTopic("defaults", -1, -1, "retention.ms", "1234"), newTopic("bad/name", 1, 1), newTopic("twin", 1, 1), newTopic("twin", 2, 1))
	wantCode(t, "defaults", topics[0].ErrorCode, nil)
	wantCode(t, "a bad one among good ones", topics[1].ErrorCode, kerr.InvalidTopicException)
	for _, topic := range topics[2:] {
		wantCode(t, "named twice", topic.ErrorCode, kerr.InvalidRequest)
	}
	if topics[0].NumPartitions != 4 || topics[0].ReplicationFactor != 1 || topics[0].TopicID == [16]byte{} {
		t.Errorf("the answer has %d partitions, replication factor %d, topic id %x", topics[0].NumPartitions, topics[0].ReplicationFactor, topics[0].TopicID)
	}
	listed, err := kadm.NewClient(connect(t, addr)).ListTopics(t.Context())
	if err != nil || len(listed) != 1 || len(listed["defaults"].Partitions) != 4 {
		t.Errorf("topics %v (%v), want only defaults, with 4 partitions", listed.Names(), err)
	}
	if id := topicID(w, "defaults"); id != topics[0].TopicID {
		t.Errorf("topic id %x in Metadata, %x in CreateTopics", id, topics[0].TopicID)
	}
}

func TestTopicsGrowAndAreDeleted(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "growing", 2)
	cl := connect(t, addr)
	adm := kadm.NewClient(cl)
	w := dial(t, addr)
	mustProduce(w, "growing", 1, batch{values: []string{"before"}})
	for _, tt := range []struct {
		to   int
		want error
	}{{5, nil}, {5, kerr.InvalidPartitions}, {3, kerr.InvalidPartitions}} {
		resp, err := adm.UpdatePartitions(t.Context(), tt.to, "growing")
		if err != nil || resp["growing"].Err != tt.want {
			t.Errorf("to %d partitions: %v %v, want %v", tt.to, err, resp["growing"].Err, tt.want)
		}
	}
	wantValues(t, "after growing", readAll(w, "growing", 1), []string{"before"})
	mustProduce(w, "growing", 4, batch{values: []string{"new"}})

	before := topicID(w, "growing")
	if _, err := adm.DeleteTopic(t.Context(), "growing"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "produce to a deleted topic", produce(w, "growing", 0, batch{values: []string{"x"}}).ErrorCode, kerr.UnknownTopicOrPartition)
	if _, err := adm.DeleteTopic(t.Context(), "growing"); err != kerr.UnknownTopicOrPartition {
		t.Errorf("delete twice: %v", err)
	}
	createTopic(t, addr, "growing", 5)
	assert.True(t, topicID(w, "growing") != before, "a topic that was created again has its old id")
	if recs := readAll(w, "growing", 1); len(recs) != 0 {
		t.Errorf("a topic that was created again has %d old records", len(recs))
	}
}

// topicConfig returns a topic's settings and where they come from.
func topicConfig(t *testing.T, adm *kadm.Client, topic string) map[string]kadm.Config {
	t.Helper()
	resources, err := adm.DescribeTopicConfigs(t.Context(), topic)
	must(t, err)
	one, err := resources.On(topic, nil)
	assert.MustTrue(t, err == nil && one.Err == nil, "describe %s: %v %v", topic, err, one.Err)
	out := map[string]kadm.Config{}
	for _, c := range one.Configs {
		out[c.Key] = c
	}
	return out
}

func TestTopicSettingsCanBeAltered(t *testing.T) {
	data := t.TempDir()
	b := startInProcess(t, data, map[string]string{"log.retention.ms": "777"})
	createTopic(t, b.Addr(), "altered", 1, "max.message.bytes", "5000")
	adm := kadm.NewClient(connect(t, b.Addr()))
	alter := func(state bool, want error, changes ...kadm.AlterConfig) {
		t.Helper()
		do := adm.AlterTopicConfigs
		if state {
			do = adm.AlterTopicConfigsState
		}
		resp, err := do(t.Context(), changes, "altered")
		assert.MustTrue(t, err == nil && len(resp) == 1 && resp[0].Err == want, "alter: %v %+v, want %v", err, resp, want)
	}
	want := func(name, value string, source kmsg.ConfigSource) {
		t.Helper()
		c, ok := topicConfig(t, adm, "altered")[name]
		if !ok || text(c.Value) != value || c.Source != source {
			t.Errorf("%s is %q (%s), want %q (%s)", name, text(c.Value), c.Source, value, source)
		}
	}
	set := func(op kadm.IncrementalOp, name, value string) kadm.AlterConfig {
		return kadm.AlterConfig{Op: op, Name: name, Value: &value}
	}
	want("max.message.bytes", "5000", kmsg.ConfigSourceDynamicTopicConfig)
	want("retention.ms", "777", kmsg.ConfigSourceStaticBrokerConfig)
	want("cleanup.policy", "delete", kmsg.ConfigSourceDefaultConfig)

	alter(false, nil, set(kadm.SetConfig, "retention.ms", "1000"), set(kadm.AppendConfig, "cleanup.policy", "compact"))
	want("retention.ms", "1000", kmsg.ConfigSourceDynamicTopicConfig)
	want("cleanup.policy", "delete,compact", kmsg.ConfigSourceDynamicTopicConfig)
	want("max.message.bytes", "5000", kmsg.ConfigSourceDynamicTopicConfig)
	alter(false, nil, set(kadm.SubtractConfig, "cleanup.policy", "delete"), kadm.AlterConfig{Op: kadm.DeleteConfig, Name: "retention.ms"})
	want("cleanup.policy", "compact", kmsg.ConfigSourceDynamicTopicConfig)
	want("retention.ms", "777", kmsg.ConfigSourceStaticBrokerConfig)
	alter(false, kerr.InvalidConfig, set(kadm.SetConfig, "retention.ms", "never"))
	alter(false, kerr.InvalidConfig, set(kadm.SetConfig, "retention.mss", "1"))

	alter(true, nil, set(kadm.SetConfig, "segment.bytes", "20000"))
	want("segment.bytes", "20000", kmsg.ConfigSourceDynamicTopicConfig)
	want("cleanup.policy", "delete", kmsg.ConfigSourceDefaultConfig)
	want("max.message.bytes", "1048588", kmsg.ConfigSourceDefaultConfig)

	must(t, b.Close())
	b = startInProcess(t, data, nil)
	adm = kadm.NewClient(connect(t, b.Addr()))
	want("segment.bytes", "20000", kmsg.ConfigSourceDynamicTopicConfig)
}

func TestSettingsTakeEffectAtOnce(t *testing.T) {
	addr := onDisk(t)
	createTopic(t, addr, "shrinking", 1)
	adm := kadm.NewClient(connect(t, addr))
	w := dial(t, addr)
	big := batch{values: []string{strings.Repeat("x", 2000)}}
	mustProduce(w, "shrinking", 0, big)
	limit := "1000"
	if _, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "max.message.bytes", Value: &limit}}, "shrinking"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "above the topic's new limit", produce(w, "shrinking", 0, big).ErrorCode, kerr.MessageTooLarge)

	createTopic(t, addr, "by-the-broker", 1)
	mustProduce(w, "by-the-broker", 0, big)
	if resp, err := adm.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Name: "message.max.bytes", Value: &limit}}); err != nil || resp[0].Err != nil {
		t.Fatal(err, resp)
	}
	wantCode(t, "above the broker's new limit", produce(w, "by-the-broker", 0, big).ErrorCode, kerr.MessageTooLarge)
}

func TestSettingsOfWhatIsNotThereAreRefused(t *testing.T) {
	addr := onDisk(t)
	adm := kadm.NewClient(connect(t, addr))
	resources, err := adm.DescribeTopicConfigs(t.Context(), "nowhere")
	assert.True(t, err == nil && len(resources) == 1 && resources[0].Err == kerr.UnknownTopicOrPartition, "describe: %v %v", resources, err)
	value := "1000"
	altered, err := adm.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Name: "retention.ms", Value: &value}}, "nowhere")
	assert.True(t, err == nil && len(altered) == 1 && altered[0].Err == kerr.UnknownTopicOrPartition, "alter: %v %v", altered, err)
	altered, err = adm.AlterBrokerConfigs(t.Context(), []kadm.AlterConfig{{Name: "node.id", Value: &value}})
	assert.True(t, err == nil && len(altered) == 1 && altered[0].Err != nil, "altering node.id of a running broker: %v %v, want an error", altered, err)
}
