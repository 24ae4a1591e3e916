package source

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

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
		for _, shard := range s.Client.RequestSharded(ctx, k.Ask(names)) {
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
