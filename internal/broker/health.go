package broker

import (
	"fmt"
	"time"

	"muster/internal/web"
)

// redisAway says since when and why Redis cannot be reached.
type redisAway struct {
	since time.Time
	err   error
}

// health says how the broker is.
func (b *Broker) health() web.Health {
	h := web.Health{Node: int32(b.cfg.Int("node.id")), Store: b.storeName()}
	c := b.leads.Load()
	switch away := b.away.Load(); {
	case away != nil:
		h.Problems = append(h.Problems, fmt.Sprintf("Redis cannot be reached since %s: %v", away.since.UTC().Format(time.RFC3339), away.err))
	case !b.up.Load():
		h.Problems = append(h.Problems, "the broker starts or stops")
	case !c.Alive():
		h.Problems = append(h.Problems, "the other brokers have not heard of this one for broker.session.timeout.ms, so it leads nothing")
	case c.Problem() != "":
		h.Problems = append(h.Problems, c.Problem())
	default:
		if n, one := b.manager.Failed(); n > 0 {
			h.Problems = append(h.Problems, fmt.Sprintf("the storage of %d partitions has failed, of which one is %s", n, one))
		}
	}
	if c != nil {
		h.Node, h.Cluster = b.node, c.Image().ClusterID
	}
	return h
}
