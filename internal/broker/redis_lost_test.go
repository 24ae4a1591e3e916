package broker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/redistest"
)

// startOnRedis starts a broker that says how it is at the address returned.
func startOnRedis(t *testing.T, s *redistest.Server) (b *broker.Broker, health string) {
	t.Helper()
	b = start(t, map[string]string{
		"muster.store": "redis", "muster.redis.url": s.URL(), "muster.http.listener": "127.0.0.1:0",
		"broker.session.timeout.ms": "2000", "broker.heartbeat.interval.ms": "200", "num.partitions": "1", "muster.redis.layout": "log",
	})
	return b, "http://" + b.HTTPAddr() + "/healthz"
}

// healthy says whether the broker is, and what it says.
func healthy(url string) (bool, string) {
	resp, err := http.Get(url)
	if err != nil {
		return false, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode == http.StatusOK, string(text)
}

// eventually tries something that clients do until it succeeds.
func eventually(t *testing.T, what string, try func(ctx context.Context) error) {
	t.Helper()
	if err := redistest.Poll(time.Minute, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		return try(ctx)
	}); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func leaderEpoch(t *testing.T, c *kgo.Client, topic string) int32 {
	t.Helper()
	var epoch int32
	eventually(t, "metadata", func(ctx context.Context) error {
		// kadm would answer from what it was told a second ago.
		req := kmsg.NewPtrMetadataRequest()
		req.Topics = []kmsg.MetadataRequestTopic{{Topic: &topic}}
		resp, err := req.RequestWith(ctx, c)
		if err != nil {
			return err
		}
		of := resp.Topics[0]
		if of.ErrorCode != 0 {
			return kerr.ErrorForCode(of.ErrorCode)
		}
		epoch = of.Partitions[0].LeaderEpoch
		return kerr.ErrorForCode(of.Partitions[0].ErrorCode)
	})
	return epoch
}

// TestAConsumerThatWasAheadOfALossSeesWhatComesAfterIt reads eight records, of
// which Redis loses three, and produces four that take their places.
func TestAConsumerThatWasAheadOfALossSeesWhatComesAfterIt(t *testing.T) {
	s := redistest.Single(t)
	b, _ := startOnRedis(t, s)
	producer := client(t, b, kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.MaxProduceRequestsInflightPerBroker(1))
	produce(t, producer, "t", 0, 5)
	older := s.Nodes[0].Snapshot(t)
	produce(t, producer, "t", 5, 3)
	consumer := client(t, b, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"t": {0: kgo.NewOffset().At(0)}}), kgo.MetadataMinAge(100*time.Millisecond))
	for n := 0; n < 8; {
		fs := consumer.PollFetches(t.Context())
		must(t, fs.Err())
		n += fs.NumRecords()
	}
	old := leaderEpoch(t, producer, "t")
	s.Nodes[0].Restore(t, older)
	for i := 8; i < 12; i++ {
		eventually(t, "produce", func(ctx context.Context) error {
			return producer.ProduceSync(ctx, &kgo.Record{Topic: "t", Value: fmt.Append(nil, "value ", i)}).FirstErr()
		})
	}
	if now := leaderEpoch(t, producer, "t"); now <= old {
		t.Errorf("the leader epoch was %d and is %d", old, now)
	}
	seen := map[string]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(seen) < 4 {
		fs := consumer.PollFetches(ctx)
		assert.Must(t, ctx.Err(), "the consumer saw %v", seen)
		fs.EachError(func(_ string, _ int32, err error) {
			if lost := (*kgo.ErrDataLoss)(nil); !errors.As(err, &lost) {
				t.Errorf("the consumer is told %v", err)
			}
		})
		fs.EachRecord(func(r *kgo.Record) { seen[string(r.Value)] = true })
	}
	fetchWithOldEpoch(t, producer, old)
}

// fetchWithOldEpoch asks as a client does that does not know of the loss.
func fetchWithOldEpoch(t *testing.T, c *kgo.Client, epoch int32) {
	t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = "t"
	rp := kmsg.NewListOffsetsRequestTopicPartition()
	rp.CurrentLeaderEpoch, rp.Timestamp = epoch, -1
	rt.Partitions = append(rt.Partitions, rp)
	req.Topics = append(req.Topics, rt)
	resp, err := req.RequestWith(t.Context(), c.Broker(1))
	must(t, err)
	if code := resp.Topics[0].Partitions[0].ErrorCode; code != kerr.FencedLeaderEpoch.Code {
		t.Errorf("under the old epoch: %v", kerr.ErrorForCode(code))
	}
}

