package interop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/redistest"
)

// fleetTTL is how long a broker of a fleet may be silent. INTEROP_LEASE=10s is for a
// machine that is so busy that brokers are for longer.
var fleetTTL = func() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("INTEROP_LEASE")); err == nil {
		return d
	}
	return time.Second
}()

// fleet is several brokers on one Redis.
type fleet struct {
	t       testing.TB
	flags   []string
	addrs   []string
	brokers []*process
	admin   *kadm.Client
}

// startFleet starts brokers on a Redis, with further flags.
func startFleet(t testing.TB, url string, brokers int, flags ...string) *fleet {
	t.Helper()
	f := &fleet{t: t, brokers: make([]*process, brokers), flags: append([]string{
		"--store", url, "--set", "muster.redis.prefix=" + redistest.Prefix(t),
		"--set", fmt.Sprintf("broker.session.timeout.ms=%d", fleetTTL.Milliseconds()), "--set", "broker.heartbeat.interval.ms=200",
	}, slices.Concat(groupSettings, flags)...)}
	for i := range brokers {
		f.addrs = append(f.addrs, fixedPort(t))
		f.start(i)
	}
	f.admin = kadm.NewClient(f.client())
	f.hasAll()
	return f
}

// client returns a client that knows all brokers.
func (f *fleet) client(opts ...kgo.Opt) *kgo.Client {
	f.t.Helper()
	return connect(f.t, f.addrs[0], append([]kgo.Opt{
		kgo.SeedBrokers(f.addrs...), kgo.MetadataMinAge(50 * time.Millisecond), kgo.RetryBackoffFn(func(int) time.Duration { return 50 * time.Millisecond }), kgo.RequestTimeoutOverhead(2 * time.Second),
	}, opts...)...)
}

// start starts a broker, also again.
func (f *fleet) start(i int) {
	f.t.Helper()
	f.brokers[i] = startMuster(f.t, append([]string{"--listen", f.addrs[i], "--set", "node.id=" + strconv.Itoa(i+1)}, f.flags...)...)
}

// hasAll waits until clients are told of all brokers, and of a leader for every
// partition.
func (f *fleet) hasAll() {
	f.t.Helper()
	waitFor(f.t, "all brokers to be in the metadata", func() error {
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		defer cancel()
		m, err := f.admin.Metadata(ctx)
		if err != nil {
			return err
		}
		if len(m.Brokers) != len(f.brokers) {
			return fmt.Errorf("there are %d", len(m.Brokers))
		}
		return m.Topics.Error()
	})
}

// groups starts a group of each of two clients, with two members, which look for
// another broker soon.
func (f *fleet) groups(prefix, topic string) (groups []*liveGroup) {
	f.t.Helper()
	for _, client := range []string{"franz-go", "librdkafka"} {
		g := newGroup(f.t, f.addrs[0], prefix+client, topic, client, "range", 30*time.Second)
		g.spec.Brisk = true
		g.settles(g.join("a"), g.join("b"))
		g.movesOn()
		groups = append(groups, g)
	}
	return groups
}

// leader returns the index of the broker that leads a partition.
func (f *fleet) leader(topic string, partition int32) int {
	f.t.Helper()
	i, _ := f.leads(topic, partition)
	return i
}

// leads returns the index of the broker that leads a partition, and its epoch. The
// broker that is asked may not have heard of the topic yet.
func (f *fleet) leads(topic string, partition int32) (leader int, epoch int32) {
	f.t.Helper()
	waitFor(f.t, "a leader of "+topic, func() error {
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		defer cancel()
		m, err := f.admin.Metadata(ctx, topic)
		if err != nil {
			return err
		}
		p, ok := m.Topics[topic].Partitions[partition]
		if !ok || p.Leader < 1 {
			return fmt.Errorf("partition %d of %s has leader %d, known: %t", partition, topic, p.Leader, ok)
		}
		leader, epoch = int(p.Leader)-1, p.LeaderEpoch
		return nil
	})
	return leader, epoch
}

// freeze stops a broker without a word for longer than its lease lasts, lets do
// run meanwhile, and has it go on.
func (f *fleet) freeze(i int, do func()) {
	f.t.Helper()
	f.brokers[i].signal(syscall.SIGSTOP)
	waitFor(f.t, "the broker to stand still", f.brokers[i].stopped)
	do()
	f.brokers[i].signal(syscall.SIGCONT)
}

// Who asks a broker that does not lead a partition is told who does, and where
// that is, so that no look at the metadata is needed (KIP-951).
func TestABrokerNamesTheLeaderInItsPlace(t *testing.T) {
	onlyOn(t, "redis")
	f := startFleet(t, redistest.Single(t).URL(), 2, "--set", "broker.session.timeout.ms=20000")
	createTopic(t, f.addrs[0], "hinted", 1)
	f.hasAll()
	leader := f.leader("hinted", 0)
	w := dial(t, f.addrs[1-leader])
	_, port, err := net.SplitHostPort(f.addrs[leader])
	must(t, err)
	req := produceRequest("hinted", 0, -1, batch{values: values("v", 1)}.encode())
	req.Version = 10
	var resp *kmsg.ProduceResponse
	waitFor(t, "the other broker to hear of the topic", func() error {
		resp = ask[*kmsg.ProduceResponse](w, req)
		if err := kerr.ErrorForCode(produced(t, resp).ErrorCode); errors.Is(err, kerr.UnknownTopicOrPartition) {
			return err
		}
		return nil
	})
	p := produced(t, resp)
	wantCode(t, "produce to the other broker", p.ErrorCode, kerr.NotLeaderForPartition)
	if p.CurrentLeader.LeaderID != int32(leader+1) || len(resp.Brokers) != 1 || strconv.Itoa(int(resp.Brokers[0].Port)) != port {
		t.Errorf("hint %+v, brokers %+v; the leader is %d at %s", p.CurrentLeader, resp.Brokers, leader+1, f.addrs[leader])
	}
}
