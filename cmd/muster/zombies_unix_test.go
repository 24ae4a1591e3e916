//go:build unix

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/redistest"
)

var (
	zombieCount = flag.Int("zombies", 3, "how often TestZombiesWriteNothing freezes a broker")
	zombieSeed  = flag.Uint64("zombie-seed", 1, "which brokers it freezes when")
)

const zombiePartitions = 6

// zombies are brokers that share a Redis, and someone who writes all the time.
type zombies struct {
	t       *testing.T
	brokers []*process
	writer  *kgo.Client

	mu     sync.Mutex
	acked  [zombiePartitions][]int64 // by value: its offset
	failed error
}

// TestZombiesWriteNothing freezes brokers in the middle of appends until others lead their partitions, and lets them go
// on then. What was acknowledged is there, once, in order, and nothing else is but what Redis clients have added. (make zombies N=100)
func TestZombiesWriteNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about processes, which other tests have under race")
	}
	redis := redistest.Single(t)
	z := &zombies{t: t}
	for i := range 3 {
		p := &process{t: t, redis: redis, address: freeAddress(t), node: i + 1}
		p.start()
		t.Cleanup(p.kill)
		z.brokers = append(z.brokers, p)
	}
	s := &shell{t, z.brokers[0].address}
	redistest.Eventually(t, "the brokers to answer", func() bool { return strings.Count(s.run("brokers", "list").stdout, "\n") > 3 })
	s.run("topics", "create", "orders", "-p", fmt.Sprint(zombiePartitions)).ok()
	stop := z.write(redis.URL())
	rng := rand.New(rand.NewPCG(*zombieSeed, 29))
	for n := range *zombieCount {
		z.more(20)
		frozen := z.leader(rng)
		began := time.Now()
		must(t, z.brokers[frozen].running.Process.Signal(syscall.SIGSTOP))
		z.leftBy(frozen)
		z.more(20)
		must(t, z.brokers[frozen].running.Process.Signal(syscall.SIGCONT))
		t.Logf("freeze %d: broker %d for %s", n+1, frozen+1, time.Since(began).Round(time.Millisecond))
		if n%2 == 0 {
			z.leads(frozen) // Otherwise the next is frozen while this one comes to.
		}
	}
	foreign := stop()
	z.compare(foreign)
	s.run("topics", "check", "orders").ok()
}

// addresses are those of the brokers but one, or of all.
func (z *zombies) addresses(but int) (out []string) {
	for i, b := range z.brokers {
		if i != but {
			out = append(out, b.address)
		}
	}
	return out
}

// leaders says how many partitions a broker leads, as one that is not frozen knows.
func (z *zombies) leaders(of int) (n, without int, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(z.addresses(of)...), kgo.RequestTimeoutOverhead(2*time.Second))
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(z.t.Context(), 5*time.Second)
	defer cancel()
	found, err := kadm.NewClient(client).ListTopics(ctx, "orders")
	if err == nil {
		err = found.Error()
	}
	for _, p := range found["orders"].Partitions {
		switch {
		case p.Leader == int32(of+1):
			n++
		case p.Leader < 0 || p.Err != nil:
			without++
		}
	}
	if len(found["orders"].Partitions) != zombiePartitions {
		err = errors.Join(err, errors.New("partitions are missing"))
	}
	return n, without, err
}

// leader chooses a broker that leads partitions.
func (z *zombies) leader(rng *rand.Rand) (broker int) {
	z.t.Helper()
	redistest.Eventually(z.t, "a broker to lead partitions", func() bool {
		broker = rng.IntN(len(z.brokers))
		n, _, err := z.leaders(broker)
		return err == nil && n > 0
	})
	return broker
}

func (z *zombies) leftBy(broker int) {
	z.t.Helper()
	redistest.Eventually(z.t, "others to lead the partitions of a frozen broker", func() bool {
		n, without, err := z.leaders(broker)
		return err == nil && n == 0 && without == 0
	})
}

func (z *zombies) leads(broker int) {
	z.t.Helper()
	redistest.Eventually(z.t, "a broker to lead partitions again", func() bool {
		n, without, err := z.leaders(broker)
		return err == nil && n > 0 && without == 0
	})
}

