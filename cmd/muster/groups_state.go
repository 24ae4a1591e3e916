package main

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The states and the protocol type that matter here, in Kafka's words.
const (
	stateStable     = "Stable"
	stateEmpty      = "Empty"
	stateDead       = "Dead" // There is no such group.
	statePreparing  = "PreparingRebalance"
	stateCompleting = "CompletingRebalance"
	typeConsumer    = "consumer"
)

// groupState is what the broker tells of a group. The fields are those of
// muster groups describe --json.
type groupState struct {
	Name         string            `json:"name"`
	State        string            `json:"state"`
	ProtocolType string            `json:"protocol_type"`
	Assignor     string            `json:"assignor"`
	Coordinator  *groupCoordinator `json:"coordinator"`
	Members      []groupMember     `json:"members"`
	Partitions   []groupPartition  `json:"partitions"`
	TotalLag     *int64            `json:"total_lag"`
	Uncommitted  int               `json:"uncommitted_partitions"` // Nothing of them is in the lag.
}

type groupCoordinator struct {
	Broker  int32  `json:"broker"`
	Address string `json:"address"`
}

// groupMember is a member. The broker tells topics and assignments only while
// the group is Stable; otherwise they are nil.
type groupMember struct {
	Member   string          `json:"member_id"`
	ClientID string          `json:"client_id"`
	Host     string          `json:"host"`
	Instance *string         `json:"instance_id"`
	Topics   []string        `json:"topics"`
	Assigned []assignedTopic `json:"assigned"`
}

type assignedTopic struct {
	Topic      string  `json:"topic"`
	Partitions []int32 `json:"partitions"`
}

// groupPartition is a partition that the group reads, or has read. What is not
// known is nil; so is the lag if nothing is committed.
type groupPartition struct {
	Topic      string   `json:"topic"`
	Partition  int32    `json:"partition"`
	Committed  *int64   `json:"committed"`
	LogStart   *int64   `json:"log_start_offset"`
	LogEnd     *int64   `json:"log_end_offset"`
	Lag        *int64   `json:"lag"`
	LagSeconds *float64 `json:"lag_seconds"`
	Owner      *string  `json:"owner"`
}

// groupLoader asks for the state of groups.
type groupLoader struct {
	admin *kadm.Client
	logs  *topicLogs
}

func newGroupLoader(client *kgo.Client) *groupLoader {
	return &groupLoader{kadm.NewClient(client), newTopicLogs(client)}
}

// load returns the state of groups by name, and an error for each that it cannot
// tell of. It takes a fixed number of requests, however many groups there are.
func (l *groupLoader) load(ctx context.Context, names []string) (map[string]*groupState, map[string]error, error) {
	described, err := l.admin.DescribeGroups(ctx, names...)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err != nil && len(described) == 0 {
		return nil, nil, plain(err)
	}
	// The offsets come before the ends of the logs, or a commit that falls
	// between the two would seem to be beyond the end.
	offsets := l.admin.FetchManyOffsets(ctx, names...)
	states, failed := map[string]*groupState{}, map[string]error{}
	topics := map[string]bool{}
	for _, name := range names {
		d, ok := described[name]
		switch {
		case !ok:
			failed[name] = groupError(name, cmp.Or(err, errNoAnswer))
		case d.Err != nil:
			failed[name] = groupError(name, d.Err)
		case d.State == stateDead:
			failed[name] = &noGroupError{name}
		case offsets[name].Err != nil:
			failed[name] = groupError(name, offsets[name].Err)
		default:
			states[name] = newGroupState(&d)
			for _, topic := range slices.Concat(d.JoinTopics(), slices.Collect(maps.Keys(offsets[name].Fetched))) {
				topics[topic] = true
			}
		}
	}
	if err := l.logs.load(ctx, slices.Sorted(maps.Keys(topics))); err != nil {
		return nil, nil, err
	}
	for name, g := range states {
		l.addPartitions(g, offsets[name].Fetched)
	}
	return states, failed, nil
}

// one returns the state of one group, nil if there is none.
func (l *groupLoader) one(ctx context.Context, name string) (*groupState, error) {
	states, failed, err := l.load(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	var none *noGroupError
	if err := failed[name]; err != nil && !errors.As(err, &none) {
		return nil, err
	}
	return states[name], nil
}

func newGroupState(d *kadm.DescribedGroup) *groupState {
	g := &groupState{
		Name: d.Group, State: d.State, ProtocolType: d.ProtocolType, Assignor: d.Protocol,
		Members: []groupMember{}, Partitions: []groupPartition{},
	}
	if c := d.Coordinator; c.Host != "" {
		g.Coordinator = &groupCoordinator{c.NodeID, c.Host + ":" + strconv.Itoa(int(c.Port))}
	}
	for _, m := range d.Members {
		out := groupMember{Member: m.MemberID, ClientID: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/"), Instance: m.InstanceID}
		if g.tells() {
			joined, _ := m.Join.AsConsumer()
			out.Topics = append([]string{}, joined.Topics...)
			slices.Sort(out.Topics)
			assigned, _ := m.Assigned.AsConsumer()
			out.Assigned = []assignedTopic{}
			for _, t := range assigned.Topics {
				slices.Sort(t.Partitions)
				out.Assigned = append(out.Assigned, assignedTopic{t.Topic, t.Partitions})
			}
			slices.SortFunc(out.Assigned, func(a, b assignedTopic) int { return cmp.Compare(a.Topic, b.Topic) })
		}
		g.Members = append(g.Members, out)
	}
	return g
}

// tells says whether the broker tells what members read: it does when the group
// is Stable, and we understand it when they are consumers.
func (g *groupState) tells() bool { return g.State == stateStable && g.ProtocolType == typeConsumer }

// rebalances says whether a rebalance is under way.
func (g *groupState) rebalances() bool {
	return g.State == statePreparing || g.State == stateCompleting
}

// protocol words the protocol type with the assignor.
func (g *groupState) protocol() string {
	switch {
	case g.ProtocolType == "":
		return "-"
	case g.Assignor == "":
		return g.ProtocolType
	}
	return g.ProtocolType + "/" + g.Assignor
}

// topics returns the topics of the group's partitions.
func (g *groupState) topics() []string {
	var out []string
	for _, p := range g.Partitions { // They are sorted.
		if len(out) == 0 || out[len(out)-1] != p.Topic {
			out = append(out, p.Topic)
		}
	}
	return out
}

// subscribed returns the topics that members subscribe to.
func (g *groupState) subscribed() []string {
	set := map[string]bool{}
	for _, m := range g.Members {
		for _, topic := range m.Topics {
			set[topic] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// partitions is how many partitions a member has.
func (m *groupMember) partitions() int {
	n := 0
	for _, t := range m.Assigned {
		n += len(t.Partitions)
	}
	return n
}
