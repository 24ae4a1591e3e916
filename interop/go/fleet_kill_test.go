package interop

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/redistest"
)

const (
	fleetTopic  = "fleet"
	fleetLosses = 30
	zombieEvery = 5 // one loss in so many is a freeze
)

// TestAFleetLosesBrokersButNoRecordAndNoCommit has three brokers on one Redis,
// two idempotent producers, and two groups. Brokers are killed in turn, and some
// frozen for longer than their lease lasts. Nothing acknowledged is lost or
// there twice, consumption goes on soon, committed offsets never go back, and the
// groups do not rebalance: their members never stopped. (A franz-go member joins
// again, by itself, when it cannot connect to its coordinator.)
func TestAFleetLosesBrokersButNoRecordAndNoCommit(t *testing.T) {
	onlyOn(t, "redis")
	f := startFleet(t, redistest.Single(t).URL(), 3)
	createTopic(t, f.addrs[0], fleetTopic, groupPartitions)
	w := startFleetWriters(t, f, fleetTopic)
	groups := f.groups("fleet-", fleetTopic)
	commits := newCommitLog()
	var took []time.Duration
	for n := range often(fleetLosses) {
		victim := n % len(f.brokers)
		stays := f.mustStay(victim, groups)
		began := time.Now()
		if n%zombieEvery == zombieEvery-1 {
			took = append(took, f.loseForAWhile(victim, groups, w, commits))
		} else {
			f.brokers[victim].kill()
			took = append(took, goOn(t, began, groups, w))
			f.checkCommits(groups, commits)
			f.start(victim)
		}
		f.hasAll()
		stays(n)
		t.Logf("loss %d: consumption went on after %s", n, took[n].Round(time.Millisecond))
	}
	ends := w.finish()
	for _, g := range groups {
		g.reads(ends)
		g.commits(ends)
	}
	assert.NoError(t, commits.failed())
	w.history.check(t, f.client(), fleetTopic)
	slices.Sort(took)
	t.Logf("%d losses of a broker, %d records acknowledged; consumption went on after %s in the middle, %s at most, with a lease of %s",
		len(took), w.history.count(), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), fleetTTL)
	// The machine may be slow; clients that wait for a timeout of their own are
	// another matter.
	if middle := took[len(took)/2]; middle > fleetTTL+5*time.Second {
		t.Errorf("consumption went on only after %s in the middle", middle)
	}
}

// inFlight is more than the records of a partition that can be on their way when
// a broker is lost.
const inFlight = 20

// goOn waits until every group has got records of every partition that were
// written after now, and returns how long that is after began. librdkafka takes
// a second or two longer than franz-go to turn to another broker.
func goOn(t *testing.T, began time.Time, groups []*liveGroup, w *fleetWriters) time.Duration {
	t.Helper()
	last := w.history.last()
	waiting := slices.Clone(groups)
	waitFor(t, "consumption to go on", func() (err error) {
		waiting = slices.DeleteFunc(waiting, func(g *liveGroup) bool {
			for p, n := range g.delivered.each() {
				if n <= last[int32(p)]+inFlight {
					err = fmt.Errorf("%s, partition %d: %d records, %d were written when the broker was lost", g.spec.Group, p, n, last[int32(p)])
					return false
				}
			}
			t.Logf("%s went on after %s", g.spec.Group, time.Since(began).Round(time.Millisecond))
			return true
		})
		return err
	})
	return time.Since(began)
}

// mustStay notes what the members of groups were given that have no reason to
// rebalance when a broker is lost, and returns a check that they kept it.
func (f *fleet) mustStay(victim int, groups []*liveGroup) func(loss int) {
	f.t.Helper()
	before := map[*liveGroup][]int{}
	for _, g := range groups {
		if g.spec.Client != "franz-go" || f.leader("__consumer_offsets", offsetsPartition(g.spec.Group, 50)) != victim {
			before[g] = historyLengths(g.all)
		}
	}
	return func(loss int) {
		f.t.Helper()
		for g, was := range before {
			if now := historyLengths(g.all); !slices.Equal(now, was) {
				f.t.Errorf("loss %d: %s has rebalanced: %v events of its members, then %v", loss, g.spec.Group, was, now)
			}
		}
	}
}

// checkCommits fetches what is committed, which must not be less than before.
func (f *fleet) checkCommits(groups []*liveGroup, log *commitLog) {
	f.t.Helper()
	for _, g := range groups {
		var committed map[int32]int64
		waitFor(f.t, "the committed offsets", func() (err error) {
			// A client that knows nothing yet: franz-go remembers, for these
			// requests, a coordinator that it cannot connect to.
			cl, err := kgo.NewClient(kgo.SeedBrokers(f.addrs...))
			if err != nil {
				return err
			}
			defer cl.Close()
			committed, err = log.fetch(f.t.Context(), kadm.NewClient(cl), g.spec.Group)
			return err
		})
		for p, offset := range committed {
			log.ack(g.spec.Group, p, offset)
		}
	}
}

// loseForAWhile freezes a broker until others have taken over, with a Produce
// and an OffsetCommit in its socket, which it must refuse when it wakes up.
func (f *fleet) loseForAWhile(victim int, groups []*liveGroup, w *fleetWriters, commits *commitLog) time.Duration {
	t := f.t.(*testing.T)
	t.Helper()
	led := int32(-1)
	for p := range int32(groupPartitions) {
		if f.leader(fleetTopic, p) == victim {
			led = p
		}
	}
	group := f.coordinated(victim)
	produceTo, commitTo := dial(t, f.addrs[victim]), dial(t, f.addrs[victim])
	var took time.Duration
	f.freeze(victim, func() {
		began := time.Now()
		if led >= 0 {
			produceTo.send(produceRequest(fleetTopic, led, -1, batch{values: values("zombie", 1)}.encode()))
		}
		commitTo.send(simpleCommit(group, fleetTopic, 0, 1<<40))
		took = goOn(t, began, groups, w)
		f.checkCommits(groups, commits)
	})
	if led >= 0 {
		resp := produceTo.receive().(*kmsg.ProduceResponse)
		assert.Equal(t, produced(t, resp).ErrorCode, kerr.NotLeaderForPartition.Code, "a zombie answers Produce")
	}
	resp := commitTo.receive().(*kmsg.OffsetCommitResponse)
	assert.Equal(t, resp.Topics[0].Partitions[0].ErrorCode, kerr.NotCoordinator.Code, "a zombie answers OffsetCommit")
	return took
}

// coordinated returns the id of a group that a broker coordinates.
func (f *fleet) coordinated(broker int) string {
	f.t.Helper()
	const topic = "__consumer_offsets"
	for n := range 1000 {
		group := fmt.Sprintf("zombie-%d", n)
		if f.leader(topic, offsetsPartition(group, 50)) == broker {
			return group
		}
	}
	f.t.Fatalf("broker %d coordinates nothing", broker)
	return ""
}

// simpleCommit commits an offset outside of any generation.
func simpleCommit(group, topic string, partition int32, offset int64) *kmsg.OffsetCommitRequest {
	req := kmsg.NewPtrOffsetCommitRequest()
	req.Version, req.Group, req.Generation = 7, group, -1
	t := kmsg.NewOffsetCommitRequestTopic()
	t.Topic = topic
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	p.Partition, p.Offset = partition, offset
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}