// more waits until more records of each partition are acknowledged.
func (z *zombies) more(records int) {
	z.t.Helper()
	count := func() (out [zombiePartitions]int) {
		z.mu.Lock()
		defer z.mu.Unlock()
		for p := range out {
			out[p] = len(z.acked[p])
		}
		return out
	}
	before := count()
	redistest.Eventually(z.t, "more records to be acknowledged", func() bool {
		now := count()
		for p := range now {
			if now[p] < before[p]+records {
				return false
			}
		}
		return true
	})
}

// write writes to all partitions until it is stopped, as a Kafka client and as a Redis client, of which it returns what that
// has added.
func (z *zombies) write(url string) (stop func() map[string]bool) {
	client, err := kgo.NewClient(kgo.SeedBrokers(z.addresses(-1)...), kgo.DefaultProduceTopic("orders"), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(50*time.Millisecond), kgo.ProduceRequestTimeout(time.Second), kgo.RequestTimeoutOverhead(time.Second),
		kgo.ProducerLinger(time.Millisecond), kgo.MaxBufferedRecords(200))
	must(z.t, err)
	option, err := rueidis.ParseURL(url)
	must(z.t, err)
	option.DisableCache = true
	other, err := rueidis.NewClient(option)
	must(z.t, err)
	z.writer = client
	ctx, cancel := context.WithCancel(z.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			for p := range int32(zombiePartitions) {
				// Once it waits for room it is not given up: that would be a gap.
				client.Produce(context.Background(), &kgo.Record{Partition: p, Value: fmt.Append(nil, i)}, func(r *kgo.Record, err error) {
					z.mu.Lock()
					defer z.mu.Unlock()
					if err != nil || string(r.Value) != fmt.Sprint(len(z.acked[r.Partition])) {
						z.failed = errors.Join(z.failed, err, fmt.Errorf("record %s of partition %d, after %d", r.Value, r.Partition, len(z.acked[r.Partition])))
						return
					}
					z.acked[r.Partition] = append(z.acked[r.Partition], r.Offset)
				})
			}
		}
	})
	foreign := map[string]bool{}
	running.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			<-tick.C
			value := fmt.Sprint("theirs", i)
			if err := other.Do(ctx, other.B().Xadd().Key(fmt.Sprint("muster:orders:", i%zombiePartitions)).Id("*").FieldValue().FieldValue("value", value).Build()).Error(); err == nil {
				foreign[value] = true
			}
		}
	})
	return func() map[string]bool {
		cancel()
		running.Wait()
		must(z.t, client.Flush(context.Background()))
		client.Close()
		other.Close()
		return foreign
	}
}

// compare reads all partitions, and compares them with what was acknowledged.
func (z *zombies) compare(foreign map[string]bool) {
	z.t.Helper()
	must(z.t, z.failed)
	client, err := kgo.NewClient(kgo.SeedBrokers(z.addresses(-1)...), kgo.ConsumeTopics("orders"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	must(z.t, err)
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(z.t.Context(), "orders")
	must(z.t, errors.Join(err, ends.Error()))
	var next [zombiePartitions]int64
	var ours [zombiePartitions]int
	theirs := 0
	done := func() bool {
		for p := range int32(zombiePartitions) {
			if end, _ := ends.Lookup("orders", p); next[p] < end.Offset {
				return false
			}
		}
		return true
	}
	for !done() {
		fetches := client.PollFetches(z.t.Context())
		must(z.t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) {
			p := r.Partition
			if r.Offset != next[p] {
				z.t.Fatalf("partition %d has offset %d where %d is next", p, r.Offset, next[p])
			}
			next[p]++
			if value := string(r.Value); strings.HasPrefix(value, "theirs") {
				theirs++
				return
			} else if value != fmt.Sprint(ours[p]) || ours[p] >= len(z.acked[p]) || z.acked[p][ours[p]] != r.Offset {
				z.t.Fatalf("partition %d has record %s at offset %d, where %d is next; %d were acknowledged", p, value, r.Offset, ours[p], len(z.acked[p]))
			}
			ours[p]++
		})
	}
	for p := range ours {
		if ours[p] != len(z.acked[p]) {
			z.t.Errorf("partition %d has %d records, and %d were acknowledged", p, ours[p], len(z.acked[p]))
		}
	}
	if theirs < len(foreign) {
		z.t.Errorf("%d entries of a Redis client are there of %d", theirs, len(foreign))
	}
	z.t.Logf("%d records of a Kafka client, and %d of a Redis client", slices.Max(ours[:]), theirs)
}
