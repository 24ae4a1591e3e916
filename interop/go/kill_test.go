package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

const killPartitions = 3

// TestAcknowledgedRecordsSurviveRestarts writes without pause with an idempotent
// producer and acks=all while the broker is stopped and started again at random
// moments. In the end every acknowledged record must be there once and in order,
// and every other record at most once.
func TestAcknowledgedRecordsSurviveRestarts(t *testing.T) {
	tests := []struct {
		name     string
		producer func(t *testing.T, addr, topic string, log *producedLog) steadyProducer
		stop     func(t *testing.T, b *process)
		restarts int
	}{
		{"franz-go/SIGKILL", newFranzKilled, killBroker, 100},
		{"franz-go/SIGTERM", newFranzStopped, terminateBroker, 10},
		{"librdkafka/SIGKILL", newLibrdkafkaSteady, killBroker, 10},
		{"librdkafka/SIGTERM", newLibrdkafkaSteady, terminateBroker, 10},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			const topic = "steady"
			data, addr := t.TempDir(), fixedPort(t)
			flags := append([]string{"--listen", addr}, shortLease...)
			b := serve(t, data, flags...)
			createTopic(t, addr, topic, killPartitions)
			log := newProducedLog()
			p := tt.producer(t, addr, topic, log)
			began := time.Now()
			restarts := often(tt.restarts)
			for i := range restarts {
				log.mustGrow(t, "before restart", i)
				// The random moment: this is no wait for anything.
				<-time.After(time.Duration(50+rand.IntN(250)) * time.Millisecond)
				tt.stop(t, b)
				b = serve(t, data, flags...)
			}
			log.mustGrow(t, "after restart", restarts)
			p.abandon()
			acked, sent := log.check(t, addr, topic)
			t.Logf("%d restarts in %s: %d records sent, %d acknowledged", restarts, time.Since(began).Round(time.Millisecond), sent, acked)
			assert.NoError(t, log.failed(), "the producer gave up on a record")
		})
	}
}

func killBroker(_ *testing.T, b *process) { b.kill() }

func terminateBroker(t *testing.T, b *process) {
	t.Helper()
	assert.Must(t, b.terminate(), "SIGTERM")
}

// producedLog is what a producer sent and what of it was acknowledged. A
// record's value is its number in its partition.
type producedLog struct {
	mu    sync.Mutex
	more  *sync.Cond // something was acknowledged, or failed
	sent  [killPartitions]int
	acked [killPartitions]map[int]bool // by number
	acks  int
	err   error // the first failure
}

func newProducedLog() *producedLog {
	l := &producedLog{}
	l.more = sync.NewCond(&l.mu)
	for p := range l.acked {
		l.acked[p] = map[int]bool{}
	}
	return l
}

// next returns the number of the partition's next record.
func (l *producedLog) next(partition int) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent[partition]++
	return l.sent[partition] - 1
}

// done notes the outcome of a record.
func (l *producedLog) done(partition, number int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.acked[partition][number] = true
		l.acks++
		l.more.Broadcast()
	case !errors.Is(err, errAbandoned) && l.err == nil:
		l.err = fmt.Errorf("partition %d, record %d: %w", partition, number, err)
		l.more.Broadcast()
	}
}

// errAbandoned says that the test, not the broker, ended a record's way.
var errAbandoned = errors.New("abandoned")

func (l *producedLog) failed() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// mustGrow waits for acknowledgements that come after the call.
func (l *producedLog) mustGrow(t *testing.T, when string, restart int) {
	t.Helper()
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.more.Broadcast()
	})()
	l.mu.Lock()
	defer l.mu.Unlock()
	before := l.acks
	// Some that were acknowledged before a crash may be reported only now, so
	// one more is not enough to know that the broker is at work.
	for l.acks < before+100 && l.err == nil {
		assert.Must(t, ctx.Err(), "%s %d: no record acknowledged for %s", when, restart, patience)
		l.more.Wait()
	}
	assert.Must(t, l.err, "%s %d", when, restart)
}

// check reads the topic and compares it with the log.
func (l *producedLog) check(t *testing.T, addr, topic string) (acked, sent int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for p, numbers := range readNumbers(t, addr, topic) {
		assert.NoError(t, checkNumbers(numbers, l.acked[p], l.sent[p]), "partition %d", p)
		acked += len(l.acked[p])
		sent += l.sent[p]
	}
	return acked, sent
}

// checkNumbers checks what is in one partition: increasing numbers are in order
// and there once.
func checkNumbers(numbers []int, acked map[int]bool, sent int) error {
	previous, found := -1, 0
	for i, n := range numbers {
		switch {
		case n == previous:
			return fmt.Errorf("record %d is there twice, the second time at position %d", n, i)
		case n < previous:
			return fmt.Errorf("record %d comes after record %d at position %d", n, previous, i)
		case n >= sent:
			return fmt.Errorf("record %d was never sent", n)
		}
		if acked[n] {
			found++
		}
		previous = n
	}
	if found != len(acked) {
		return fmt.Errorf("%d of %d acknowledged records are missing", len(acked)-found, len(acked))
	}
	return nil
}

