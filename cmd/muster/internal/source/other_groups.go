package source

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/watch/groupview"
)

// DescribeOthers asks for those groups that are none of the classic protocol, of whatever
// kind. It goes past kadm for the tagged fields, in which a muster broker says more than Kafka's
// answer has a place for.
func (s *Source) DescribeOthers(ctx context.Context, described kadm.DescribedGroups) map[string]groupview.Description {
	var names []string
	for name, d := range described {
		if errors.Is(d.Err, kerr.GroupIDNotFound) || d.Err == nil && d.State == groupview.Dead {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	out := map[string]groupview.Description{}
	for _, k := range groupview.Kinds {
		for _, shard := range s.ask(ctx, &k, names) {
			if shard.Err != nil { // A broker that has no such groups does not know the request either.
				continue
			}
			for _, a := range k.Read(shard.Resp) {
				if a.Err == nil {
					a.Group.Coordinator = coordinatorOf(shard.Meta)
					out[a.Name] = groupview.Description{Group: a.Group}
				}
			}
		}
	}
	return out
}

// ask asks the coordinators of groups.
func (s *Source) ask(ctx context.Context, k *groupview.Kind, names []string) []kgo.ResponseShard {
	if !k.Unrouted {
		return s.Client.RequestSharded(ctx, k.Ask(names))
	}
	groups, at := map[int32][]string{}, map[int32]kgo.BrokerMetadata{}
	for _, c := range s.Admin.FindGroupCoordinators(ctx, names...).Sorted() {
		if c.Err == nil {
			groups[c.NodeID], at[c.NodeID] = append(groups[c.NodeID], c.Name), kgo.BrokerMetadata{NodeID: c.NodeID, Host: c.Host, Port: c.Port}
		}
	}
	var out []kgo.ResponseShard
	for _, node := range slices.Sorted(maps.Keys(groups)) {
		resp, err := s.Client.Broker(int(node)).RetriableRequest(ctx, k.Ask(groups[node]))
		out = append(out, kgo.ResponseShard{Meta: at[node], Resp: resp, Err: err})
	}
	return out
}
