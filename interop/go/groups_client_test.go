package interop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// clientGroup is a group of real clients, of either protocol.
type clientGroup struct {
	t     testing.TB
	cl    *kgo.Client
	admin *kadm.Client
	spec  memberSpec // what all members have in common
	to    audience
	all   []*memberProcess // everyone who ever joined
}

// anyClient stands for one client after the other. They can be in a group
// together, since they mean the same by an assignor's name; KafkaJS has names of
// its own.
const anyClient = "mixed"

var mixedClients = []string{"franz-go", "librdkafka", "sarama", "kafka-go"}

// join starts a member. Its name is its client id, by which the broker knows it.
func (g *clientGroup) join(name string) *memberProcess {
	g.t.Helper()
	return g.joinStatic(name, "")
}

// joinStatic starts a member with a group instance id.
func (g *clientGroup) joinStatic(name, instance string) *memberProcess {
	g.t.Helper()
	spec := g.spec
	spec.ClientID, spec.InstanceID = name, instance
	if spec.Client == anyClient {
		spec.Client = mixedClients[len(g.all)%len(mixedClients)]
	}
	return g.start(spec)
}

func (g *clientGroup) start(spec memberSpec) *memberProcess {
	g.t.Helper()
	m := startMember(g.t, spec, g.to)
	g.all = append(g.all, m)
	return m
}

// groupView is a group as the broker describes it.
type groupView struct {
	consumer bool // ConsumerGroupDescribe shows it, DescribeGroups if not
	state    string
	assignor string
	epoch    int32
	members  int
	classic  int               // members of the classic protocol
	owners   map[string][]slot // by client id
	moving   error             // a member that is yet to get or to give up something
}

// view asks for the group by the protocol that its members speak.
func (g *clientGroup) view() (groupView, error) {
	g.t.Helper()
	if g.spec.Consumer {
		return g.consumerView()
	}
	return g.classicView()
}

// classicView returns the group as DescribeGroups shows it.
func (g *clientGroup) classicView() (groupView, error) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), groupTimeout)
	defer cancel()
	groups, err := g.admin.DescribeGroups(ctx, g.spec.Group)
	if err != nil {
		return groupView{}, err
	}
	d := groups[g.spec.Group]
	v := groupView{state: d.State, assignor: d.Protocol, members: len(d.Members), classic: len(d.Members), owners: map[string][]slot{}}
	for i := range d.Members {
		m := &d.Members[i]
		v.owners[m.ClientID] = nil
		assigned, ok := m.Assigned.AsConsumer()
		if !ok {
			continue
		}
		for _, t := range assigned.Topics {
			for _, p := range t.Partitions {
				v.owners[m.ClientID] = append(v.owners[m.ClientID], slot{t.Topic, p})
			}
		}
		slices.SortFunc(v.owners[m.ClientID], slotOrder)
	}
	if v.state == "Stable" {
		g.checkOwners(v)
	}
	return v, d.Err
}

// consumerView returns the group as ConsumerGroupDescribe shows it.
func (g *clientGroup) consumerView() (groupView, error) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), groupTimeout)
	defer cancel()
	groups, err := g.admin.DescribeConsumerGroups(ctx, g.spec.Group)
	if err != nil {
		return groupView{}, err
	}
	d := groups[g.spec.Group]
	v := groupView{consumer: true, state: d.State, assignor: d.AssignorName, epoch: d.Epoch, members: len(d.Members), owners: map[string][]slot{}}
	for i := range d.Members {
		m := &d.Members[i]
		if m.MemberType == 0 {
			v.classic++
		}
		owned := slots(m.Assignment)
		if target := slots(m.TargetAssignment); !slices.Equal(owned, target) {
			v.moving = fmt.Errorf("member %s has %v and is to have %v", m.ClientID, owned, target)
		}
		v.owners[m.ClientID] = owned
	}
	g.checkOwners(v)
	return v, d.Err
}

// checkOwners fails the test if two members have the same partition.
func (g *clientGroup) checkOwners(v groupView) {
	g.t.Helper()
	by := map[slot]string{}
	for _, name := range slices.Sorted(maps.Keys(v.owners)) {
		for _, s := range v.owners[name] {
			if other, taken := by[s]; taken {
				g.t.Errorf("%s: %s-%d is assigned to %s and to %s", g.spec.Group, s.topic, s.partition, other, name)
			}
			by[s] = name
		}
	}
}

// settled describes the group, and says what keeps it from being Stable with exactly
// these members, who have everything, and know it.
func (g *clientGroup) settled(view func() (groupView, error), members []*memberProcess, said func(*memberProcess) []slot, everything []slot) (groupView, error) {
	g.t.Helper()
	for _, m := range members {
		must(g.t, m.trouble())
	}
	v, err := view()
	if err != nil {
		return v, err
	}
	return v, v.settled(members, said, everything)
}

func (v *groupView) settled(members []*memberProcess, said func(*memberProcess) []slot, everything []slot) error {
	if v.moving != nil {
		return v.moving
	}
	if v.state != "Stable" || v.members != len(members) || len(v.owners) != len(members) {
		return fmt.Errorf("the group is %s with members %v, want %d", v.state, slices.Sorted(maps.Keys(v.owners)), len(members))
	}
	var all []slot
	for _, m := range members {
		owned, ok := v.owners[m.spec.ClientID]
		if thinks := said(m); !ok || !slices.Equal(thinks, owned) {
			return fmt.Errorf("member %s thinks that it has %v, the broker thinks %v, known: %t", m.spec.ClientID, thinks, owned, ok)
		}
		all = append(all, owned...)
	}
	slices.SortFunc(all, slotOrder)
	if !slices.Equal(all, everything) {
		return fmt.Errorf("all members together have %v, want %v", all, everything)
	}
	return nil
}

// becomes waits for a state.
func (g *clientGroup) becomes(state string) {
	g.t.Helper()
	waitFor(g.t, g.spec.Group+" to be "+state, func() error {
		v, err := g.view()
		if err == nil && v.state != state {
			err = fmt.Errorf("the group is %s with %d members", v.state, v.members)
		}
		return err
	})
}

// isEmpty waits until the group has no members.
func (g *clientGroup) isEmpty() {
	g.t.Helper()
	g.becomes("Empty")
}

// commitment is a committed offset.
type commitment struct {
	at int64
	by string // the member, "" if its client does not tell
}

// commitments returns the committed offsets.
func (g *clientGroup) commitments() (map[slot]int64, error) {
	committed, err := g.committers()
	out := make(map[slot]int64, len(committed))
	for s, c := range committed {
		out[s] = c.at
	}
	return out, err
}

// committers returns the committed offsets, with who committed them: that is what
// members have as the metadata of their commits.
func (g *clientGroup) committers() (map[slot]commitment, error) {
	ctx, cancel := context.WithTimeout(g.t.Context(), groupTimeout)
	defer cancel()
	fetched, err := g.admin.FetchOffsets(ctx, g.spec.Group)
	if err == nil {
		err = fetched.Error()
	}
	if err != nil {
		return nil, err
	}
	committed := map[slot]commitment{}
	fetched.Each(func(o kadm.OffsetResponse) { committed[slot{o.Topic, o.Partition}] = commitment{o.At, o.Metadata} })
	return committed, nil
}
