package interop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// groupTimeout bounds one wait for a group or a client. It is long because
// machines that run tests are slow at times; nothing is measured by it.
const groupTimeout = 90 * time.Second

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
		if time.Now().After(deadline) {
			t.Fatalf("waited %s for %s: %v", groupTimeout, what, err)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// liveGroup is a group of real clients on a topic of groupPartitions partitions.
type liveGroup struct {
	t         testing.TB
	cl        *kgo.Client
	admin     *kadm.Client
	spec      memberSpec // what all members have in common
	delivered *deliveries
	all       []*memberProcess // everyone who ever joined
}

// newGroup prepares a group; the topic must be there.
func newGroup(t testing.TB, addr, group, topic, client, assignor string, session time.Duration) *liveGroup {
	t.Helper()
	cl := connect(t, addr)
	return &liveGroup{
		t: t, cl: cl, admin: kadm.NewClient(cl), delivered: newDeliveries(),
		spec: memberSpec{
			Client: client, Addr: addr, Group: group, Topic: topic, Assignor: assignor,
			SessionMillis: int(session.Milliseconds()), HeartbeatMillis: 200, RebalanceMillis: int(max(session, 30*time.Second).Milliseconds()),
		},
	}
}

func (g *liveGroup) cooperative() bool { return g.spec.Assignor == "cooperative-sticky" }

// anyClient stands for one client after the other. They can be in a group
// together, since they mean the same by an assignor's name; KafkaJS has names of
// its own.
const anyClient = "mixed"

var mixedClients = []string{"franz-go", "librdkafka", "sarama", "kafka-go"}

// join starts a member. Its name is its client id, by which the broker knows it.
func (g *liveGroup) join(name string) *memberProcess {
	g.t.Helper()
	return g.joinStatic(name, "")
}

// joinStatic starts a member with a group instance id.
func (g *liveGroup) joinStatic(name, instance string) *memberProcess {
	g.t.Helper()
	spec := g.spec
	spec.ClientID, spec.InstanceID = name, instance
	if spec.Client == anyClient {
		spec.Client = mixedClients[len(g.all)%len(mixedClients)]
	}
	m := startMember(g.t, spec, g.delivered)
	g.all = append(g.all, m)
	return m
}

// describe returns the group as DescribeGroups shows it.
func (g *liveGroup) describe() (kadm.DescribedGroup, error) {
	ctx, cancel := context.WithTimeout(g.t.Context(), groupTimeout)
	defer cancel()
	groups, err := g.admin.DescribeGroups(ctx, g.spec.Group)
	if err != nil {
		return kadm.DescribedGroup{}, err
	}
	d := groups[g.spec.Group]
	return d, d.Err
}

// owners returns the assignment of a Stable group by client id, and fails the
// test if two members have the same partition.
func (g *liveGroup) owners(d kadm.DescribedGroup) map[string][]int32 {
	g.t.Helper()
	owners := map[string][]int32{}
	by := map[int32]string{}
	for i := range d.Members {
		m := &d.Members[i]
		owners[m.ClientID] = nil
		assigned, ok := m.Assigned.AsConsumer()
		if !ok {
			continue
		}
		for _, t := range assigned.Topics {
			for _, p := range t.Partitions {
				if other, taken := by[p]; taken {
					g.t.Errorf("%s: partition %d is assigned to %s and to %s", g.spec.Group, p, other, m.ClientID)
				}
				by[p] = m.ClientID
				owners[m.ClientID] = append(owners[m.ClientID], p)
			}
		}
		slices.Sort(owners[m.ClientID])
	}
	return owners
}

// settles waits until the group is Stable with exactly these members, every
// partition has an owner, and the members know. It returns who owns what.
func (g *liveGroup) settles(members ...*memberProcess) map[string][]int32 {
	g.t.Helper()
	var owners map[string][]int32
	waitFor(g.t, g.spec.Group+" to settle", func() (err error) {
		owners, err = g.settled(members)
		return err
	})
	return owners
}

func (g *liveGroup) settled(members []*memberProcess) (map[string][]int32, error) {
	for _, m := range members {
		if err := m.trouble(); err != nil {
			g.t.Fatal(err)
		}
	}
	d, err := g.describe()
	if err != nil {
		return nil, err
	}
	if d.State != "Stable" {
		return nil, fmt.Errorf("the group is %s with %d members", d.State, len(d.Members))
	}
	owners := g.owners(d)
	if len(d.Members) != len(members) || len(owners) != len(members) {
		return nil, fmt.Errorf("the group has members %v, want %d", slices.Sorted(maps.Keys(owners)), len(members))
	}
	partitions := 0
	for _, m := range members {
		owned, ok := owners[m.spec.ClientID]
		if !ok {
			return nil, fmt.Errorf("the group has members %v, without %s", slices.Sorted(maps.Keys(owners)), m.spec.ClientID)
		}
		if got := m.owns(); !slices.Equal(got, owned) {
			return nil, fmt.Errorf("member %s thinks that it owns %v, the broker thinks %v", m.spec.ClientID, got, owned)
		}
		partitions += len(owned)
	}
	if partitions != groupPartitions {
		return nil, fmt.Errorf("%d of %d partitions have an owner: %v", partitions, groupPartitions, owners)
	}
	return owners, nil
}

// isEmpty waits until the group has no members.
func (g *liveGroup) isEmpty() {
	g.t.Helper()
	waitFor(g.t, g.spec.Group+" to become Empty", func() error {
		d, err := g.describe()
		if err == nil && d.State != "Empty" {
			err = fmt.Errorf("the group is %s with %d members", d.State, len(d.Members))
		}
		return err
	})
}

// movesOn waits until the committed offset of each partition has passed what is
// now its end: all partitions are being read, and all members commit.
func (g *liveGroup) movesOn() {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), groupTimeout)
	defer cancel()
	ends, err := endOffsets(ctx, g.cl, g.spec.Topic)
	if err != nil {
		g.t.Fatal(err)
	}
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

// committed returns the committed offsets.
func (g *liveGroup) committed() (map[int32]int64, error) {
	ctx, cancel := context.WithTimeout(g.t.Context(), groupTimeout)
	defer cancel()
	fetched, err := g.admin.FetchOffsets(ctx, g.spec.Group)
	if err == nil {
		err = fetched.Error()
	}
	if err != nil {
		return nil, err
	}
	committed := map[int32]int64{}
	fetched.Each(func(o kadm.OffsetResponse) {
		if o.Topic == g.spec.Topic {
			committed[o.Partition] = o.At
		}
	})
	return committed, nil
}
