package cluster

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
	"muster/internal/store"
	"muster/internal/store/disk"
	"muster/internal/store/mem"
	"muster/internal/store/vfs"
)

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, s store.Store, crashed bool) *Controller {
	t.Helper()
	c, err := Open(t.Context(), Options{Store: s, Self: metadata.Broker{ID: 1}, Defaults: &config.Broker{}, Crashed: crashed, Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return c
}

func create(t *testing.T, c *Controller, req metadata.NewTopic) error {
	t.Helper()
	_, errs := c.CreateTopics(t.Context(), []metadata.NewTopic{req}, false)
	return errs[0]
}

func wantCode(t *testing.T, err error, code *kerr.Error) {
	t.Helper()
	assert.ErrorIs(t, err, code)
}

func TestReplayGivesTheSameImage(t *testing.T) {
	s := mem.New()
	c := open(t, s, false)
	for _, name := range []string{"a", "b", "gone"} {
		must(t, create(t, c, metadata.NewTopic{Name: name, Partitions: 3, Replication: 1, Set: map[string]string{"retention.ms": "1000"}}))
	}
	steps := []error{
		c.DeleteTopics(t.Context(), []string{"gone"})[0],
		c.GrowTopic(t.Context(), "a", 7, nil, false),
		c.AlterTopic(t.Context(), "b", []metadata.ConfigChange{{Name: "cleanup.policy", Op: metadata.ConfigAppend, Value: new("compact")}}, false, false),
		c.AlterBroker(t.Context(), []metadata.ConfigChange{{Name: "num.partitions", Value: new("9")}}, false, false),
	}
	must(t, errors.Join(steps...))
	live := c.Image()
	again := open(t, s, false).Image()
	if !reflect.DeepEqual(live, again) {
		t.Errorf("live %+v\nreplayed %+v", live, again)
	}
	if got := again.Topic("b").Set["cleanup.policy"]; got != "delete,compact" || !again.Topic("b").Config.Compact {
		t.Errorf("cleanup.policy is %q", got)
	}
	assert.True(t, len(again.Topic("a").Partitions) == 7 && again.Topic("gone") == nil && again.Config.Int("num.partitions") == 9, "image %+v", again)
}

func TestBadTopicsAreRefusedWithKafkasCodes(t *testing.T) {
	c := open(t, mem.New(), false)
	must(t, create(t, c, metadata.NewTopic{Name: "there", Partitions: 1, Replication: 1}))
	for _, x := range []struct {
		req  metadata.NewTopic
		code *kerr.Error
	}{
		{metadata.NewTopic{Name: "", Partitions: 1, Replication: 1}, kerr.InvalidTopicException},
		{metadata.NewTopic{Name: "a b", Partitions: 1, Replication: 1}, kerr.InvalidTopicException},
		{metadata.NewTopic{Name: "..", Partitions: 1, Replication: 1}, kerr.InvalidTopicException},
		{metadata.NewTopic{Name: "there", Partitions: 1, Replication: 1}, kerr.TopicAlreadyExists},
		{metadata.NewTopic{Name: "x", Partitions: 0, Replication: 1}, kerr.InvalidPartitions},
		{metadata.NewTopic{Name: "x", Partitions: -5, Replication: 1}, kerr.InvalidPartitions},
		{metadata.NewTopic{Name: "x", Partitions: 1, Replication: -2}, kerr.InvalidReplicationFactor},
		{metadata.NewTopic{Name: "x", Partitions: 1 << 30, Replication: 1}, kerr.InvalidPartitions},
		{metadata.NewTopic{Name: "x", Partitions: 1, Replication: 3}, kerr.InvalidReplicationFactor},
		{metadata.NewTopic{Name: "x", Partitions: 1, Replication: 0}, kerr.InvalidReplicationFactor},
		{metadata.NewTopic{Name: "x", Partitions: 1, Replication: 1, Set: map[string]string{"retention": "1"}}, kerr.InvalidConfig},
		{metadata.NewTopic{Name: "x", Partitions: 1, Replication: 1, Set: map[string]string{"retention.ms": "long"}}, kerr.InvalidConfig},
	} {
		wantCode(t, create(t, c, x.req), x.code)
	}
	wantCode(t, c.GrowTopic(t.Context(), "there", 1, nil, false), kerr.InvalidPartitions)
	wantCode(t, c.GrowTopic(t.Context(), "nowhere", 2, nil, false), kerr.UnknownTopicOrPartition)
	wantCode(t, c.DeleteTopics(t.Context(), []string{"nowhere"})[0], kerr.UnknownTopicOrPartition)
	wantCode(t, c.AlterTopic(t.Context(), "there", []metadata.ConfigChange{{Name: "retention.mss", Value: new("1")}}, false, false), kerr.InvalidConfig)
	wantCode(t, c.AlterTopic(t.Context(), "there", []metadata.ConfigChange{{Name: "retention.ms", Op: metadata.ConfigAppend, Value: new("1")}}, false, false), kerr.InvalidConfig)
	wantCode(t, c.AlterBroker(t.Context(), []metadata.ConfigChange{{Name: "node.id", Value: new("2")}}, false, false), kerr.InvalidRequest)
}

func TestValidateOnlyChangesNothing(t *testing.T) {
	c := open(t, mem.New(), false)
	topics, errs := c.CreateTopics(t.Context(), []metadata.NewTopic{{Name: "a", Partitions: -1, Replication: -1}}, true)
	if errs[0] != nil || len(topics[0].Partitions) != 1 || c.Image().Topic("a") != nil {
		t.Errorf("%v %v", topics[0], errs[0])
	}
}

func TestProducerIDsAreNeverGivenTwiceAlsoAfterACrash(t *testing.T) {
	s := mem.New()
	seen := map[int64]bool{}
	for range 3 {
		c := open(t, s, true)
		for range producerIDBlock + 10 {
			id, err := c.NextProducerID(t.Context())
			assert.MustTrue(t, err == nil && !seen[id], "id %d again, %v", id, err)
			seen[id] = true
		}
	}
}

func TestLeaderEpochsRiseWithEveryCrash(t *testing.T) {
	s := mem.New()
	c := open(t, s, true)
	must(t, create(t, c, metadata.NewTopic{Name: "a", Partitions: 2, Replication: 1}))
	var epochs []int32
	for _, crashed := range []bool{false, true, false, true} {
		epochs = append(epochs, open(t, s, crashed).Image().Topic("a").Partitions[1].LeaderEpoch)
	}
	assert.EqualSlices(t, epochs, []int32{0, 1, 1, 2}, "epochs")
}

func TestAChangeThatCannotBeStoredIsNotMade(t *testing.T) {
	fs := vfs.NewMem()
	s, err := disk.Open("data", disk.Options{FS: fs})
	must(t, err)
	defer s.Close()
	c := open(t, s, false)
	broken := errors.New("disk is broken")
	fs.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpDatasync {
			return broken
		}
		return nil
	})
	assert.MustErrorIs(t, create(t, c, metadata.NewTopic{Name: "a", Partitions: 1, Replication: 1}), store.ErrStorage)
	assert.True(t, c.Image().Topic("a") == nil, "the topic is in the image")
	fs.SetHook(nil)
	assert.NoError(t, create(t, c, metadata.NewTopic{Name: "a", Partitions: 1, Replication: 1}), "after the disk is well again")
}

