package interop

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
)

// groupPartitions is the number of partitions that a group shares.
const groupPartitions = 12

// deliveries are the records that some member of a group has reported.
type deliveries struct {
	mu     sync.Mutex
	seen   [groupPartitions]map[int64]bool // offsets
	unique int
	total  int
}

func newDeliveries() *deliveries {
	d := &deliveries{}
	for p := range d.seen {
		d.seen[p] = map[int64]bool{}
	}
	return d
}

func (d *deliveries) hear(_ *memberProcess, r memberReport) {
	if r.Event != eventRecords {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range r.Offsets {
		d.total++
		if !d.seen[r.Partition][o] {
			d.seen[r.Partition][o] = true
			d.unique++
		}
	}
}

// counts returns how many records were delivered: distinct ones, and all.
func (d *deliveries) counts() (unique, total int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unique, d.total
}

// of returns how many distinct records of a partition were delivered.
func (d *deliveries) of(partition int32) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.seen[partition])
}

// each returns how many distinct records of each partition were delivered.
func (d *deliveries) each() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]int, groupPartitions)
	for p := range d.seen {
		out[p] = len(d.seen[p])
	}
	return out
}

// missing returns the first record that was not delivered, of those before the
// end offsets.
func (d *deliveries) missing(ends map[int32]int64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for p := range int32(groupPartitions) {
		for o := range ends[p] {
			if !d.seen[p][o] {
				return fmt.Errorf("partition %d, offset %d of %d was not delivered", p, o, ends[p])
			}
		}
	}
	return nil
}

// writer writes records to all partitions in turn, steadily, until it is
// stopped. It writes no more than writerLimit.
type writer struct {
	t       testing.TB
	cl      *kgo.Client
	topic   string
	stop    context.CancelFunc
	stopped chan struct{}

	mu      sync.Mutex
	written int
	err     error
}

const (
	writerPace  = 20 * time.Millisecond
	writerBurst = 6
	writerLimit = 60_000
)

// startWriter starts to write.
func startWriter(t testing.TB, addr, topic string) *writer {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	w := &writer{t: t, topic: topic, stop: stop, stopped: make(chan struct{})}
	// KafkaJS has no Snappy, franz-go's default, without more packages.
	w.cl = connect(t, addr, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(kgo.NoCompression()))
	t.Cleanup(stop)
	go func() {
		defer close(w.stopped)
		pace := time.NewTicker(writerPace)
		defer pace.Stop()
		for n := 0; n < writerLimit; n++ {
			if n%writerBurst == 0 {
				select {
				case <-ctx.Done():
					return
				case <-pace.C:
				}
			}
			w.write(int32(n % groupPartitions))
		}
	}()
	return w
}

// write writes one record.
func (w *writer) write(partition int32) {
	w.cl.Produce(context.Background(), &kgo.Record{Topic: w.topic, Partition: partition, Value: []byte(filler[:60])}, func(_ *kgo.Record, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.written++
		if w.err == nil {
			w.err = err
		}
	})
}

// finish stops writing, with one last record for each partition, and returns the
// end offsets.
func (w *writer) finish() map[int32]int64 {
	w.t.Helper()
	w.stop()
	<-w.stopped
	for p := range int32(groupPartitions) {
		w.write(p)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), groupTimeout)
	defer cancel()
	must(w.t, w.cl.Flush(ctx))
	ends, err := endOffsets(ctx, w.cl, w.topic)
	must(w.t, err)
	w.mu.Lock()
	defer w.mu.Unlock()
	assert.Must(w.t, w.err, "write")
	sum := 0
	for _, end := range ends {
		sum += int(end)
	}
	assert.MustTrue(w.t, sum == w.written, "%d records written, the topic has %d", w.written, sum)
	return ends
}