// TestABrokerGoesOnWithARedisThatWasEmptied has a topic and a group, and then
// nothing.
func TestABrokerGoesOnWithARedisThatWasEmptied(t *testing.T) {
	s := redistest.Single(t)
	b, health := startOnRedis(t, s)
	c := client(t, b, kgo.MetadataMinAge(100*time.Millisecond))
	adm := kadm.NewClient(c)
	produce(t, c, "t", 0, 5)
	commit := func(ctx context.Context) error {
		offsets := kadm.Offsets{}
		offsets.AddOffset("t", 0, 3, -1)
		_, err := adm.CommitOffsets(ctx, "g", offsets)
		return err
	}
	eventually(t, "commit", commit)
	if _, err := s.Nodes[0].Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the topic to be gone", func(ctx context.Context) error {
		topics, err := adm.ListTopics(ctx)
		if err == nil && topics.Has("t") {
			err = errors.New("it is there")
		}
		return err
	})
	eventually(t, "the group to be gone", func(ctx context.Context) error {
		groups, err := adm.ListGroups(ctx)
		if _, ok := groups["g"]; err == nil && ok {
			err = errors.New("it is there")
		}
		return err
	})
	eventually(t, "health", func(context.Context) error {
		if ok, text := healthy(health); !ok {
			return errors.New(text)
		}
		return nil
	})
	eventually(t, "a topic", func(ctx context.Context) error {
		_, err := adm.CreateTopic(ctx, 1, -1, nil, "t")
		if errors.Is(err, kerr.TopicAlreadyExists) {
			err = nil
		}
		return err
	})
	eventually(t, "produce", func(ctx context.Context) error {
		return client(t, b, kgo.DisableIdempotentWrite()).ProduceSync(ctx, &kgo.Record{Topic: "t", Value: []byte("first")}).FirstErr()
	})
	eventually(t, "commit", commit)
	eventually(t, "the offset", func(ctx context.Context) error {
		offsets, err := adm.FetchOffsets(ctx, "g")
		if at, ok := offsets.Lookup("t", 0); err == nil && (!ok || at.At != 3) {
			err = fmt.Errorf("%v", offsets)
		}
		return err
	})
	dirs, err := adm.DescribeBrokerLogDirs(t.Context(), 1, nil)
	assert.True(t, err == nil && len(dirs) == 1 && strings.Contains(dirs.Sorted()[0].Dir, "redis"), "log directories %v, %v", dirs, err)
	// It does not spin: what it sends in a second is what it always sends, if the
	// machine does not take it for away meanwhile.
	eventually(t, "a quiet second", func(context.Context) error {
		before := commands(t, s)
		for begin := time.Now(); time.Since(begin) < time.Second; {
			if ok, text := healthy(health); !ok {
				return errors.New(text)
			}
		}
		if n := commands(t, s) - before; n > 500 {
			t.Errorf("%d commands in a second in which nobody wanted anything", n)
		}
		return nil
	})
}

// commands is how many commands the server has executed.
func commands(t *testing.T, s *redistest.Server) (n int) {
	t.Helper()
	if _, err := fmt.Sscan(s.Nodes[0].Info("stats", "total_commands_processed"), &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestACommitIsTheSameBeforeAndAfterARestart freezes Redis while a commit is on
// its way, for longer than anybody waits for an answer. Whatever became of it,
// the coordinator must say what one does that reads the log anew.
func TestACommitIsTheSameBeforeAndAfterARestart(t *testing.T) {
	t.Parallel()
	s := redistest.Single(t)
	b, _ := startOnRedis(t, s)
	c := client(t, b, kgo.MetadataMinAge(100*time.Millisecond))
	produce(t, c, "t", 0, 10)
	commit := func(ctx context.Context, c *kgo.Client, at int64) error {
		offsets := kadm.Offsets{}
		offsets.AddOffset("t", 0, at, -1)
		resp, err := kadm.NewClient(c).CommitOffsets(ctx, "g", offsets)
		if err == nil {
			err = resp.Error()
		}
		return err
	}
	committed := func(c *kgo.Client) (at int64) {
		t.Helper()
		eventually(t, "the offset", func(ctx context.Context) error {
			offsets, err := kadm.NewClient(c).FetchOffsets(ctx, "g")
			if err == nil {
				err = offsets.Error()
			}
			o, _ := offsets.Lookup("t", 0)
			at = o.At
			return err
		})
		return at
	}
	eventually(t, "commit", func(ctx context.Context) error { return commit(ctx, c, 3) })
	s.Nodes[0].Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
	assert.Error(t, commit(ctx, c, 7), "committed to a server that stands still")
	cancel()
	s.Nodes[0].Resume()
	before := committed(c)
	if err := b.Close(); err != nil {
		t.Logf("close: %v", err)
	}
	again, _ := startOnRedis(t, s)
	if after := committed(client(t, again)); after != before {
		t.Errorf("the committed offset is %d, and was %d before the restart", after, before)
	}
}

// A broker whose lease has run out may have been replaced, whatever its metadata says.
func TestABrokerWithoutALeaseCoordinatesNothing(t *testing.T) {
	s, brokers := fleet(t, 1, func(c *broker.Config) {
		c.Properties["broker.session.timeout.ms"], c.Properties["broker.heartbeat.interval.ms"] = "2000", "200"
	})
	b := brokers[0]
	leads := func(epochsAhead int32) bool {
		return b.LeadsShard("t", 0, b.Image().Topic("t").Partitions[0].LeaderEpoch+epochsAhead)
	}
	eventually(t, "to lead", func(context.Context) error {
		if !leads(0) || leads(1) {
			return errors.New("it does not, or under another epoch")
		}
		return nil
	})
	s.Nodes[0].Pause()
	defer s.Nodes[0].Resume()
	eventually(t, "the end of the lease", func(context.Context) error {
		if leads(0) {
			return errors.New("it coordinates what it led")
		}
		return nil
	})
}
