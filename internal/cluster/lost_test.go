package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/assert"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/redis"
	"muster/internal/store/redis/conn"
)

// leases are those of a few brokers that are all well until they say otherwise.
type leases struct {
	mu   sync.Mutex
	held map[int32]bool
	// looked, if set, is called when a broker has seen whose leases are held, and
	// before it acts upon it.
	looked func(by int32)
}

func (l *leases) set(id int32, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held[id] = held
}

// testLease is the lease of one of them.
type testLease struct {
	all *leases
	id  int32
}

func (testLease) TTL() time.Duration { return time.Second }

func (l testLease) Renew(context.Context) (bool, error) {
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.all.held[l.id], nil
}

func (l testLease) Acquire(context.Context) error {
	l.all.set(l.id, true)
	return nil
}

func (l testLease) Release(context.Context) error {
	l.all.set(l.id, false)
	return nil
}

func (l testLease) Live(_ context.Context, ids []int32) (map[int32]bool, error) {
	live, looked := l.all.live(ids)
	if looked != nil {
		looked(l.id)
	}
	return live, nil
}

func (l *leases) live(ids []int32) (map[int32]bool, func(int32)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	live := map[int32]bool{}
	for _, id := range ids {
		if l.held[id] {
			live[id] = true
		}
	}
	return live, l.looked
}

// patience is for a Redis that is to answer. On a busy machine that may take long.
const patience = 30 * time.Second

// fleet is some brokers on one Redis.
type fleet struct {
	*testing.T
	server *redistest.Server
	set    map[string]string
	leases *leases
	log    io.Writer
}

func newFleet(t *testing.T, server *redistest.Server, set map[string]string) *fleet {
	return &fleet{T: t, server: server, set: set, leases: &leases{held: map[int32]bool{}}, log: t.Output()}
}

// join starts a broker, which ends with the test.
func (f *fleet) join(id int32) *Controller {
	f.Helper()
	client, err := conn.Connect(f.Context(), f.server.URL(), conn.Options{DialTimeout: patience, CommandTimeout: patience})
	must(f, err)
	f.Cleanup(client.Close)
	s := redis.New(client, redis.Options{Prefix: "fleet", Timeout: patience, ReplicaTimeout: time.Second})
	f.Cleanup(func() { _ = s.Close() })
	defaults, err := config.NewBroker(f.set)
	must(f, err)
	f.leases.set(id, true)
	c, err := Open(f.Context(), Options{
		Store: s, Self: metadata.Broker{ID: id, Incarnation: fmt.Sprint(id, time.Now().UnixNano())}, Defaults: defaults,
		Lease: testLease{f.leases, id}, Logger: slog.New(slog.NewTextHandler(f.log, nil)).With("node", id),
	})
	must(f, err)
	f.Cleanup(func() { _ = c.Close() })
	return c
}

// agreed waits until brokers have the same picture, in which all of them are.
func (f *fleet) agreed(brokers ...*Controller) *metadata.Image {
	f.Helper()
	redistest.Eventually(f.T, "the brokers to agree", func() bool {
		first := brokers[0].Image()
		for _, c := range brokers {
			if first.Broker(c.opts.Self.ID) == nil || c.Problem() != "" || describe(c.Image()) != describe(first) {
				return false
			}
		}
		return len(first.Brokers) == len(brokers)
	})
	return brokers[0].Image()
}

// describe is what brokers must agree about.
func describe(image *metadata.Image) string {
	out := fmt.Sprintln(image.ClusterID, image.Brokers)
	for _, t := range image.Topics() {
		out += fmt.Sprintln(t.Name, t.ID, t.Partitions)
	}
	return out
}

func (f *fleet) create(c *Controller, name string) *metadata.Topic {
	f.Helper()
	must(f, create(f.T, c, metadata.NewTopic{Name: name, Partitions: 6, Replication: 1}))
	return c.Image().Topic(name)
}

