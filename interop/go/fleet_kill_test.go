package interop

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

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
// groups do not rebalance: their members never stopped.
func TestAFleetLosesBrokersButNoRecordAndNoCommit(t *testing.T) {
	onlyOn(t, "redis")
	f := startFleet(t, redistest.Single(t).URL(), 3)
	createTopic(t, f.addrs[0], fleetTopic, groupPartitions)
	w := startFleetWriters(t, f, fleetTopic)
	var groups []*liveGroup
	for _, client := range []string{"franz-go", "librdkafka"} {
		g := newGroup(t, f.addrs[0], "fleet-"+client, fleetTopic, client, "range", 30*time.Second)
		g.settles(g.join("a"), g.join("b"))
		g.movesOn()
		groups = append(groups, g)
	}
	before := []generation{groups[0].current(), groups[1].current()}
	commits := newCommitLog()
	var took []time.Duration
	for n := range fleetLosses {
		victim := n % len(f.brokers)
		if n%zombieEvery == zombieEvery-1 {
			took = append(took, f.loseForAWhile(victim, groups, commits))
			continue
		}
		began := time.Now()
		f.brokers[victim].kill()
		took = append(took, goOn(t, began, groups))
		f.checkCommits(groups, commits)
		f.start(victim)
		f.hasAll()
	}
	ends := w.finish()
	for i, g := range groups {
		g.reads(ends)
		g.commits(ends)
		if now := g.current(); now.number != before[i].number {
			t.Errorf("%s was in generation %d and is in %d: it rebalanced", g.spec.Group, before[i].number, now.number)
		}
	}
	if err := commits.failed(); err != nil {
		t.Error(err)
	}
	w.history.check(t, f.client(), fleetTopic)
	slices.Sort(took)
	t.Logf("%d losses of a broker, %d records acknowledged; consumption went on after %s in the middle, %s at most, with a lease of %s",
		fleetLosses, w.history.count(), took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond), fleetTTL)
	if middle := took[len(took)/2]; middle > fleetTTL+time.Second {
		t.Errorf("consumption went on only after %s in the middle", middle)
	}
}

// goOn waits until every group has got records of every partition that were
// written after now, and returns how long that is after began.
func goOn(t *testing.T, began time.Time, groups []*liveGroup) time.Duration {
	t.Helper()
	var before [][]int
	for _, g := range groups {
		before = append(before, g.delivered.each())
	}
	waitFor(t, "consumption to go on", func() error {
		for i, g := range groups {
			for p, n := range g.delivered.each() {
				if n <= before[i][p]+1 {
					return fmt.Errorf("%s, partition %d: %d records, as before", g.spec.Group, p, n)
				}
			}
		}
		return nil
	})
	return time.Since(began)
}

// checkCommits fetches what is committed, which must not be less than before.
func (f *fleet) checkCommits(groups []*liveGroup, log *commitLog) {
	f.t.Helper()
	for _, g := range groups {
		ctx, cancel := context.WithTimeout(f.t.Context(), groupTimeout)
		committed, err := log.fetch(ctx, f.admin, g.spec.Group)
		cancel()
		if err != nil {
			f.t.Fatal(err)
		}
		for p, offset := range committed {
			log.ack(g.spec.Group, p, offset)
		}
	}
}

// loseForAWhile freezes a broker until others have taken over, with a Produce
// and an OffsetCommit in its socket, which it must refuse when it wakes up.
func (f *fleet) loseForAWhile(victim int, groups []*liveGroup, commits *commitLog) time.Duration {
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
		took = goOn(t, began, groups)
		f.checkCommits(groups, commits)
	})
	if led >= 0 {
		resp := produceTo.receive().(*kmsg.ProduceResponse)
		if got := produced(t, resp).ErrorCode; got != kerr.NotLeaderForPartition.Code {
			t.Errorf("a zombie answers Produce with %d", got)
		}
	}
	resp := commitTo.receive().(*kmsg.OffsetCommitResponse)
	if got := resp.Topics[0].Partitions[0].ErrorCode; got != kerr.NotCoordinator.Code {
		t.Errorf("a zombie answers OffsetCommit with %d", got)
	}
	f.hasAll()
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
