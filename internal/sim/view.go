package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// The states by name, as DescribeGroups tells them.
const (
	stateEmpty      = "Empty"
	statePreparing  = "PreparingRebalance"
	stateCompleting = "CompletingRebalance"
	stateStable     = "Stable"
)

// view is what the checker believes of a group at one coordinator. It follows
// from the requests, the rules and the answers; DescribeGroups must agree.
type view struct {
	*consumerView // of a consumer group, else nil
	id            string
	life          int // how often a group of this id has ended
	exists        bool
	record        bool  // there is a group record
	recordTime    int64 // its timestamp, -1 if none
	state         string
	generation    int32
	protocolType  string
	protocol      string
	leader        string
	seats         []*seat
	pending       map[string]time.Duration // member id to when it may be forgotten

	initial   bool          // it waits for the initial delay
	delay     time.Duration // that delay as last begun
	remaining time.Duration // by which it may still be extended
	another   bool          // someone joined since it was begun
	prepared  time.Duration // when the join phase began
	joinLimit time.Duration // how long it may take
	formed    time.Duration // when the generation was formed
	since     int64         // when it became Stable or Empty, in milliseconds; -1 if no one was ever a member
	syncLimit time.Duration // how long members have to sync
	leaps     bool          // it was loaded with members: its next generation leaps
	resumes   bool          // it was loaded in the middle of a rebalance
	loads     int16         // how often before in the middle of the same one
	former    *coordinator  // who has formed its generation, nil if that was before a load
	converted bool          // it was a consumer group before the last step that is about it
}

// seat is a member.
type seat struct {
	id        string
	instance  *string
	session   time.Duration
	rebalance time.Duration
	protocols []kmsg.JoinGroupRequestProtocol
	assigned  []byte
	isNew     bool          // has not been in a completed join phase
	heard     time.Duration // from when its session counts
	limit     time.Duration // how long that lasts, 0 for as long as it asked for
	synced    bool          // need not sync in this generation any more
	join      *request      // parked
	sync      *request      // parked
}

func (v *view) String() string {
	if !v.exists {
		return v.id + " does not exist"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s generation %d %s leader %s:", v.id, v.state, v.generation, v.protocol, short(v.leader))
	for _, s := range v.seats {
		fmt.Fprintf(&b, " %s", short(s.id))
		if s.join != nil {
			b.WriteString(" (joining)")
		}
		if s.sync != nil {
			b.WriteString(" (syncing)")
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.pending)) {
		fmt.Fprintf(&b, " %s (pending)", short(id))
	}
	return b.String()
}

func (v *view) seat(id string) *seat {
	for _, s := range v.seats {
		if s.id == id {
			return s
		}
	}
	return nil
}

func (v *view) static(instance string) *seat {
	for _, s := range v.seats {
		if s.instance != nil && *s.instance == instance {
			return s
		}
	}
	return nil
}

// find is the rule by which a member shows who it is.
func (v *view) find(member string, instance *string) (*seat, int16) {
	if instance != nil {
		switch s := v.static(*instance); {
		case s == nil:
			return nil, codeUnknownMember
		case s.id != member:
			return nil, codeFencedInstance
		default:
			return s, 0
		}
	}
	if s := v.seat(member); s != nil {
		return s, 0
	}
	return nil, codeUnknownMember
}

// allJoined says that a join phase waits for no one.
func (v *view) allJoined() bool {
	return len(v.pending) == 0 && !slices.ContainsFunc(v.seats, func(s *seat) bool { return s.join == nil })
}

func (v *view) parkedJoins() (n int) {
	for _, s := range v.seats {
		if s.join != nil {
			n++
		}
	}
	return n
}

// patience is how long someone is waited for, which each load in the middle of
// the same rebalance halves.
func (v *view) patience(d time.Duration) time.Duration {
	if v.loads == 0 {
		return d
	}
	return max(d>>v.loads, min(d, time.Second))
}

func (v *view) longestRebalance() (d time.Duration) {
	for _, s := range v.seats {
		d = max(d, s.rebalance)
	}
	return d
}

// supported says whether every member has the protocol.
func (v *view) supported(name string) bool {
	for _, s := range v.seats {
		if !slices.ContainsFunc(s.protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return p.Name == name }) {
			return false
		}
	}
	return true
}

// winners are the protocols that may be selected: each member votes for its
// first that all support, and most votes win.
func (v *view) winners() []string {
	votes := map[string]int{}
	most := 0
	for _, s := range v.seats {
		for _, p := range s.protocols {
			if v.supported(p.Name) {
				votes[p.Name]++
				most = max(most, votes[p.Name])
				break
			}
		}
	}
	var out []string
	for name, n := range votes {
		if n == most {
			out = append(out, name)
		}
	}
	return out
}

// subscribes says whether a member may want the topic, by the protocol that is
// selected. A member whose subscription is not known may.
func (v *view) subscribes(topic string) bool {
	if v.hasConsumers() {
		return v.roster.subscribes(topic)
	}
	return slices.ContainsFunc(v.seats, func(s *seat) bool {
		i := slices.IndexFunc(s.protocols, func(p kmsg.JoinGroupRequestProtocol) bool { return p.Name == v.protocol })
		if i < 0 {
			return true
		}
		return slices.Contains(parseSubscription(s.protocols[i].Metadata).Topics, topic)
	})
}

