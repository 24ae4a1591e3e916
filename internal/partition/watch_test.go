package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/rueidis"
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/redis"
	"muster/internal/store/redis/conn"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// idle is a manager on Redis whose partitions someone waits for all the time.
type idle struct {
	*Manager
	t      *testing.T
	client rueidis.Client
	prefix string
	parts  []*Partition
	waiter *Waiter
}

func newIdle(t *testing.T, url string, partitions int) *idle {
	client, err := conn.Connect(t.Context(), url, conn.Options{DialTimeout: time.Minute, CommandTimeout: time.Minute})
	must(t, err)
	t.Cleanup(client.Close)
	x := &idle{t: t, client: client, prefix: redistest.Prefix(t), waiter: NewWaiter()}
	s := redis.New(client, redis.Options{Prefix: x.prefix, Timeout: time.Minute, ReplicaTimeout: 100 * time.Millisecond})
	t.Cleanup(func() { _ = s.Close() })
	x.Manager = NewManager(Options{Store: s, Self: 1, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	edit := metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1}).Edit()
	led := slices.Repeat([]metadata.Partition{{Leader: 1}}, partitions)
	edit.PutTopic(metadata.Topic{Name: testTopic, Partitions: led, Set: map[string]string{"muster.redis.layout": "stream"}})
	must(t, x.Apply(t.Context(), metadata.NewImage(&config.Broker{}, metadata.Broker{ID: 1}), edit.Image(), edit.Changed()))
	for i := range partitions {
		p := x.Get(testTopic, int32(i))
		if p == nil {
			t.Fatalf("partition %d is not open", i)
		}
		x.parts = append(x.parts, p)
		p.Watch(x.waiter)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		x.Run(ctx)
		close(done)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return x
}

// add adds an entry as a Redis client does, and waits until it can be read.
func (x *idle) add(partition int, value string) {
	x.t.Helper()
	p := x.parts[partition]
	from := p.HighWatermark()
	key := fmt.Sprintf("%s:%s:%d", x.prefix, testTopic, partition)
	must(x.t, x.client.Do(x.t.Context(), x.client.B().Xadd().Key(key).Id("*").FieldValue().FieldValue("value", value).Build()).Error())
	select {
	case <-x.waiter.C:
	case <-time.After(time.Minute):
		x.t.Fatal("nobody was woken")
	}
	f := p.Read(x.t.Context(), Fetch{Offset: from, LeaderEpoch: NoEpoch, LastFetchedEpoch: NoEpoch, MaxBytes: 1 << 20, MinOne: true})
	defer f.Records.Release()
	if got, err := f.Records.Load(); f.Err != nil || err != nil || !strings.Contains(string(got), value) {
		x.t.Fatalf("read %q, %v, %v", got, f.Err, err)
	}
}

// poll reads all partitions, as a consumer does that has read everything.
func (x *idle) poll() {
	for _, p := range x.parts {
		if f := p.Read(x.t.Context(), Fetch{Offset: p.HighWatermark(), LeaderEpoch: NoEpoch, LastFetchedEpoch: NoEpoch, MaxBytes: 1 << 20}); f.Err != nil {
			x.t.Fatal(f.Err)
		}
	}
}

// calls returns how often Redis executed a command.
func calls(n *redistest.Node, command string) int {
	text, _, _ := strings.Cut(strings.TrimPrefix(n.Info("commandstats", "cmdstat_"+command), "calls="), ",")
	count, _ := strconv.Atoi(text)
	return count
}

// TestIdleConsumersCostRedisFewCommands has someone wait for records of 500
// partitions, and poll all the time.
func TestIdleConsumersCostRedisFewCommands(t *testing.T) {
	s := redistest.Single(t)
	x := newIdle(t, s.URL(), 500)
	n := s.Nodes[0]
	polls := 0
	turns := func(more int) {
		t.Helper()
		want := calls(n, "xread") + more
		redistest.Eventually(t, "Redis to be looked at", func() bool { x.poll(); polls++; return calls(n, "xread") >= want })
	}
	// fewScripts allows for a poll or two that found no one watching, on a machine
	// that is busy; without a watch, every poll looks at every partition.
	fewScripts := func(evals, since int) {
		t.Helper()
		if more := calls(n, "eval") - evals; more > 2*len(x.parts) && more > (polls-since)*len(x.parts)/4 {
			t.Errorf("%d scripts were run in %d polls of %d partitions though nothing happened", more, polls-since, len(x.parts))
		}
	}
	turns(2)
	began, looks, evals, since := time.Now(), calls(n, "xread"), calls(n, "eval"), polls
	turns(5)
	looks = calls(n, "xread") - looks
	if took := time.Since(began); float64(looks) > 1+30*took.Seconds() {
		t.Errorf("Redis was looked at %d times in %v", looks, took)
	}
	fewScripts(evals, since)
	for _, i := range []int{137, 0, 499} {
		looks := calls(n, "xread")
		x.add(i, fmt.Sprint("value ", i))
		if looks = calls(n, "xread") - looks; looks > 4 {
			t.Errorf("an entry of a Redis client was seen after %d looks", looks)
		}
	}
	// Who polls needs no look of its own, before or after something happened.
	evals, since = calls(n, "eval"), polls
	turns(3)
	fewScripts(evals, since)
}

func TestEntriesOfRedisClientsAreSeenOnEveryDeployment(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		x := newIdle(t, url, 12)
		for i := range 24 {
			x.add(i%12, fmt.Sprint("value ", i))
		}
	})
}

