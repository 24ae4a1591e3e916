package share

import (
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/group/kind"
	"muster/internal/group/modern"
)

// What was initialized may be lost: the log of the share coordinator may lose its end, that of the
// group not. Then no one could fetch, for good. So after the load, and now and then, all is
// initialized once more, under an epoch that is older than any that the group has had: that
// changes nothing of what is there. Kafka does not do so.

const (
	// confirmEvery is how often.
	confirmEvery = 5 * time.Minute
	// confirmEpoch is before modern.FirstEpoch.
	confirmEpoch = 0
)

// confirm has the share coordinator initialize what members subscribe to and it does not have any
// more.
func (g *Group) confirm(x *kind.Step) {
	if x.Now.Before(g.confirmAt) || g.isBusy(x) {
		return
	}
	var parts []partition
	for _, topic := range g.FindTopics(x.Image).Found {
		for n := range topic.Partitions {
			if p := (partition{Topic: topic.ID, Number: int32(n)}); has(g.topics.initialized, p) {
				parts = append(parts, p)
			}
		}
	}
	g.confirmAt = x.Now.Add(confirmEvery)
	if parts = modern.Sorted(parts); len(parts) > 0 {
		g.ask(x, initializeRequest(g.ID, parts, confirmEpoch, nil), parts, confirmed{})
	}
}

// confirmed is what happens when it has.
type confirmed struct{}

func (confirmed) done(x *kind.Step, g *Group, q *question) {
	for _, p := range q.parts {
		if code := q.code(p); code != 0 && code != kerr.FencedStateEpoch.Code {
			g.confirmAt = x.Now.Add(retryAfter)
		}
	}
}
