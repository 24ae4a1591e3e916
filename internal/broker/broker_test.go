package broker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/goleak"

	"muster/internal/assert"
	"muster/internal/broker"
)

func TestMain(m *testing.M) {
	// What starts Redis servers lives as long as the process.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("muster/internal/redistest.launcher"))
}

// must ends the test if something fails that has to work.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T, props map[string]string, more ...func(*broker.Config)) *broker.Broker {
	t.Helper()
	all := map[string]string{"listeners": "PLAINTEXT://127.0.0.1:0", "muster.store": "mem"}
	maps.Copy(all, props)
	c := broker.Config{Properties: all, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	for _, change := range more {
		change(&c)
	}
	b, err := broker.Open(t.Context(), c)
	must(t, err)
	t.Cleanup(func() {
		assert.NoError(t, b.Close())
	})
	return b
}

func client(t *testing.T, b *broker.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	// A broker that hears of a topic a moment after the one that created it is asked again.
	c, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(b.Addr()), kgo.AllowAutoTopicCreation(), kgo.UnknownTopicRetries(50), kgo.MetadataMinAge(100 * time.Millisecond),
	}, opts...)...)
	must(t, err)
	t.Cleanup(c.Close)
	return c
}

func produce(t *testing.T, c *kgo.Client, topic string, from, n int) {
	t.Helper()
	var recs []*kgo.Record
	for i := from; i < from+n; i++ {
		recs = append(recs, &kgo.Record{Topic: topic, Key: []byte(fmt.Sprint(i)), Value: []byte(fmt.Sprintf("value %d", i))})
	}
	must(t, c.ProduceSync(t.Context(), recs...).FirstErr())
}

func consume(t *testing.T, b *broker.Broker, topic string, n int) map[string]string {
	t.Helper()
	c := client(t, b, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got := map[string]string{}
	for seen := 0; seen < n; {
		fs := c.PollFetches(ctx)
		assert.Must(t, fs.Err(), "after %d of %d records", seen, n)
		fs.EachRecord(func(r *kgo.Record) {
			seen++
			if _, twice := got[string(r.Key)]; twice {
				t.Errorf("record %s twice", r.Key)
			}
			got[string(r.Key)] = string(r.Value)
		})
	}
	return got
}

func TestRecordsAreReadBackFromEveryStore(t *testing.T) {
	for _, st := range []string{"mem", "disk"} {
		t.Run(st, func(t *testing.T) {
			b := start(t, map[string]string{"muster.store": st, "log.dir": t.TempDir(), "num.partitions": "3"})
			produce(t, client(t, b), "orders", 0, 1000)
			got := consume(t, b, "orders", 1000)
			for i := range 1000 {
				assert.MustEqual(t, got[fmt.Sprint(i)], fmt.Sprintf("value %d", i), "record %d", i)
			}
		})
	}
}

func TestTopicsAndRecordsSurviveARestart(t *testing.T) {
	props := map[string]string{"muster.store": "disk", "log.dir": t.TempDir(), "num.partitions": "2"}
	b := start(t, props)
	c := client(t, b)
	produce(t, c, "orders", 0, 10)
	before, err := kadm.NewClient(c).ListTopics(t.Context())
	must(t, err)
	must(t, b.Close())
	b = start(t, props)
	c = client(t, b)
	after, err := kadm.NewClient(c).ListTopics(t.Context())
	must(t, err)
	assert.True(t, before["orders"].ID == after["orders"].ID && len(after["orders"].Partitions) == 2, "before %v, after %v", before, after)
	produce(t, c, "orders", 10, 10)
	consume(t, b, "orders", 20)
}

func TestTheLimitOfConnectionsIsAlteredAtRunTime(t *testing.T) {
	b := start(t, nil)
	alter := kmsg.NewPtrIncrementalAlterConfigsRequest()
	one := "1"
	alter.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{
		ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1",
		Configs: []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "max.connections.per.ip", Value: &one}},
	}}
	c, err := net.Dial("tcp", b.Addr())
	must(t, err)
	defer c.Close()
	if _, err := c.Write(kmsg.NewRequestFormatter().AppendRequest(nil, alter, 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	second, err := net.Dial("tcp", b.Addr())
	must(t, err)
	defer second.Close()
	_ = second.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := second.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a second connection is not refused: %v", err)
	}
}