// TestBrokersAgreeAfterRedisCameBackWithAnOlderState takes the end of the
// metadata from two brokers that have seen it.
func TestBrokersAgreeAfterRedisCameBackWithAnOlderState(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	f.create(a, "kept")
	f.agreed(a, b)
	older := f.server.Nodes[0].Snapshot(t)
	f.create(b, "lost")
	cluster := f.agreed(a, b).ClusterID
	f.server.Nodes[0].Restore(t, older)
	for i, c := range []*Controller{a, b} {
		name := fmt.Sprint("new-", i)
		if err := redistest.Poll(time.Minute, func() error {
			return ignoreExists(create(t, c, metadata.NewTopic{Name: name, Partitions: 6, Replication: 1}))
		}); err != nil {
			t.Fatalf("broker %d cannot create a topic: %v", i, err)
		}
	}
	image := f.agreed(a, b)
	assert.True(t, image.ClusterID == cluster, "the cluster id changed from %s to %s", cluster, image.ClusterID)
	for name, want := range map[string]bool{"kept": true, "lost": false, "new-0": true, "new-1": true} {
		assert.Equal(t, image.Topic(name) != nil, want, "topic %s is there", name)
	}
	// And it can be read from the start.
	if c := f.join(3); describe(c.Image()) == "" || c.Image().Topic("new-1") == nil {
		t.Error("a third broker sees something else")
	}
}

// ignoreExists makes a topic that exists one that was created: an attempt before
// may not have been answered.
func ignoreExists(err error) error {
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	return err
}

// TestLeaderEpochsNeverGoBackWithTheMetadata moves partitions, and has Redis
// forget that.
func TestLeaderEpochsNeverGoBackWithTheMetadata(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a := f.join(1)
	f.create(a, "t")
	older := f.server.Nodes[0].Snapshot(t)
	b := f.join(2)
	f.agreed(a, b)
	must(t, b.Leave(t.Context()))
	used := f.agreed(a).Topic("t").Partitions
	f.server.Nodes[0].Restore(t, older)
	redistest.Eventually(t, "higher epochs", func() bool {
		for i, p := range a.Image().Topic("t").Partitions {
			if p.LeaderEpoch <= used[i].LeaderEpoch {
				return false
			}
		}
		return true
	})
	if again := f.join(2); describe(again.Image()) == "" || slices.Equal(again.Image().Topic("t").Partitions, used) {
		t.Errorf("epochs that were used are used again")
	}
}

// TestBrokersGoOnWithAnEmptyRedis takes everything.
func TestBrokersGoOnWithAnEmptyRedis(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	f.create(a, "gone")
	cluster := f.agreed(a, b).ClusterID
	if _, err := f.server.Nodes[0].Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the topic to be gone", func() bool { return a.Image().Topic("gone") == nil && b.Image().Topic("gone") == nil })
	if image := f.agreed(a, b); image.ClusterID != cluster || image.TopicCount() != 0 {
		t.Errorf("%s", describe(image))
	}
	f.create(b, "next")
	f.agreed(a, b)
}

// TestProducerIDsAreNotGivenTwiceAfterALoss asks for ids, and has Redis forget
// that it gave them.
func TestProducerIDsAreNotGivenTwiceAfterALoss(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a := f.join(1)
	older := f.server.Nodes[0].Snapshot(t)
	given := map[int64]bool{}
	ask := func(c *Controller) {
		t.Helper()
		var id int64
		if err := redistest.Poll(time.Minute, func() (err error) {
			id, err = c.NextProducerID(t.Context())
			return err
		}); err != nil {
			t.Fatal(err)
		}
		assert.False(t, given[id], "producer id %d was given before", id)
		given[id] = true
	}
	for range producerIDBlock + 10 {
		ask(a)
	}
	f.server.Nodes[0].Restore(t, older)
	b := f.join(2) // It knows nothing of what a gave.
	for range 2*producerIDBlock + 10 {
		ask(b)
	}
	for range 2*producerIDBlock + 10 {
		ask(a)
	}
}

func TestAProducerIDIsNotGivenWithoutTheReplicasThatAreAskedFor(t *testing.T) {
	f := newFleet(t, redistest.Single(t), map[string]string{"min.insync.replicas": "2"})
	a := f.join(1)
	if _, err := a.NextProducerID(t.Context()); !errors.Is(err, kerr.RequestTimedOut) {
		t.Errorf("a producer id without replicas: %v", err)
	}
	assert.ErrorIs(t, create(t, a, metadata.NewTopic{Name: "t", Partitions: 1, Replication: 1}), kerr.RequestTimedOut, "a topic without replicas")
}

