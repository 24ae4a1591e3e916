package interop

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/internal/redistest"
)

// copySite is where copying is done, and what can be lost there.
type copySite interface {
	addresses() []string
	// losses says how many there are in a round.
	losses(rng *rand.Rand) int
	// lose has something lost and come back, and says what.
	lose(t *testing.T, rng *rand.Rand) string
}

var copySites = map[string]func(t *testing.T) copySite{
	"disk": newDiskSite, "redis": newFleetSite,
	"redis-sentinel": func(t *testing.T) copySite { return newFailoverSite(t, redistest.Sentinel(t)) },
	"redis-cluster":  func(t *testing.T) copySite { return newFailoverSite(t, redistest.Cluster(t)) },
}

// copySettings end transactions soon that are over their time. The internal topics
// are compacted meanwhile, as they are in the long run.
var copySettings = []string{
	"--set", "group.initial.rebalance.delay.ms=0", "--set", "transaction.abort.timed.out.transaction.cleanup.interval.ms=100",
	"--set", "group.min.session.timeout.ms=100", "--set", "log.cleaner.backoff.ms=1000",
	"--set", "transaction.state.log.segment.bytes=65536", "--set", "offsets.topic.segment.bytes=65536",
}

// diskSite is one broker on disk.
type diskSite struct {
	broker     *process
	data, addr string
	settings   []string
}

func newDiskSite(t *testing.T) copySite { return startDiskSite(t, copySettings...) }

func startDiskSite(t *testing.T, settings ...string) *diskSite {
	s := &diskSite{data: t.TempDir(), addr: fixedPort(t), settings: settings}
	s.start(t)
	return s
}

func (s *diskSite) start(t *testing.T) {
	s.broker = serve(t, s.data, append([]string{"--listen", s.addr}, s.settings...)...)
}

func (s *diskSite) addresses() []string       { return []string{s.addr} }
func (s *diskSite) losses(rng *rand.Rand) int { return 3 + rng.IntN(3) }

func (s *diskSite) lose(t *testing.T, _ *rand.Rand) string {
	s.broker.kill()
	s.start(t)
	return "killed"
}

// fleetSite is three brokers on a Redis.
type fleetSite struct{ *fleet }

func newFleetSite(t *testing.T) copySite {
	return fleetSite{startFleet(t, redistest.Single(t).URL(), 3, copySettings...)}
}

func (s fleetSite) addresses() []string       { return s.addrs }
func (s fleetSite) losses(rng *rand.Rand) int { return 2 + rng.IntN(2) }

func (s fleetSite) lose(_ *testing.T, rng *rand.Rand) string {
	return s.loseBroker(rng, rng.IntN(len(s.brokers)))
}

// loseBroker kills a broker, and starts it again at once or when others have taken
// over; or it freezes it for longer than its lease lasts.
func (s fleetSite) loseBroker(rng *rand.Rand, victim int) string {
	away := time.Duration(rng.IntN(2000)) * time.Millisecond
	if rng.IntN(4) == 0 {
		away += fleetTTL
		s.freeze(victim, func() { <-time.After(away) })
		return fmt.Sprintf("broker %d frozen for %s", victim+1, away)
	}
	s.brokers[victim].kill()
	<-time.After(away)
	s.fleet.start(victim)
	return fmt.Sprintf("broker %d killed for %s", victim+1, away)
}

// failoverSite is three brokers on a Redis with replicas, one of which has what is
// acknowledged. A primary is lost: the only one, or that of a third of a cluster.
type failoverSite struct {
	*fleet
	server *redistest.Server
}

// sentinelPatience is long enough that sentinels on a busy machine do not replace a
// primary that lives: what the other replica acknowledges meanwhile would be lost.
const sentinelPatience = 5 * time.Second

func newFailoverSite(t *testing.T, server *redistest.Server) copySite {
	for _, n := range server.Sentinels {
		_, err := n.Do("SENTINEL", "SET", redistest.MasterName, "down-after-milliseconds", strconv.FormatInt(sentinelPatience.Milliseconds(), 10))
		must(t, err)
	}
	settings := append([]string{"--set", "min.insync.replicas=2"}, copySettings...)
	return failoverSite{fleet: startFleet(t, server.URL(), 3, settings...), server: server}
}

func (s failoverSite) addresses() []string   { return s.addrs }
func (s failoverSite) losses(*rand.Rand) int { return 1 }

func (s failoverSite) lose(t *testing.T, rng *rand.Rand) string {
	s.wantReplicated(t)
	began := time.Now()
	key := strconv.Itoa(rng.Int())
	old := s.server.Primary(t, key)
	old.Kill()
	next := s.server.Primary(t, key)
	took := time.Since(began)
	old.Start(t)
	replicas := 1
	if s.server.Kind == redistest.KindSentinel {
		replicas = 2
		// It would be told so by a sentinel, some seconds later.
		if _, err := old.Do("REPLICAOF", "127.0.0.1", strconv.Itoa(next.Port)); err != nil {
			t.Fatal(err)
		}
	}
	s.server.AwaitReplicas(t, next, replicas)
	return fmt.Sprintf("the primary on port %d killed, that on port %d is the next after %s", old.Port, next.Port, took.Round(time.Millisecond))
}

// wantReplicated fails unless all topics, the internal ones too, are to have two copies
// of what is acknowledged.
func (s failoverSite) wantReplicated(t *testing.T) {
	t.Helper()
	const setting = "min.insync.replicas"
	waitFor(t, "the topics' settings", func() error {
		topics, err := s.admin.ListTopicsWithInternal(t.Context())
		if err != nil {
			return err
		}
		settings, err := s.admin.DescribeTopicConfigs(t.Context(), topics.Names()...)
		if err != nil {
			return err
		}
		for _, topic := range append([]string{"__transaction_state", "__consumer_offsets"}, topics.Names()...) {
			of, err := settings.On(topic, nil)
			if err = errors.Join(err, of.Err); err != nil {
				return err
			}
			at := slices.IndexFunc(of.Configs, func(c kadm.Config) bool { return c.Key == setting })
			if at < 0 || of.Configs[at].MaybeValue() != "2" {
				return fmt.Errorf("%s of %s is not 2", setting, topic)
			}
		}
		return nil
	})
}
