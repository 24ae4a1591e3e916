package sim

import (
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// consumer is a client of the consumer protocol, as the Java client implements it:
// it says what has changed, and everything after whatever may have been lost; it
// lets go of partitions first, and says so with its next heartbeat.
type consumer struct {
	peer
	group     *consumerPlan
	instance  *string
	names     []string
	regex     string // "" for none
	assignor  *string
	rebalance time.Duration
	starting  bool // someone will start it
	benched   bool // it stays away, for it uses the other protocol
	unsaid    bool // the log has lost what it subscribes to, since it became the member that it is

	member   string
	epoch    int32
	previous int32
	token    int // counts memberships; answers to earlier ones are ignored
	owned    map[part]int
	grants   int    // counts them, so that each that is owned has a number
	told     []part // what it is to have; nil if it has never been told
	position map[part]position

	full, wants, tells bool // what the next heartbeat must say: all, its subscription, what it has
	beating            bool // an answer is waited for
	hurry              bool // the next heartbeat follows at once
	busy               bool // it comes to what it was told
	leaving            bool
	committing         bool
}

// addConsumers adds the clients of a group.
func (w *world) addConsumers(g *consumerPlan) {
	for i := range g.clients {
		c := &consumer{
			peer: peer{w: w, name: fmt.Sprintf("%s-client-%d", g.id, i)}, group: g,
			rebalance: w.Between(2*time.Second, 15*time.Second).Truncate(time.Millisecond),
		}
		if isMixed(g.id) {
			c.name = fmt.Sprintf("%s-consumer-%d", g.id, i)
		}
		if w.Chance(g.static) {
			id := fmt.Sprintf("instance-%d", i)
			c.instance = &id
		}
		if name := w.plan.config.Consumer.Assignors[w.Rand.IntN(2)]; w.Rand.IntN(3) == 0 {
			c.assignor = &name
		}
		c.choose()
		w.consumers = append(w.consumers, c)
		c.startLater(w.About(3 * time.Second))
		c.planLife()
	}
}

func (w *world) anyConsumer() *consumer { return w.consumers[w.Rand.IntN(len(w.consumers))] }

// choose has the client want something, or something else.
func (c *consumer) choose() {
	w := c.w
	c.regex, c.names = "", nil
	if w.Chance(c.group.regex) {
		c.regex = []string{"topic-.*", "topic-b", ".*-a|other", "topic-|opic-b"}[w.Rand.IntN(4)]
	}
	if c.regex == "" || w.Rand.IntN(4) == 0 {
		c.names = [][]string{{topicName(0)}, {topicName(0), topicName(1)}, {topicName(1)}}[w.Rand.IntN(3)]
	}
}

// start begins a new life of the client, under a new member id.
func (c *consumer) start() {
	if c.starting = c.starting && !c.benched; c.up || c.benched {
		return
	}
	id := c.w.fresh()
	c.member = base64.RawURLEncoding.EncodeToString(id[:])
	c.w.Tracef("%s: starts as %s", c.name, c.member)
	c.up, c.starting, c.leaving, c.unsaid = true, false, false, false
	c.life++
	c.conn, c.pausedUntil = nil, 0
	c.beating, c.committing = false, false
	if c.w.Rand.IntN(6) == 0 {
		c.choose()
	}
	c.abandon()
	c.beat()
	c.beats()
	c.commits()
}

func (c *consumer) startLater(d time.Duration) {
	c.starting = true
	life := c.life
	c.w.After(d, func() {
		if c.life == life {
			c.start()
		}
	})
}

// stop ends the client without a word.
func (c *consumer) stop() {
	c.w.Tracef("%s: stops", c.name)
	c.up, c.starting = false, false
	c.abandon()
	c.hangUp()
}

// abandon is what a client does that is no longer a member: it joins anew.
func (c *consumer) abandon() {
	c.token++
	c.epoch, c.previous, c.told = 0, 0, nil
	c.owned, c.position = map[part]int{}, map[part]position{}
	c.full, c.busy = true, false
}

// beats sends heartbeats at intervals.
func (c *consumer) beats() {
	d := c.w.plan.config.Consumer.Heartbeat
	c.after(c.w.Between(d*9/10, d*11/10), func() {
		c.beats()
		if !c.beating && !c.leaving && !c.w.quiet {
			c.beat()
		}
	})
}

// beat sends a heartbeat.
func (c *consumer) beat() {
	if c.beating {
		c.hurry = true
		return
	}
	m := c.beatRequest()
	c.beating, c.hurry, c.full, c.wants, c.tells = true, false, false, false, false
	token := c.token
	c.call(m, noWait/2, func(a answer) {
		c.beating = false
		switch {
		case token != c.token:
			c.full = true
		case a.msg == nil || codeOf(a.msg) == codeNotCoordinator || codeOf(a.msg) == codeLoadInProgress:
			c.lostAnswer(a)
		default:
			c.answeredBeat(a.msg.(*kmsg.ConsumerGroupHeartbeatResponse))
		}
		if c.hurry && c.up && !c.beating && !c.leaving && !c.w.quiet {
			c.beat()
		}
	})
}

// lostAnswer is the end of a heartbeat that may have come or not: the next one says
// everything.
func (c *consumer) lostAnswer(a answer) {
	if a.msg != nil && codeOf(a.msg) == codeNotCoordinator {
		c.hangUp()
	}
	c.full = true
	token := c.token
	c.after(c.w.Between(20*time.Millisecond, 400*time.Millisecond), func() {
		if token == c.token && !c.beating && !c.leaving && !c.w.quiet {
			c.beat()
		}
	})
}

func (c *consumer) beatRequest() *kmsg.ConsumerGroupHeartbeatRequest {
	m := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID, m.MemberEpoch = 1, c.group.id, c.member, c.instance, c.epoch
	m.RebalanceTimeoutMillis = -1
	if c.full || c.epoch == 0 || c.unsaid && c.w.Calm {
		c.wants, c.tells = true, true
		m.RebalanceTimeoutMillis, m.ServerAssignor = int32(c.rebalance.Milliseconds()), c.assignor
	}
	if c.wants {
		regex := c.regex
		m.SubscribedTopicNames, m.SubscribedTopicRegex = append([]string{}, c.names...), &regex
	}
	if c.tells {
		m.Topics = ownedTopics(sortedParts(c.owned))
	}
	return m
}

func ownedTopics(list []part) []kmsg.ConsumerGroupHeartbeatRequestTopic {
	out := []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	for _, p := range list {
		if n := len(out); n == 0 || out[n-1].TopicID != p.topic {
			out = append(out, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: p.topic})
		}
		last := &out[len(out)-1]
		last.Partitions = append(last.Partitions, p.n)
	}
	return out
}

