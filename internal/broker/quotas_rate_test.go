package broker_test

import (
	"context"
	"flag"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/metadata"
)

// quotaRate has quotas measured by the clock, which takes a minute and a machine that has
// nothing else to do: go test ./internal/broker -run Measured -quota.rate
var quotaRate = flag.Bool("quota.rate", false, "measure quotas by the clock, for a minute")

const (
	measuredRate = 1_000_000
	measuredTime = 30 * time.Second
	measuredOff  = 0.05
)

// measured runs four clients that have a quota together, and one that has none, for half a
// minute, and checks what they get.
func measured(t *testing.T, key kmsg.Key, run func(ctx context.Context, client string, m *meter)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), measuredTime)
	defer cancel()
	together, free := newMeter(), newMeter()
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() { run(ctx, "limited", together) })
	}
	running.Go(func() { run(ctx, "free", free) })
	running.Wait()
	bytes, told := together.read(key)
	rate := float64(bytes) / measuredTime.Seconds()
	t.Logf("%s: four clients %.0f bytes/s, %+.1f %%, told to wait %s in all", key.Name(), rate, 100*(rate/measuredRate-1), told)
	if rate < (1-measuredOff)*measuredRate || rate > (1+measuredOff)*measuredRate {
		t.Errorf("%.0f bytes/s, want %d within %.0f %%", rate, measuredRate, 100*measuredOff)
	}
	bytes, told = free.read(key)
	rate = float64(bytes) / measuredTime.Seconds()
	t.Logf("%s: the other client %.0f bytes/s, told to wait %s", key.Name(), rate, told)
	assert.True(t, told == 0 && rate >= 5*measuredRate, "a client without quota is slowed: %.0f bytes/s, told to wait %s", rate, told)
}

// pace has the client without quota do no more than ten times as much as the others, in
// steps of 100 records: it need not take the whole machine to show that it is not slowed.
func pace(id string) {
	if id == "free" {
		<-time.After(10 * time.Millisecond)
	}
}

func quotaBroker(t *testing.T) *broker.Broker {
	t.Helper()
	if !*quotaRate {
		t.Skip("only with -quota.rate")
	}
	b := start(t, map[string]string{"muster.store": "disk", "log.dir": t.TempDir(), "num.partitions": "4"})
	limit(t, b, "limited", metadata.ProducerByteRate, measuredRate)
	limit(t, b, "limited", metadata.ConsumerByteRate, measuredRate)
	return b
}

func TestMeasuredQuotaOfProducers(t *testing.T) {
	b := quotaBroker(t)
	measured(t, kmsg.Produce, func(ctx context.Context, id string, m *meter) {
		c := client(t, b, kgo.ClientID(id), kgo.WithHooks(m), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.ProducerBatchMaxBytes(64<<10))
		for n := 0; ctx.Err() == nil; n++ {
			if n%100 == 0 {
				pace(id)
			}
			c.Produce(ctx, &kgo.Record{Topic: "orders", Value: make([]byte, 1000)}, nil)
		}
	})
}

func TestMeasuredQuotaOfConsumers(t *testing.T) {
	b := quotaBroker(t)
	produceBytes(t, client(t, b, kgo.ProducerBatchCompression(kgo.NoCompression())), "orders", 40_000)
	measured(t, kmsg.Fetch, func(ctx context.Context, id string, m *meter) {
		for ctx.Err() == nil { // Again from the start, if it got to the end.
			c := client(t, b, kgo.ClientID(id), kgo.WithHooks(m), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
			for n := 0; n < 40_000 && ctx.Err() == nil; {
				pace(id)
				n += c.PollRecords(ctx, 100).NumRecords()
			}
			c.Close()
		}
	})
}