func TestOnChangeHearsWhichTopicsChanged(t *testing.T) {
	var heard [][]string
	c, err := Open(t.Context(), Options{
		Store: mem.New(), Self: metadata.Broker{ID: 1}, Defaults: &config.Broker{}, Logger: slog.New(slog.DiscardHandler),
		OnChange: func(_ context.Context, _, _ *metadata.Image, topics []string) error {
			heard = append(heard, topics)
			return nil
		},
	})
	must(t, err)
	_ = create(t, c, metadata.NewTopic{Name: "a", Partitions: 1, Replication: 1})
	_ = create(t, c, metadata.NewTopic{Name: "b", Partitions: 1, Replication: 1})
	_ = c.DeleteTopics(t.Context(), []string{"a"})
	assert.DeepEqual(t, heard, [][]string{nil, {"a"}, {"b"}, {"a"}}, "heard")
}

func TestRaisedEpochsOfABrokerAloneStayAboveAllBefore(t *testing.T) {
	s := mem.New()
	c := open(t, s, false)
	must(t, create(t, c, metadata.NewTopic{Name: "a", Partitions: 2, Replication: 1}))
	epochs := func(c *Controller) []int32 {
		var out []int32
		for _, p := range c.Image().Topic("a").Partitions {
			out = append(out, p.LeaderEpoch)
		}
		return out
	}
	want := func(c *Controller, step string, want ...int32) {
		t.Helper()
		assert.EqualSlices(t, epochs(c), want, "%s: epochs", step)
	}
	raise := func(partition, from, above int32) {
		t.Helper()
		must(t, c.RaiseEpoch(t.Context(), "a", partition, from, above))
	}
	raise(1, 0, 0)
	want(c, "one partition", 0, 1)
	raise(1, 0, 0)
	want(c, "it was raised already", 0, 1)
	raise(0, 0, 0)
	want(c, "the other one", 2, 1)
	raise(1, 1, 7)
	want(c, "above what a log knows", 2, 8)
	raise(9, 0, 0)
	raise(-1, 0, 0)
	assert.Error(t, c.RaiseEpoch(t.Context(), "a", 0, 2, math.MaxInt32), "raised above all numbers")
	want(open(t, s, false), "after a restart", 8, 8)
	want(open(t, s, true), "after a crash", 9, 9)
}