func (c *consumer) answeredBeat(r *kmsg.ConsumerGroupHeartbeatResponse) {
	w := c.w
	switch r.ErrorCode {
	case 0:
		if r.MemberEpoch != c.epoch {
			c.previous, c.epoch = c.epoch, r.MemberEpoch
		}
		if r.Assignment != nil {
			c.told = answeredParts(r.Assignment)
			w.Tracef("%s: is told to have %d partitions in epoch %d, has %d", c.name, len(c.told), c.epoch, len(c.owned))
			c.come()
		}
	case codeFencedEpoch, codeUnknownMember:
		w.Count(fmt.Sprintf("consumer joins again because of %d", r.ErrorCode))
		c.abandon()
		c.hurry = true
	case codeFencedInstance, codeUnreleased, codeMaxSize, codeGroupNotFound:
		c.fatal(r.ErrorCode)
	default:
		w.Violated("%s: ConsumerGroupHeartbeat is answered with %d", c.name, r.ErrorCode)
	}
}

func answeredParts(a *kmsg.ConsumerGroupHeartbeatResponseAssignment) []part {
	out := []part{}
	for _, t := range a.Topics {
		for _, n := range t.Partitions {
			out = append(out, part{t.TopicID, n})
		}
	}
	slices.SortFunc(out, compareParts)
	return out
}

// fatal ends a client that cannot go on. Someone starts it again.
func (c *consumer) fatal(code int16) {
	c.w.Count(fmt.Sprintf("consumer gave up because of %d", code))
	c.stop()
	c.startLater(c.w.Between(time.Second, 8*time.Second))
}

// come has the client come to what it was told: it commits and lets go first, takes
// up what is new then, and says so. Sometimes letting go takes longer than anybody
// has patience for.
func (c *consumer) come() {
	if c.busy {
		return
	}
	surplus := slices.DeleteFunc(sortedParts(c.owned), func(p part) bool { return slices.Contains(c.told, p) })
	if len(surplus) == 0 {
		c.take()
		return
	}
	c.busy = true
	d := c.w.About(20 * time.Millisecond)
	if c.w.Chance(c.w.faults().busy) {
		d = c.w.Between(0, c.rebalance*2)
		c.w.Count("slow to let go")
	}
	if c.w.Rand.IntN(2) == 0 {
		c.commit(surplus, 0)
		d += c.w.About(2 * c.w.plan.delay)
	}
	token := c.token
	c.after(d, func() {
		if token != c.token {
			return
		}
		for _, p := range surplus {
			delete(c.owned, p)
			delete(c.position, p)
		}
		c.busy, c.tells = false, true
		c.come()
	})
}

// take takes up what is new.
func (c *consumer) take() {
	for _, p := range c.told {
		if c.owned[p] == 0 {
			c.grants++
			c.owned[p] = c.grants
			c.tells = true
		}
	}
	if c.tells && !c.leaving {
		c.hurry = true
		c.after(c.w.About(5*time.Millisecond), func() {
			if c.hurry && !c.beating && !c.leaving && !c.w.quiet {
				c.beat()
			}
		})
		c.fetch()
	}
}

// hasAll says whether the client has what it was told, and has said so.
func (c *consumer) hasAll() bool {
	return !c.busy && !c.tells && !c.beating && slices.Equal(slices.SortedFunc(maps.Keys(c.owned), compareParts), c.told)
}
