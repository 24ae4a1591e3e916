package facts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/partition"
	"muster/internal/protocol"
	"muster/internal/record"
	"muster/internal/watch/groupview"
	"muster/internal/web/problem"
)

// groupSource has the facts about groups from this broker's own handlers, by the requests
// that muster groups sends: so the API and the command say the same. Rights are the
// caller's to check.
type groupSource struct{ *Facts }

// Describe implements groupview.Source.
func (s *groupSource) Describe(ctx context.Context, names []string) (map[string]groupview.Description, error) {
	classic, err := s.classic(ctx, names)
	if err != nil {
		return nil, err
	}
	offsets, err := s.offsets(ctx, names)
	if err != nil {
		return nil, err
	}
	out := map[string]groupview.Description{}
	var others []string
	for i := range classic {
		g := &classic[i]
		switch err := kerr.ErrorForCode(g.ErrorCode); {
		case errors.Is(err, kerr.GroupIDNotFound) || err == nil && g.State == groupview.Dead:
			others = append(others, g.Group)
		case err != nil:
			out[g.Group] = groupview.Description{Err: s.GroupError(g.Group, err)}
		default:
			out[g.Group] = s.describe(g, offsets[g.Group])
		}
	}
	return out, s.others(ctx, others, offsets, out)
}

func (s *groupSource) classic(ctx context.Context, names []string) ([]kmsg.DescribeGroupsResponseGroup, error) {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 5, names
	resp, err := s.Own(ctx, req)
	if err != nil {
		return nil, err
	}
	return resp.(*kmsg.DescribeGroupsResponse).Groups, nil
}

func (s *groupSource) describe(g *kmsg.DescribeGroupsResponseGroup, committed map[groupview.TopicPartition]groupview.Commit) groupview.Description {
	out := groupview.Description{Group: groupview.Group{
		Type: groupview.TypeClassic, State: g.State, ProtocolType: g.ProtocolType, Assignor: g.Protocol, Coordinator: s.coordinator(),
	}, Committed: committed}
	for i := range g.Members {
		m := &g.Members[i]
		member := groupview.Member{ID: m.MemberID, ClientID: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/"), Instance: m.InstanceID}
		if g.ProtocolType == groupview.Consumer {
			readAssignment(&member, m.ProtocolMetadata, m.MemberAssignment)
		}
		out.Members = append(out.Members, member)
	}
	sort.Slice(out.Members, func(i, j int) bool {
		a, b := &out.Members[i], &out.Members[j]
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.ID, b.ID)) < 0
	})
	return out
}

// place is where a member stands among the others: static members first, by their
// instance ids, as muster groups shows them.
func place(m *groupview.Member) string {
	if m.Instance == nil {
		return "1"
	}
	return "0" + *m.Instance
}

// readAssignment reads what a consumer subscribes to and has. What cannot be read stays
// unknown: it comes from clients.
func readAssignment(m *groupview.Member, subscription, assignment []byte) {
	var joined kmsg.ConsumerMemberMetadata
	if joined.ReadFrom(subscription) == nil {
		m.Topics = joined.Topics
	}
	var assigned kmsg.ConsumerMemberAssignment
	if assigned.ReadFrom(assignment) != nil {
		return
	}
	for _, t := range assigned.Topics {
		m.Assigned = append(m.Assigned, groupview.Assigned{Topic: t.Topic, Partitions: t.Partitions})
	}
}

// others describes those groups that are none of the classic protocol, of whatever kind.
func (s *groupSource) others(ctx context.Context, names []string, offsets map[string]map[groupview.TopicPartition]groupview.Commit, out map[string]groupview.Description) error {
	for _, k := range groupview.Kinds {
		if len(names) == 0 {
			return nil
		}
		resp, err := s.Own(ctx, k.Ask(names))
		if err != nil {
			return err
		}
		names = nil
		for _, a := range k.Read(resp) {
			if a.Err != nil {
				out[a.Name] = groupview.Description{Err: s.GroupError(a.Name, a.Err)}
				if errors.Is(a.Err, kerr.GroupIDNotFound) {
					names = append(names, a.Name)
				}
				continue
			}
			d := groupview.Description{Group: a.Group, Committed: offsets[a.Name]}
			d.Coordinator = s.coordinator()
			out[a.Name] = d
		}
	}
	return nil
}