func (c *coordinator) sortedViews() []*view {
	var out []*view
	for _, id := range slices.Sorted(maps.Keys(c.views)) {
		out = append(out, c.views[id])
	}
	return out
}

func (c *coordinator) view(id string) *view {
	v := c.views[id]
	if v == nil {
		v = c.newView(id, c.ended[id])
		c.views[id] = v
	}
	return v
}

// newView is of a group that does not exist.
func (c *coordinator) newView(id string, life int) *view {
	v := &view{id: id, life: life, recordTime: -1, since: -1, pending: map[string]time.Duration{}}
	if isConsumers(id) || isMixed(id) {
		v.consumerView = newConsumerView(&c.w.topics)
	}
	return v
}

// loadViews derives the views from the groups' last records and the offsets.
// Only what is durable is known: members have only the selected protocol.
func (c *coordinator) loadViews() {
	c.ended = maps.Clone(c.w.log.ended)
	for _, id := range c.offsets.groups() {
		v := c.view(id)
		v.exists, v.state = true, stateEmpty
	}
	c.loadConsumers()
	for _, id := range slices.Sorted(maps.Keys(c.w.log.groups)) {
		v, meta := c.view(id), c.w.log.groups[id]
		v.exists, v.record, v.state = true, true, stateEmpty
		v.recordTime, v.generation, v.protocolType = meta.CurrentStateTimestamp, meta.Generation, meta.ProtocolType
		v.since = v.recordTime
		if len(meta.Members) == 0 {
			continue
		}
		v.state, v.protocol, v.leader = stateStable, *meta.Protocol, *meta.Leader
		if r, ok := c.w.log.rebalancing[id]; ok && r.Generation == v.generation {
			v.resumes, v.loads = true, r.Loads
		}
		for i := range meta.Members {
			m := &meta.Members[i]
			if left, ok := c.w.log.departed[id][m.MemberID]; ok && left == v.generation {
				v.resumes = true
				c.w.Count("member that had left stays away")
				continue
			}
			v.seats = append(v.seats, &seat{
				id: m.MemberID, instance: m.InstanceID, assigned: m.Assignment, heard: c.w.Now, synced: true,
				session:   time.Duration(m.SessionTimeoutMillis) * time.Millisecond,
				rebalance: time.Duration(m.RebalanceTimeoutMillis) * time.Millisecond,
				protocols: []kmsg.JoinGroupRequestProtocol{{Name: v.protocol, Metadata: m.Subscription}},
			})
		}
		v.leaps = len(v.seats) > 0
		for _, s := range v.seats {
			s.limit = v.patience(s.session)
		}
		if v.seat(v.leader) == nil && len(v.seats) > 0 {
			v.leader = v.seats[0].id
		}
	}
	c.loadQuiet()
}

// probe asks the shard about a group without leaving a trace.
func (c *coordinator) probe(id string) kmsg.DescribeGroupsResponseGroup {
	req := kmsg.NewPtrDescribeGroupsRequest()
	req.Version, req.Groups = 6, []string{id}
	fx := c.shard.Step(machine.Input{Now: c.w.Clock(), Event: machine.Request{ID: 1 << 62, Msg: req}})
	if len(fx.Batches)+len(fx.Timers) > 0 || len(fx.Replies) != 1 {
		c.w.Violated("DescribeGroups has effects: %+v", fx)
	}
	return fx.Replies[0].Msg.(*kmsg.DescribeGroupsResponse).Groups[0]
}

// probeOffsets compares all offsets of a group with the model.
func (c *coordinator) probeOffsets(id string) {
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version, req.Groups = 9, []kmsg.OffsetFetchRequestGroup{{Group: id, MemberEpoch: -1}}
	fx := c.shard.Step(machine.Input{Now: c.w.Clock(), Event: machine.Request{ID: 1 << 62, Msg: req}})
	resp := fx.Replies[0].Msg.(*kmsg.OffsetFetchResponse)
	n := c.compareOffsets(id, &resp.Groups[0], false)
	if n != c.offsets.count(id) {
		c.w.Violated("group %s has %d offsets, should have %v", id, n, c.offsets.of(id))
	}
}

// compareOffsets compares an answer with the model, and says how many offsets
// it has.
func (c *coordinator) compareOffsets(id string, resp *kmsg.OffsetFetchResponseGroup, stable bool) (n int) {
	for i := range resp.Topics {
		t := &resp.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			n++
			k := offsetKey{id, t.Topic, p.Partition}
			want, ok := c.offsets.get(k)
			if !ok {
				want = committed{at: -1, epoch: -1}
			}
			code := int16(0)
			if stable && c.offsets.waitsFor(k) {
				want, code = committed{at: -1, epoch: -1}, codeUnstable
				c.w.Count("offset is unstable")
			}
			if p.ErrorCode != code || p.Offset != want.at || p.LeaderEpoch != want.epoch || p.Metadata == nil || *p.Metadata != want.metadata {
				c.w.Violated("offset %v is %d (epoch %d, error %d), should be %+v", k, p.Offset, p.LeaderEpoch, p.ErrorCode, want)
			}
		}
	}
	return n
}
