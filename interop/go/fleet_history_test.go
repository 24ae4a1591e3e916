package interop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

// history is what producers were told of a topic: where each record is.
type history struct {
	mu    sync.Mutex
	acked map[int32]map[int64]string // value by offset
	// somewhere are records of which librdkafka says that they are written, not
	// where: an attempt of which it does not know how it ended, before one that
	// succeeded, and that has a higher sequence.
	somewhere map[int32][]string
	err       error
}

func newHistory() *history {
	return &history{acked: map[int32]map[int64]string{}, somewhere: map[int32][]string{}}
}

// ack notes that a record was acknowledged.
func (h *history) ack(partition int32, offset int64, value string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.fail(fmt.Errorf("write of %s: %w", value, err))
		return
	}
	if offset == int64(kafka.OffsetInvalid) {
		h.somewhere[partition] = append(h.somewhere[partition], value)
		return
	}
	if h.acked[partition] == nil {
		h.acked[partition] = map[int64]string{}
	}
	if other, ok := h.acked[partition][offset]; ok {
		h.fail(fmt.Errorf("partition %d, offset %d was given to %s and to %s", partition, offset, other, value))
	}
	h.acked[partition][offset] = value
}

func (h *history) fail(err error) {
	if h.err == nil {
		h.err = err
	}
}

// last returns how many records each partition has at least.
func (h *history) last() map[int32]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := map[int32]int{}
	for p, acked := range h.acked {
		for offset := range acked {
			out[p] = max(out[p], int(offset)+1)
		}
	}
	return out
}

func (h *history) count() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.acked {
		n += len(p)
	}
	for _, p := range h.somewhere {
		n += len(p)
	}
	return n
}

// check reads the whole topic and judges it: every record that was acknowledged
// is there, and where its producer was told, offsets have no gaps, and since all producers
// are idempotent no record is there twice.
func (h *history) check(t testing.TB, cl *kgo.Client, topic string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), groupTimeout)
	defer cancel()
	ends, err := endOffsets(ctx, cl, topic)
	must(t, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	must(t, h.err)
	for p, end := range ends {
		where := map[string]int64{}
		for o, value := range h.read(ctx, t, cl, topic, p, end) {
			if before, twice := where[value]; twice {
				t.Errorf("partition %d: %s is at offset %d and at %d", p, value, before, o)
			}
			where[value] = int64(o)
		}
		for o, value := range h.acked[p] {
			if at, ok := where[value]; !ok || at != o {
				t.Errorf("partition %d: %s was acknowledged at offset %d, found %v at %d", p, value, o, ok, at)
			}
		}
		for _, value := range h.somewhere[p] {
			if _, ok := where[value]; !ok {
				t.Errorf("partition %d: %s was acknowledged, and is not there", p, value)
			}
		}
	}
}

// read returns the values of a partition, by offset.
func (h *history) read(ctx context.Context, t testing.TB, from *kgo.Client, topic string, partition int32, end int64) []string {
	t.Helper()
	cl, err := kgo.NewClient(append(from.Opts(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {partition: kgo.NewOffset().AtStart()}}))...)
	must(t, err)
	defer cl.Close()
	var values []string
	for int64(len(values)) < end {
		fetches := cl.PollFetches(ctx)
		assert.Must(t, fetches.Err(), "read %s-%d at %d of %d", topic, partition, len(values), end)
		fetches.EachRecord(func(r *kgo.Record) {
			assert.MustTrue(t, r.Offset == int64(len(values)), "%s-%d: offset %d after %d records", topic, partition, r.Offset, len(values))
			values = append(values, string(r.Value))
		})
	}
	return values
}

// fleetWriters write to all partitions, one with franz-go and one with
// librdkafka, both idempotent, until they are stopped.
type fleetWriters struct {
	t       testing.TB
	topic   string
	history *history
	franz   *kgo.Client
	rd      *kafka.Producer
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

func startFleetWriters(t testing.TB, f *fleet, topic string) *fleetWriters {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	w := &fleetWriters{t: t, topic: topic, history: newHistory(), stop: stop}
	w.franz = f.client(kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.UnknownTopicRetries(-1),
		kgo.AlwaysRetryEOF()) // A broker may be killed before it has answered anything.
	var err error
	w.rd, err = kafka.NewProducer(&kafka.ConfigMap{
		"bootstrap.servers": f.addrs[0], "enable.idempotence": true, "delivery.timeout.ms": 120000, "linger.ms": 2,
		"retry.backoff.ms": 50, "reconnect.backoff.max.ms": 200, "topic.metadata.refresh.fast.interval.ms": 50, "socket.timeout.ms": 2000,
	})
	must(t, err)
	w.stopped.Go(w.delivered)
	w.stopped.Go(func() { w.write(ctx) })
	return w
}

// write writes a record to each partition with each client, again and again.
func (w *fleetWriters) write(ctx context.Context) {
	pace := time.NewTicker(writerPace)
	defer pace.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			w.rd.Flush(int(groupTimeout.Milliseconds()))
			w.rd.Close()
			return
		case <-pace.C:
		}
		for p := range int32(groupPartitions) {
			value := fmt.Sprintf("franz-%d-%d", p, n)
			w.franz.Produce(context.Background(), &kgo.Record{Topic: w.topic, Partition: p, Value: []byte(value)}, func(r *kgo.Record, err error) {
				w.history.ack(r.Partition, r.Offset, string(r.Value), err)
			})
			err := w.rd.Produce(&kafka.Message{
				TopicPartition: kafka.TopicPartition{Topic: &w.topic, Partition: p}, Value: fmt.Appendf(nil, "rd-%d-%d", p, n),
			}, nil)
			if err != nil {
				w.history.ack(p, -1, "rd", err)
			}
		}
	}
}

// delivered notes what librdkafka was told.
func (w *fleetWriters) delivered() {
	for e := range w.rd.Events() {
		if m, ok := e.(*kafka.Message); ok {
			w.history.ack(m.TopicPartition.Partition, int64(m.TopicPartition.Offset), string(m.Value), m.TopicPartition.Error)
		}
	}
}

// finish stops writing and returns the end offsets.
func (w *fleetWriters) finish() map[int32]int64 {
	w.t.Helper()
	w.stop()
	w.stopped.Wait()
	ctx, cancel := context.WithTimeout(w.t.Context(), groupTimeout)
	defer cancel()
	must(w.t, w.franz.Flush(ctx))
	ends, err := endOffsets(ctx, w.franz, w.topic)
	must(w.t, err)
	return ends
}
