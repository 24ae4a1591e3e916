package broker_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/redistest"
)

// TestAFullRedisIsFreedByKafkaClients fills Redis up to its maxmemory, and makes
// room in the ways that clients have.
func TestAFullRedisIsFreedByKafkaClients(t *testing.T) {
	s := redistest.Single(t, "maxmemory-policy noeviction")
	props := map[string]string{"muster.store": "redis", "muster.redis.url": s.URL(), "log.retention.check.interval.ms": "200"}
	maps.Copy(props, quick)
	b := start(t, props)
	c := client(t, b, kgo.RecordRetries(1), kgo.RecordDeliveryTimeout(time.Second))
	admin := kadm.NewClient(c)
	limit := func(memory string) {
		t.Helper()
		if _, err := s.Nodes[0].Do("CONFIG", "SET", "maxmemory", memory); err != nil {
			t.Fatal(err)
		}
	}
	topic := ""
	put := func(ctx context.Context) error {
		return c.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: bytes.Repeat([]byte("v"), 100<<10)}).FirstErr()
	}
	for name, free := range map[string]func(ctx context.Context) error{
		"retention": func(ctx context.Context) error {
			small := "1000"
			r, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{{Name: "retention.bytes", Value: &small}}, topic)
			if err == nil {
				_, err = r.On(topic, func(one *kadm.AlterConfigsResponse) error { return one.Err })
			}
			return err
		},
		"DeleteRecords": func(ctx context.Context) error {
			ends, err := admin.ListEndOffsets(ctx, topic)
			if err == nil {
				var gone kadm.DeleteRecordsResponses
				gone, err = admin.DeleteRecords(ctx, ends.Offsets())
				err = errors.Join(err, gone.Error())
			}
			return err
		},
		"DeleteTopics": func(ctx context.Context) error {
			gone, err := admin.DeleteTopics(ctx, topic)
			return errors.Join(err, gone.Error())
		},
	} {
		t.Run(name, func(t *testing.T) {
			limit("20mb")
			topic = "full-of-" + name
			if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
				t.Fatal(err)
			}
			for err := error(nil); err == nil; err = put(t.Context()) {
				assert.MustFalse(t, errors.Is(err, kerr.UnknownTopicOrPartition), "%v", err)
			}
			limit("12mb") // Now there is no room for anything.
			eventually(t, name, free)
			if name == "DeleteTopics" {
				topic = "next"
				eventually(t, "another topic", func(ctx context.Context) error {
					_, err := admin.CreateTopic(ctx, 1, 1, nil, topic)
					if errors.Is(err, kerr.TopicAlreadyExists) {
						return nil // By an attempt whose answer did not come.
					}
					return err
				})
			}
			eventually(t, "produce", put)
			if _, err := admin.DeleteTopics(t.Context(), topic); err != nil {
				t.Fatal(err)
			}
		})
	}
}