func TestWhoeverCreatesAnInternalTopicDoesNotDecideWhatItIsLike(t *testing.T) {
	c := open(t, mem.New(), false)
	err := create(t, c, metadata.NewTopic{Name: metadata.OffsetsTopic, Partitions: 1, Replication: 1, Set: map[string]string{"cleanup.policy": "delete"}})
	must(t, err)
	topic := c.Image().Topic(metadata.OffsetsTopic)
	assert.True(t, len(topic.Partitions) == 50 && topic.Config.Compact && !topic.Config.Delete, "%d partitions, %+v", len(topic.Partitions), topic.Config)
}

func TestAnInternalTopicOfAnOlderMusterIsMadeSafeWhenItIsLoaded(t *testing.T) {
	s := mem.New()
	c := open(t, s, false)
	old := metadata.Topic{Name: metadata.OffsetsTopic, ID: metadata.TopicID{1}, Partitions: make([]metadata.Partition, 1), Set: map[string]string{"segment.bytes": "1048576"}}
	must(t, c.attempt(t.Context(), func() error { return c.write(t.Context(), topicRecord(old, false)) }))
	topic := open(t, s, false).Image().Topic(metadata.OffsetsTopic)
	if len(topic.Partitions) != 1 || !topic.Config.Compact || topic.Config.Delete || topic.Config.SegmentBytes != 1<<20 {
		t.Errorf("%d partitions, %+v", len(topic.Partitions), topic.Config)
	}
}

func FuzzApply(f *testing.F) {
	for _, r := range []record.Record{
		clusterRecord("id", 3), producerIDsRecord(1000), configRecord(map[string]string{"num.partitions": "3"}),
		topicRecord(metadata.Topic{Name: "t", Partitions: make([]metadata.Partition, 2)}, true), topicTombstone("t"),
		topicRecord(metadata.Topic{Name: "t", Partitions: make([]metadata.Partition, 2), Preferred: []int32{-1, 3, 4}}, true),
		brokerRecord(metadata.Broker{ID: 3, Endpoints: []metadata.Endpoint{{Listener: "PLAINTEXT", Host: "h", Port: 1}}}), brokerTombstone(3),
		deletingRecord("t", deletingValue{By: 1, Partitions: 2}), deletingTombstone("t"),
		groupRecord("g/h", map[string]string{"consumer.heartbeat.interval.ms": "6000"}), groupRecord("g", nil),
		userRecord("a", []metadata.Credential{{Hash: 1, Salt: []byte("salt"), Iterations: 4096, StoredKey: make([]byte, 32), ServerKey: make([]byte, 32)}}), userRecord("a", nil),
		ruleRecord(auth.Rule{Type: auth.Topic, Pattern: auth.Literal, Name: "t", Principal: "User:a", Host: "*", Operation: auth.Read, Permission: auth.Allow}), tombstone(keyRulePrefix + "x"),
		quotasRecord(metadata.QuotaEntity{User: metadata.Some("a/b"), ClientID: metadata.Default()}, map[string]float64{metadata.ProducerByteRate: 1}), quotasRecord(metadata.QuotaEntity{IP: metadata.Some("::1")}, nil),
	} {
		f.Add(r.Key, r.Value)
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		s := newState(1)
		_ = s.apply(&record.Record{Key: key, Value: value}, metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1}).Edit())
	})
}