// TestCompactionIsNotALoss compacts the metadata behind the back of a broker that
// follows it.
func TestCompactionIsNotALoss(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	f.create(a, "t")
	before := f.agreed(a, b).Topic("t").Partitions
	for range 5 {
		must(t, a.AlterTopic(t.Context(), "t", []metadata.ConfigChange{{Name: "retention.ms", Value: new(fmt.Sprint(time.Now().UnixNano()))}}, false, false))
	}
	f.agreed(a, b)
	b.mu.Lock()
	must(t, b.shared.Compact(t.Context(), b.seen.Next))
	_, err := b.shared.Read(t.Context(), store.Seen{Next: 3, CRC: b.seen.CRC}, 0)
	b.mu.Unlock()
	assert.ErrorIs(t, err, store.ErrCompacted, "a broker that is behind")
	// A broker that was behind it reads all of it again.
	b.mu.Lock()
	b.seen = store.Seen{Next: 3}
	err = b.catchUp(t.Context())
	b.mu.Unlock()
	must(t, err)
	if after := f.agreed(a, b).Topic("t").Partitions; !slices.Equal(before, after) {
		t.Errorf("leaders were %v and are %v", before, after)
	}
}

// TestAChangeEndsWithItsContext has a log in which others are always faster.
func TestAChangeEndsWithItsContext(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a := f.join(1)
	ctx, cancel := context.WithCancel(t.Context())
	tries := 0
	err := a.attempt(ctx, func() error {
		if tries++; tries == 8 {
			cancel()
		}
		return store.ErrMoved
	})
	assert.True(t, errors.Is(err, context.Canceled) && tries == 8, "after %d tries: %v", tries, err)
}

// TestABlockOfProducerIDsEndsWithTheRecordThatReservedIt also has a clock that is
// behind the ids that were given.
func TestABlockOfProducerIDsEndsWithTheRecordThatReservedIt(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a := f.join(1)
	older := f.server.Nodes[0].Snapshot(t)
	const ahead = 1 << 60
	a.mu.Lock()
	a.nextID, a.lastID = ahead-producerIDBlock, ahead
	a.mu.Unlock()
	f.create(a, "lost")
	f.server.Nodes[0].Restore(t, older)
	redistest.Eventually(t, "the loss to be seen", func() bool { return a.Image().Topic("lost") == nil })
	var id int64
	if err := redistest.Poll(time.Minute, func() (err error) {
		id, err = a.NextProducerID(t.Context())
		return err
	}); err != nil || id < ahead {
		t.Errorf("got %d, %v", id, err)
	}
}

// TestRaisedEpochsAreInTheMetadataOfAllBrokers raises epochs of partitions that
// one broker leads; another one may not.
func TestRaisedEpochsAreInTheMetadataOfAllBrokers(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a, b := f.join(1), f.join(2)
	f.create(a, "t")
	before := f.agreed(a, b).Topic("t").Partitions
	for i, p := range before {
		// a asks for all, and gets what is its own.
		must(t, a.RaiseEpoch(t.Context(), "t", int32(i), p.LeaderEpoch, p.LeaderEpoch+10))
	}
	for i, p := range f.agreed(a, b).Topic("t").Partitions {
		want := before[i]
		if want.Leader == 1 {
			want.LeaderEpoch += 11
		}
		assert.Equal(t, p, want, "partition %d is led", i)
	}
}

func TestABrokerSaysThatItCannotFollowTheMetadata(t *testing.T) {
	f := newFleet(t, redistest.Single(t), nil)
	a := f.join(1)
	f.agreed(a)
	a.mu.Lock()
	image := a.image.Swap(metadata.NewImage(a.opts.Defaults))
	assert.Contains(t, a.Problem(), "not registered", "without this broker in the metadata")
	a.image.Store(image)
	a.mu.Unlock()
	// Someone takes the log away, and something else is in its place.
	if _, err := f.server.Nodes[0].Do("SET", "{fleet:__cluster_metadata:0}:m", "x"); err != nil {
		t.Fatal(err)
	}
	redistest.Eventually(t, "the broker to say so", func() bool { return strings.Contains(a.Problem(), "cannot be followed") })
	if _, err := f.server.Nodes[0].Do("FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	f.agreed(a)
}
