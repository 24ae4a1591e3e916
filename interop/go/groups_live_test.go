package interop

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"muster/internal/assert"
)

// groupTimeout bounds one wait for a group or a client. It is long because
// machines that run tests are slow at times; nothing is measured by it.
const groupTimeout = 3 * time.Minute

// groupSettings let a group start at once, and have members with short session
// timeouts. The log of groups is not compacted, since tests read it to see which
// generations there were.
var groupSettings = []string{
	"--set", "group.initial.rebalance.delay.ms=0", "--set", "group.min.session.timeout.ms=100", "--set", "log.cleaner.backoff.ms=3600000",
}

// waitFor waits until a check passes, and fails the test with the check's last
// error if it does not.
func waitFor(t testing.TB, what string, check func() error) {
	t.Helper()
	deadline := time.Now().Add(groupTimeout)
	for {
		err := check()
		if err == nil {
			return
		}
		assert.MustFalse(t, time.Now().After(deadline), "waited %s for %s: %v", groupTimeout, what, err)
		<-time.After(50 * time.Millisecond)
	}
}

// liveGroup is a group of classic members on a topic of groupPartitions partitions.
type liveGroup struct {
	clientGroup
	delivered *deliveries
}

// newGroup prepares a group; the topic must be there.
func newGroup(t testing.TB, addr, group, topic, client, assignor string, session time.Duration) *liveGroup {
	t.Helper()
	cl, delivered := connect(t, addr), newDeliveries()
	return &liveGroup{delivered: delivered, clientGroup: clientGroup{
		t: t, cl: cl, admin: kadm.NewClient(cl), to: delivered,
		spec: memberSpec{
			Client: client, Addr: addr, Group: group, Topic: topic, Assignor: assignor,
			SessionMillis: int(session.Milliseconds()), HeartbeatMillis: 200, RebalanceMillis: int(max(session, 30*time.Second).Milliseconds()),
		},
	}}
}

func (g *liveGroup) cooperative() bool { return g.spec.Assignor == "cooperative-sticky" }

// settles waits until the group is Stable with exactly these members, every
// partition has an owner, and the members know. It returns who owns what.
func (g *liveGroup) settles(members ...*memberProcess) map[string][]int32 {
	g.t.Helper()
	var v groupView
	waitFor(g.t, g.spec.Group+" to settle", func() (err error) {
		v, err = g.settled(g.view, members, (*memberProcess).owns, slotsOf(g.spec.Topic, groupPartitions))
		return err
	})
	owners := map[string][]int32{}
	for name, owned := range v.owners {
		owners[name] = nil
		for _, s := range owned {
			owners[name] = append(owners[name], s.partition)
		}
	}
	return owners
}

// movesOn waits until the committed offset of each partition has passed what is
// now its end: all partitions are being read, and all members commit.
func (g *liveGroup) movesOn() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), groupTimeout)
	defer cancel()
	ends, err := endOffsets(ctx, g.cl, g.spec.Topic)
	must(g.t, err)
	waitFor(g.t, g.spec.Group+" to move on", func() error {
		committed, err := g.committed()
		if err != nil {
			return err
		}
		for p, end := range ends {
			if committed[p] <= end {
				return fmt.Errorf("partition %d: committed %d, the end was %d", p, committed[p], end)
			}
		}
		return nil
	})
}

// reads waits until every record before the end offsets was delivered to some
// member.
func (g *liveGroup) reads(ends map[int32]int64) {
	g.t.Helper()
	waitFor(g.t, g.spec.Group+" to read everything", func() error { return g.delivered.missing(ends) })
}

// commits waits until the committed offsets are these.
func (g *liveGroup) commits(ends map[int32]int64) {
	g.t.Helper()
	waitFor(g.t, g.spec.Group+" to commit everything", func() error {
		committed, err := g.committed()
		if err == nil && !maps.Equal(committed, ends) {
			err = fmt.Errorf("committed %v, the ends are %v", committed, ends)
		}
		return err
	})
}

// committed returns the committed offsets of the topic.
func (g *liveGroup) committed() (map[int32]int64, error) {
	all, err := g.commitments()
	if err != nil {
		return nil, err
	}
	committed := map[int32]int64{}
	for s, offset := range all {
		if s.topic == g.spec.Topic {
			committed[s.partition] = offset
		}
	}
	return committed, nil
}