// TestAKeyThatIsNoStreamKeepsNobodyElseWaiting replaces one of the streams.
func TestAKeyThatIsNoStreamKeepsNobodyElseWaiting(t *testing.T) {
	x := newIdle(t, redistest.Shared(t, redistest.KindSingle).URL(), 3)
	x.add(1, "first")
	must(t, x.client.Do(t.Context(), x.client.B().Set().Key(x.prefix+":"+testTopic+":0").Value("x").Build()).Error())
	x.add(1, "second")
}

// TestAPartitionIsWatchedAMomentLonger has a consumer go and come again.
func TestAPartitionIsWatchedAMomentLonger(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		p, w := &Partition{}, NewWaiter()
		want := func(want bool) {
			t.Helper()
			if got := p.waiters.lately(watchAfter); got != want {
				t.Errorf("somebody waited lately: %v", got)
			}
		}
		want(false)
		p.Watch(w)
		time.Sleep(time.Hour)
		want(true)
		p.Unwatch(w)
		time.Sleep(watchAfter - 1)
		want(true)
		time.Sleep(time.Nanosecond)
		want(false)
	})
}

// TestAFlushThatReplicasDidNotSeeKeepsTheLog has no one who could hold a copy:
// producers are told so, but what was appended is stored, and the log as it was.
func TestAFlushThatReplicasDidNotSeeKeepsTheLog(t *testing.T) {
	x := newIdle(t, redistest.Shared(t, redistest.KindSingle).URL(), 1)
	p := x.parts[0]
	cfg := *p.cfg.Load()
	cfg.MinInSync = 2
	p.setConfig(&cfg)
	log := p.log.Load()
	put := func(acks int16) *kerr.Error {
		batch, err := record.Build(record.PlainTemplate(), []record.Record{{Value: []byte("v")}})
		must(t, err)
		done := make(chan *kerr.Error, 1)
		p.Append(t.Context(), batch, Produce{Acks: acks}, func(a Appended) { done <- a.Err })
		return <-done
	}
	if err := put(AcksAll); err != kerr.NotEnoughReplicasAfterAppend {
		t.Errorf("acks=all was answered with %v", err)
	}
	if err := put(1); err != nil {
		t.Errorf("acks=1 was answered with %v", err)
	}
	x.flushDirty()
	flushed := make(chan error)
	log.Flush(func(err error) { flushed <- err }) // which comes after the other one
	if err := <-flushed; !errors.Is(err, store.ErrNotReplicated) {
		t.Errorf("flushing: %v", err)
	}
	if p.failed.Load() || p.log.Load() != log {
		t.Error("the log is opened again")
	}
}

// busyStore is a store that has something new, or an error, whenever it is asked.
type busyStore struct {
	store.Store
	err   error
	asked int
}

func (s *busyStore) AwaitChange(context.Context, []store.Refresher, time.Duration) ([]int, error) {
	s.asked++
	return []int{0}, s.err
}

// busyLog is a log that others append to all the time.
type busyLog struct {
	store.Log
	end int64
}

func (l *busyLog) Transactional() bool { return false }

func (l *busyLog) Refresh(context.Context) (int64, error) { l.end++; return l.end, nil }

// TestWatchingPausesWhenMuchHappens bounds what a busy stream, or a store that is
// away, costs.
func TestWatchingPausesWhenMuchHappens(t *testing.T) {
	for _, err := range []error{nil, store.ErrUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			p, w := &Partition{}, NewWaiter()
			p.log.Store(&openLog{Log: &busyLog{}})
			p.Watch(w)
			m, led := &Manager{}, &topic{partitions: make([]atomic.Pointer[Partition], 1)}
			led.partitions[0].Store(p)
			m.topics.Store(testTopic, led)
			s := &busyStore{err: err}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			m.watch(ctx, s)
			if most := int(time.Second/watchPause) + 1; s.asked > most || s.asked < most/2 {
				t.Errorf("with error %v the store was asked %d times in a second", err, s.asked)
			}
			if p.HighWatermark() == 0 || p.watched() != (err == nil) {
				t.Errorf("with error %v the high watermark is %d, and the partition watched: %v", err, p.HighWatermark(), p.watched())
			}
		})
	}
}
