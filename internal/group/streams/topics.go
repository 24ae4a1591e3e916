package streams

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/kind"
	"muster/internal/group/streams/topology"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// TopicNames lists the topics of the topology.
func (g *Group) TopicNames() []string {
	if g.Topology == nil {
		return nil
	}
	return topology.Names(g.Topology)
}

// counts says how many partitions a topic has.
func counts(image *metadata.Image) func(string) int32 {
	return func(name string) int32 {
		if t := image.Topic(name); t != nil {
			return int32(len(t.Partitions))
		}
		return 0
	}
}

// look resolves the topology, unless that was done with this image already; nil if there is
// nothing to resolve.
func (g *Group) look(image *metadata.Image) *topology.Resolved {
	if g.Topology == nil || image == nil {
		return nil
	}
	if l := &g.resolved; l.image != image || l.of != g.Topology {
		*l = look{topology.Resolve(g.Topology, counts(image)), image, g.Topology}
	}
	return g.resolved.Resolved
}

// find finds out what the next epoch will have.
func (g *Group) find(x *kind.Step) {
	r := g.look(x.Image)
	if r == nil {
		return
	}
	if g.next = (found{noTopology, g.Config(x).Of(g.ID).Standbys}); r.IsReady() {
		g.next.validated = g.Topology.Epoch
	}
	g.makeRoom(x, r)
}

// makeRoom counts the tasks that there are in the next epoch. If there is no room for them, all
// stay as they are, until there is.
func (g *Group) makeRoom(x *kind.Step, r *topology.Resolved) {
	n := int64(0)
	if g.Present > 0 && r.IsReady() {
		n = r.Tasks(g.next.standbys)
	}
	if g.crowded = !x.HasRoom(g.ID, (n-g.tasks)*taskWeight); !g.crowded {
		g.tasks = n
	}
}

// Forget notes what the epoch will have that a member which is gone is a reason for.
func (g *Group) Forget(x *kind.Step) {
	if g.find(x); g.Present == 0 {
		g.stopDelay(x)
		g.shutdown = ""
	}
}

// Internal topics that are missing are created with the rights of whoever's heartbeat finds
// that: who has none is told so, and the next one's heartbeat may have them.

// topics is those that are being created, and that could not be.
type topics struct {
	creating uint64             // the request that is under way, 0 if none is
	denied   []string           // which the last to ask may not create
	failed   map[string]failure // by name
}

// failure is why a topic could not be created, and until when that is not tried again.
type failure struct {
	why   string
	until time.Time
}

// restIntervals is for how many heartbeat intervals a topic that could not be created is not
// tried again, as in Kafka.
const restIntervals = 2

// createTimeoutMillis is how long the broker may take to create topics.
const createTimeoutMillis = 5000

// Refresh has missing internal topics created.
func (g *Group) Refresh(x *kind.Step) {
	r := g.look(x.Image)
	if r == nil || len(r.Missing) == 0 {
		g.topics.denied, g.topics.failed = nil, nil
		return
	}
	if g.topics.creating != 0 {
		return
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = createTopicsVersion, createTimeoutMillis
	c := &creation{group: g}
	g.topics.denied = nil
	for i := range r.Missing {
		t := &r.Missing[i]
		switch f, failed := g.topics.failed[t.Name]; {
		case !x.Image.MayCreate(t.Name, x.Req.Asker):
			g.topics.denied = append(g.topics.denied, t.Name)
		case failed && x.Now.Before(f.until):
		default:
			c.names = append(c.names, t.Name)
			req.Topics = append(req.Topics, creatable(t))
		}
	}
	if len(c.names) > 0 {
		g.topics.creating = x.Ask(c, machine.Self, req)
		c.id = g.topics.creating
	}
}

// createTopicsVersion is one that has defaults.
const createTopicsVersion = 6

func creatable(t *topology.Internal) kmsg.CreateTopicsRequestTopic {
	out := kmsg.NewCreateTopicsRequestTopic()
	out.Topic, out.NumPartitions, out.ReplicationFactor = t.Name, t.Partitions, t.Replication
	if t.Replication <= 0 {
		out.ReplicationFactor = -1
	}
	for _, kv := range t.Configs {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = kv.Key, &kv.Value
		out.Configs = append(out.Configs, c)
	}
	return out
}

// creation is topics that are being created.
type creation struct {
	id    uint64
	group *Group
	names []string
}

// Answered notes which topics could not be created. That the others are there the image says.
func (c *creation) Answered(x *kind.Step, sent machine.Sent) {
	g := c.group
	if g.Gone || g.topics.creating != c.id {
		return
	}
	g.topics.creating = 0
	f := failure{until: x.Now.Add(restIntervals * g.Config(x).Of(g.ID).Heartbeat)}
	failed := map[string]string{}
	resp, ok := sent.Msg.(*kmsg.CreateTopicsResponse)
	if !ok {
		for _, name := range c.names {
			failed[name] = "no answer"
			if sent.Err != nil {
				failed[name] = sent.Err.Error()
			}
		}
	} else {
		for _, t := range resp.Topics {
			if err := kerr.TypedErrorForCode(t.ErrorCode); err != nil && err != kerr.TopicAlreadyExists {
				failed[t.Topic] = err.Message
				if t.ErrorMessage != nil {
					failed[t.Topic] += ", " + *t.ErrorMessage
				}
			}
		}
	}
	for _, name := range c.names {
		delete(g.topics.failed, name)
		if f.why = failed[name]; f.why != "" {
			if g.topics.failed == nil {
				g.topics.failed = map[string]failure{}
			}
			g.topics.failed[name] = f
		}
	}
}

// explain says why topics are still missing.
func (t *topics) explain() (out string) {
	if len(t.denied) > 0 {
		out += " Unauthorized to CREATE on topics " + topology.Listed(t.denied) + "."
	}
	for _, name := range slices.Sorted(maps.Keys(t.failed)) {
		return out + " Creation failed: " + name + " (" + kind.Truncate(t.failed[name].why, kind.MaxReason) + ")."
	}
	return out
}