// offsets returns what groups have committed. Groups that have an error there have it
// when they are described, too.
func (s *groupSource) offsets(ctx context.Context, names []string) (map[string]map[groupview.TopicPartition]groupview.Commit, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = 8
	for _, name := range names {
		g := kmsg.NewOffsetFetchRequestGroup()
		g.Group = name
		protocol.AskBehind(&g.UnknownTags)
		req.Groups = append(req.Groups, g)
	}
	resp, err := s.Own(ctx, req)
	if err != nil {
		return nil, err
	}
	out := map[string]map[groupview.TopicPartition]groupview.Commit{}
	for _, g := range resp.(*kmsg.OffsetFetchResponse).Groups {
		of := map[groupview.TopicPartition]groupview.Commit{}
		for _, t := range g.Topics {
			for i := range t.Partitions {
				p := &t.Partitions[i]
				if p.ErrorCode != 0 || p.Offset < 0 {
					continue
				}
				commit := groupview.Commit{Offset: p.Offset}
				if b := protocol.GetBehind(&p.UnknownTags); b != nil {
					commit.Behind = &groupview.Count{Records: b.Records, AtLeast: b.AtLeast}
				}
				of[groupview.TopicPartition{Topic: t.Topic, Partition: p.Partition}] = commit
			}
		}
		out[g.Group] = of
	}
	return out, nil
}

// coordinator is this broker.
func (s *groupSource) coordinator() *groupview.Coordinator {
	e := s.Endpoint
	return &groupview.Coordinator{Broker: s.Node(), Address: net.JoinHostPort(e.Host, strconv.Itoa(int(e.Port)))}
}

// GroupError says why nothing is known of a group.
func (r *Facts) GroupError(name string, err error) error {
	switch {
	case errors.Is(err, kerr.GroupIDNotFound):
		return &groupview.NoGroupError{Name: name}
	case errors.Is(err, kerr.NotCoordinator), errors.Is(err, kerr.CoordinatorNotAvailable), errors.Is(err, kerr.CoordinatorLoadInProgress):
		t := r.Image().Topic(metadata.OffsetsTopic)
		if t == nil {
			return &groupview.NoGroupError{Name: name} // There never was one.
		}
		leader := t.Partitions[journal.PartitionFor(name, int32(len(t.Partitions)))].Leader
		if leader == r.Node() {
			leader = metadata.NoBroker // It is about to be loaded.
		}
		return &problem.Elsewhere{What: fmt.Sprintf("group %q", name), Broker: leader}
	}
	return fmt.Errorf("group %s: %w", name, err)
}

// Logs implements groupview.Source. Partitions that another broker leads have no bounds.
func (s *groupSource) Logs(ctx context.Context, topics []string) (map[string]groupview.Log, error) {
	image := s.Image()
	out := map[string]groupview.Log{}
	for _, name := range topics {
		t := image.Topic(name)
		if t == nil {
			continue
		}
		log := groupview.Log{Partitions: len(t.Partitions), Bounds: map[int32]groupview.Bounds{}}
		for i := range t.Partitions {
			p := s.Partition(name, int32(i))
			if p == nil || p.Refresh(ctx) != nil {
				continue
			}
			start := p.LogStartOffset() // First, so that a log never seems to end before it begins.
			log.Bounds[int32(i)] = groupview.Bounds{Start: start, End: max(p.HighWatermark(), start)}
		}
		out[name] = log
	}
	return out, ctx.Err()
}

// ageBytes is how much of a partition is read for the sake of one record; a larger batch
// is read, too.
const ageBytes = 16 << 10

// FirstTimes implements groupview.Source.
func (s *groupSource) FirstTimes(ctx context.Context, from map[groupview.TopicPartition]int64) (map[groupview.TopicPartition]time.Time, error) {
	out := map[groupview.TopicPartition]time.Time{}
	for tp, at := range from {
		if ctx.Err() != nil {
			break
		}
		p := s.Partition(tp.Topic, tp.Partition)
		if p == nil {
			continue
		}
		if t, ok := firstTime(ctx, p, at); ok {
			out[tp] = t
		}
	}
	return out, nil
}

// errFound ends a search.
var errFound = errors.New("found")

// firstTime returns the timestamp of the first record at or after an offset. Clients wrote
// the batch, and may have packed very much into it.
func firstTime(ctx context.Context, p *partition.Partition, from int64) (at time.Time, found bool) {
	_, err := eachBatch(ctx, p, from, ageBytes, func(b record.Batch) error {
		return b.Scan(func(m record.Meta) error {
			if m.Offset < from {
				return nil
			}
			at, found = time.UnixMilli(m.Timestamp), m.Timestamp >= 0
			return errFound
		})
	})
	return at, found && errors.Is(err, errFound)
}
