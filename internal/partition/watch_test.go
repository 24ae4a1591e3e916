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
	looked *looked
}

func newIdle(t *testing.T, url string, partitions int) *idle {
	client, err := conn.Connect(t.Context(), url, conn.Options{DialTimeout: time.Minute, CommandTimeout: time.Minute})
	must(t, err)
	t.Cleanup(client.Close)
	x := &idle{t: t, client: client, prefix: redistest.Prefix(t), waiter: NewWaiter()}
	s := redis.New(client, redis.Options{Prefix: x.prefix, Timeout: time.Minute, ReplicaTimeout: 100 * time.Millisecond})
	t.Cleanup(func() { _ = s.Close() })
	x.looked = &looked{Store: s}
	x.Manager = NewManager(Options{Store: x.looked, Self: 1, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
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

// poll reads all partitions, as a consumer does that has read everything, and asks where they
// end, as the watch over groups does.
func (x *idle) poll() {
	for _, p := range x.parts {
		if f := p.Read(x.t.Context(), Fetch{Offset: p.HighWatermark(), LeaderEpoch: NoEpoch, LastFetchedEpoch: NoEpoch, MaxBytes: 1 << 20}); f.Err != nil {
			x.t.Fatal(f.Err)
		}
		if err := p.Freshen(x.t.Context()); err != nil {
			x.t.Fatal(err)
		}
	}
}

// calls returns how often Redis executed a command.
func calls(n *redistest.Node, command string) int {
	text, _, _ := strings.Cut(strings.TrimPrefix(n.Info("commandstats", "cmdstat_"+command), "calls="), ",")
	count, _ := strconv.Atoi(text)
	return count
}

// looked counts how often a store was asked for changes.
type looked struct {
	*redis.Store
	times atomic.Int64
}

func (l *looked) AwaitChange(ctx context.Context, logs []store.Refresher, wait time.Duration) ([]int, error) {
	defer l.times.Add(1)
	return l.Store.AwaitChange(ctx, logs, wait)
}

// TestIdleConsumersCostRedisNoCommands has someone wait for records of many partitions, and poll
// all the time.
func TestIdleConsumersCostRedisNoCommands(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...string) *redistest.Server{"single": redistest.Single, "cluster": redistest.Cluster} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			x := newIdle(t, s.URL(), 300)
			asked := func() (n int) {
				for _, node := range s.Nodes {
					n += calls(node, "xread") + calls(node, "xrange") + calls(node, "eval") + calls(node, "exists")
				}
				return n
			}
			const looks = 10
			// quiet polls until the store was asked ten times for changes, and says what that has
			// cost. On a busy machine a poll or two may find no one watching, and look for itself.
			quiet := func() bool {
				before, until, polls := asked(), x.looked.times.Load()+looks, 0
				redistest.Eventually(t, "the store to be asked", func() bool { x.poll(); polls++; return x.looked.times.Load() >= until })
				cost := asked() - before
				t.Logf("%d polls of %d partitions, and %d looks, took %d commands", polls, len(x.parts), looks, cost)
				return cost < looks
			}
			redistest.Eventually(t, "idle consumers to cost nothing", quiet)
			for _, i := range []int{137, 0, 299} {
				before := asked()
				x.add(i, fmt.Sprint("value ", i))
				t.Logf("an entry of a Redis client took %d commands", asked()-before)
			}
			redistest.Eventually(t, "idle consumers to cost nothing", quiet)
		})
	}
}

func TestEntriesOfRedisClientsAreSeenOnEveryDeployment(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		x := newIdle(t, url, 12)
		for i := range 24 {
			x.add(i%12, fmt.Sprint("value ", i))
		}
	})
}

// TestEntriesAreSeenThoughNodesTellNothing cuts the connections on which a server tells of
// changes, and has it refuse to tell.
func TestEntriesAreSeenThoughNodesTellNothing(t *testing.T) {
	t.Run("for a moment", func(t *testing.T) {
		s := redistest.Single(t)
		x := newIdle(t, s.URL(), 3)
		other := s.Client(t)
		for i := range 5 {
			x.add(i%3, fmt.Sprint("before ", i))
			redistest.Eventually(t, "a connection to be cut", func() bool {
				n, err := other.Do(t.Context(), other.B().Arbitrary("CLIENT", "KILL", "TYPE", "normal").Build()).AsInt64()
				return err == nil && n > 0
			})
			redistest.Eventually(t, "the client to be back", func() bool { return x.client.Do(t.Context(), x.client.B().Ping().Build()).Error() == nil })
			x.add(i%3, fmt.Sprint("after ", i))
		}
	})
	t.Run("at all", func(t *testing.T) {
		s := redistest.Single(t)
		other := s.Client(t)
		must(t, other.Do(t.Context(), other.B().Arbitrary("ACL", "SETUSER", "deaf", "on", ">secret", "~*", "&*", "+@all", "-client|tracking").Build()).Error())
		x := newIdle(t, strings.Replace(s.URL(), "://", "://deaf:secret@", 1), 3)
		for i := range 6 {
			x.add(i%3, fmt.Sprint("value ", i))
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

func (l *busyLog) Bounds() (start, end int64) { return 0, l.end }

func (l *busyLog) Refresh(context.Context) (int64, error) { l.end++; return l.end, nil }

// A reader that another broker has told of more than this one has heard of is not told that there
// is no such offset, though the log is watched.
func TestWhoIsAheadOfAWatchedLogHasItLookedAt(t *testing.T) {
	p, l := &Partition{}, &busyLog{}
	p.log.Store(&openLog{Log: l})
	p.watchedUntil.Store(time.Now().Add(time.Hour).UnixNano())
	read := func(offset, highWatermark int64) {
		t.Helper()
		f := p.Read(t.Context(), Fetch{Offset: offset, LeaderEpoch: NoEpoch, LastFetchedEpoch: NoEpoch, MaxBytes: 1})
		if f.Err != nil || f.HighWatermark != highWatermark {
			t.Errorf("reading from %d: %v, the high watermark is %d, want %d", offset, f.Err, f.HighWatermark, highWatermark)
		}
	}
	read(0, 0) // What is added here is about to be told.
	read(1, 1)
	read(1, 1)
	read(2, 2)
}

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
