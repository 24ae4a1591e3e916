package broker_test

import (
	"context"
	"fmt"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/store/vfs"
)

// While the store is being closed clients can connect, and are told what is so. Only
// requests about partitions have no answer: their connections end with the broker.
func TestStopAnswersUntilTheEnd(t *testing.T) {
	fs := vfs.NewMem()
	b := start(t, map[string]string{"muster.store": "disk", "log.dir": "data"}, func(c *broker.Config) { c.On(fs) })
	produce(t, client(t, b), "orders", 0, 10)
	if _, err := kadm.NewClient(client(t, b)).DescribeGroups(t.Context(), "g"); err != nil { // Now there are groups.
		t.Fatal(err)
	}
	reached, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fs.SetHook(func(op vfs.Op) error {
		if op.Kind == vfs.OpCreate && path.Base(op.Name) == "clean-shutdown" {
			once.Do(func() { close(reached) })
			<-release
		}
		return nil
	})
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	<-reached
	heartbeat := kmsg.NewPtrHeartbeatRequest()
	heartbeat.Group, heartbeat.MemberID = "g", "m"
	if got := connect(t, b).answer(heartbeat).(*kmsg.HeartbeatResponse).ErrorCode; got != kerr.NotCoordinator.Code {
		t.Errorf("Heartbeat is answered %d, want NOT_COORDINATOR", got)
	}
	meta := kmsg.NewPtrMetadataRequest()
	meta.SetVersion(1)
	if got := connect(t, b).answer(meta).(*kmsg.MetadataResponse); len(got.Brokers) != 1 {
		t.Errorf("Metadata names %d brokers", len(got.Brokers))
	}
	held := connect(t, b)
	held.send(&kmsg.ProduceRequest{Version: 3, Acks: -1, TimeoutMillis: 1000})
	close(release)
	assert.NoError(t, (<-closed))
	if n, err := held.Read(make([]byte, 100)); n > 0 || err == nil {
		t.Errorf("Produce is answered with %d bytes (%v)", n, err)
	}
}

// A client that produces and one that consumes as a group notice restarts of the broker only
// by the time that they take.
func TestClientsSurviveRestarts(t *testing.T) {
	t.Parallel()
	props := map[string]string{"muster.store": "disk", "log.dir": t.TempDir(), "num.partitions": "20", "group.initial.rebalance.delay.ms": "0"}
	b := start(t, props)
	props["listeners"] = "PLAINTEXT://" + b.Addr()
	produce(t, client(t, b), "orders", 0, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	producer := client(t, b, kgo.DefaultProduceTopic("orders"), kgo.MaxBufferedRecords(100), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	consumer := client(t, b, kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("g"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	log := &restartLog{acked: map[string]bool{}, read: map[string]bool{}}
	log.more.L = &log.mu
	context.AfterFunc(ctx, log.more.Broadcast)
	producing, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; producing.Err() == nil; i++ {
			producer.Produce(ctx, &kgo.Record{Value: []byte(fmt.Sprint(i))}, log.produced)
		}
	})
	polling, end := context.WithCancel(ctx)
	running.Go(func() {
		for polling.Err() == nil {
			consumer.PollFetches(polling).EachRecord(log.consumed)
		}
	})
	for range 5 {
		log.await(ctx, t, 200)
		must(t, b.Close())
		b = start(t, props)
	}
	log.await(ctx, t, 200)
	stop()
	must(t, producer.Flush(ctx))
	log.awaitAll(ctx, t)
	end()
	running.Wait()
}

// restartLog is what was acknowledged and what was read.
type restartLog struct {
	mu          sync.Mutex
	more        sync.Cond
	acked, read map[string]bool
	err         error
}

func (l *restartLog) produced(r *kgo.Record, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.err = err
	} else {
		l.acked[string(r.Value)] = true
	}
	l.more.Broadcast()
}

func (l *restartLog) consumed(r *kgo.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read[string(r.Value)] = true
	l.more.Broadcast()
}

// await waits until so many more were acknowledged, and read.
func (l *restartLog) await(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	acked, read := len(l.acked)+n, len(l.read)+n
	for (len(l.acked) < acked || len(l.read) < read) && ctx.Err() == nil && l.err == nil {
		l.more.Wait()
	}
	if l.err != nil || ctx.Err() != nil {
		t.Fatalf("%d acknowledged, %d read: %v %v", len(l.acked), len(l.read), l.err, ctx.Err())
	}
}

// awaitAll waits until all that was acknowledged was read.
func (l *restartLog) awaitAll(ctx context.Context, t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for ctx.Err() == nil && l.missing() > 0 {
		l.more.Wait()
	}
	if n := l.missing(); n > 0 || l.err != nil {
		t.Errorf("%d of %d acknowledged records were not read (%v)", n, len(l.acked), l.err)
	}
}

func (l *restartLog) missing() (n int) {
	for v := range l.acked {
		if !l.read[v] {
			n++
		}
	}
	return n
}