// readNumbers reads the whole topic.
func readNumbers(t *testing.T, addr, topic string) [killPartitions][]int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	ends, err := endOffsets(ctx, connect(t, addr), topic)
	must(t, err)
	var out [killPartitions][]int
	left := 0
	from := map[int32]kgo.Offset{}
	for p, end := range ends {
		left += int(end)
		from[p] = kgo.NewOffset().AtStart()
	}
	cl := connect(t, addr, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}))
	for left > 0 {
		fetches := cl.PollFetches(ctx)
		assert.Must(t, fetches.Err(), "%d records short", left)
		for it := fetches.RecordIter(); !it.Done(); left-- {
			r := it.Next()
			var n int
			if _, err := fmt.Sscanf(string(r.Value), "%d", &n); err != nil {
				t.Fatalf("a record that nobody wrote: %q", r.Value)
			}
			out[r.Partition] = append(out[r.Partition], n)
		}
	}
	return out
}

// steadyProducer writes without pause, until it is abandoned with records on
// the way.
type steadyProducer interface{ abandon() }

// steadyValue is a record's value: its number, and some weight.
func steadyValue(n int) []byte { return fmt.Appendf(nil, "%d %s", n, filler[:80]) }

type franzSteady struct {
	cl      *kgo.Client
	stop    context.CancelFunc
	stopped chan struct{}
}

func newFranzSteady(t *testing.T, addr, topic string, log *producedLog, opts ...kgo.Opt) steadyProducer {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &franzSteady{stop: stop, stopped: make(chan struct{})}
	p.cl = connect(t, addr, append(opts,
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(500),
		kgo.RetryBackoffFn(func(int) time.Duration { return 10 * time.Millisecond }), kgo.MetadataMinAge(20*time.Millisecond),
	)...)
	go func() {
		defer close(p.stopped)
		for i := 0; ctx.Err() == nil; i++ {
			partition := i % killPartitions
			n := log.next(partition)
			r := &kgo.Record{Topic: topic, Partition: int32(partition), Value: steadyValue(n)}
			p.cl.Produce(context.Background(), r, func(_ *kgo.Record, err error) {
				if errors.Is(err, kgo.ErrClientClosed) {
					err = errAbandoned
				}
				log.done(partition, n, err)
			})
		}
	}()
	return p
}

func newFranzStopped(t *testing.T, addr, topic string, log *producedLog) steadyProducer {
	t.Helper()
	return newFranzSteady(t, addr, topic, log)
}

// newFranzKilled is for a broker that may be killed before it has answered anything.
// One that is told to stop sees to it that clients try again by themselves.
func newFranzKilled(t *testing.T, addr, topic string, log *producedLog) steadyProducer {
	t.Helper()
	return newFranzSteady(t, addr, topic, log, kgo.AlwaysRetryEOF())
}

// abandon closes the client first, so that records are on their way then.
func (p *franzSteady) abandon() {
	p.stop()
	p.cl.Close()
	<-p.stopped
}

type librdkafkaSteady struct {
	p       *kafka.Producer
	stop    context.CancelFunc
	sending sync.WaitGroup
}

func newLibrdkafkaSteady(t *testing.T, addr, topic string, log *producedLog) steadyProducer {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	p := &librdkafkaSteady{stop: stop}
	var err error
	p.p, err = kafka.NewProducer(&kafka.ConfigMap{
		"bootstrap.servers": addr, "enable.idempotence": true, "message.timeout.ms": 0,
		"queue.buffering.max.messages": 500, "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50, "retry.backoff.ms": 10,
		"log_level": 0, // It reports every lost connection.
	})
	must(t, err)
	p.sending.Go(func() { p.report(ctx, log) })
	p.sending.Go(func() { p.send(ctx, topic, log) })
	return p
}

func (p *librdkafkaSteady) send(ctx context.Context, topic string, log *producedLog) {
	for i := 0; ctx.Err() == nil; i++ {
		partition := i % killPartitions
		n := log.next(partition)
		err := librdkafkaSend(ctx, p.p, &kafka.Message{
			TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: int32(partition)},
			Value:          steadyValue(n), Opaque: n,
		})
		if err != nil && ctx.Err() == nil {
			log.done(partition, n, err)
		}
	}
}

// report passes on the delivery reports.
func (p *librdkafkaSteady) report(ctx context.Context, log *producedLog) {
	for {
		select {
		case <-ctx.Done():
			return
		case e := <-p.p.Events():
			switch e := e.(type) {
			case *kafka.Message:
				log.done(int(e.TopicPartition.Partition), e.Opaque.(int), e.TopicPartition.Error)
			case kafka.Error:
				if e.IsFatal() {
					log.done(0, -1, e)
				}
			}
		}
	}
}

func (p *librdkafkaSteady) abandon() {
	p.stop()
	p.sending.Wait()
	_ = p.p.Purge(kafka.PurgeInFlight | kafka.PurgeQueue | kafka.PurgeNonBlocking)
	p.p.Close()
}
