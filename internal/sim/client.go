package sim

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// phase is where a client stands in the protocol.
type phase int

const (
	joining phase = iota
	syncing
	stable
	leaving
)

// client is a member of a group, as a consumer library implements it.
type client struct {
	peer
	group     *groupPlan
	versions  versions
	instance  *string
	odd       bool // at odds with others in its group; it is not there in the calm phase
	session   time.Duration
	rebalance time.Duration
	interval  time.Duration // between heartbeats
	protocols []string
	topics    []string
	nonce     byte // part of the subscription
	starting  bool // someone will start it
	benched   bool // it stays away, for it uses the other protocol
	dirty     bool // changed its subscription, and has not synced since
	unsure    bool // and came back since: the coordinator may not have noticed
	early     bool // beats before it has synced

	phase      phase
	token      int // counts attempts to join; answers to earlier ones are ignored
	member     string
	generation int32
	protocol   string
	leads      bool
	seenTopics int // version of the metadata by which it assigned what it owns
	planTopics int // by which it is assigning
	owned      []topicPartition
	ownedIn    int32 // the generation in which it was given them
	position   map[topicPartition]position
	synced     generation // the last one
	stale      bool       // the last one came from a deposed broker
	beating    bool
	committing bool
	waits      bool // to join, until it is ready
	busyUntil  time.Duration
}

// position is where a client stands in a partition.
type position struct {
	at    int64
	loose bool // a deposed broker told it
}

// start begins a new life of the client.
func (c *client) start() {
	if c.starting = c.starting && !c.benched; c.up || c.benched {
		return
	}
	c.w.Tracef("%s: starts", c.name)
	c.up, c.starting = true, false
	c.life++
	c.conn, c.pausedUntil, c.busyUntil = nil, 0, 0
	c.beating, c.committing = false, false
	c.unsure = c.dirty && c.instance != nil
	if c.w.Rand.IntN(6) == 0 {
		c.shuffle()
	}
	c.forget()
	c.join("start")
	c.heartbeats()
	c.commits()
}

// startLater has the client start, unless something else starts it before.
func (c *client) startLater(d time.Duration) {
	c.starting = true
	life := c.life
	c.w.After(d, func() {
		if c.life == life {
			c.start()
		}
	})
}

// stop ends the client without a word.
func (c *client) stop() {
	c.w.Tracef("%s: stops", c.name)
	c.up, c.starting = false, false
	c.hangUp()
}

// forget is what a client does that is no longer a member.
func (c *client) forget() {
	c.member, c.generation = "", -1
	c.lose()
}

// lose gives up all partitions.
func (c *client) lose() { c.owned, c.position = nil, map[topicPartition]position{} }

// fatal ends a client that cannot go on. Someone starts it again.
func (c *client) fatal(code int16) {
	c.w.Count(fmt.Sprintf("client gave up because of %d", code))
	c.stop()
	if c.odd && c.w.Calm {
		return
	}
	if code == codeMaxSize {
		c.startLater(c.w.Between(10*time.Second, 40*time.Second))
		return
	}
	c.startLater(c.w.Between(time.Second, 10*time.Second))
}

// retry does something again after a while, unless the client has gone on.
func (c *client) retry(run func()) {
	token := c.token
	c.after(c.w.Between(20*time.Millisecond, 400*time.Millisecond), func() {
		if token == c.token {
			run()
		}
	})
}

// elsewhere handles errors that say that another broker is the coordinator, or that
// it is not ready.
func (c *client) elsewhere(a answer) bool {
	if a.msg == nil {
		return true
	}
	switch codeOf(a.msg) {
	case codeNotCoordinator:
		c.hangUp()
		return true
	case codeLoadInProgress:
		return true
	}
	return false
}

// cooperative says that the client keeps its partitions while it joins, which is
// safe if no other assignor can be selected.
func (c *client) cooperative() bool {
	return len(c.protocols) == 1 && c.protocols[0] == cooperativeAssignor
}

// join begins to join. Unless the assignor is cooperative, partitions are given
// up first, perhaps with a last commit.
func (c *client) join(why string) {
	if c.phase == leaving && c.up && why != "start" {
		return
	}
	c.w.Tracef("%s: joins (%s)", c.name, why)
	c.token++
	if c.phase == stable && !c.cooperative() {
		if len(c.position) > 0 && c.w.Rand.IntN(2) == 0 {
			c.commit()
		}
		c.lose()
	}
	c.phase, c.leads, c.waits = joining, false, false
	c.sendJoin()
}

func (c *client) sendJoin() {
	token := c.token
	c.call(c.joinRequest(), max(c.patience(), c.w.plan.config.InitialDelay)+5*time.Second, func(a answer) {
		if token == c.token {
			c.joined(a)
		}
	})
}

// patience is how long a join phase may take that the client waits for. A join
// phase lasts as long as the longest rebalance timeout in the group; a client with
// a shorter one, and too old to be told its id at once, may give up and join again
// as someone else for ever (that is what KIP-394 is about), but for the calm
// phase, in which all wait long enough.
func (c *client) patience() time.Duration {
	longest := c.rebalance
	for _, other := range c.w.clients {
		if c.w.Calm && other.group == c.group {
			longest = max(longest, other.joinPhase())
		}
	}
	return longest
}

// joinPhase is how long the group waits for this client: version 0 has no
// rebalance timeout, and its session timeout stands for it.
func (c *client) joinPhase() time.Duration {
	if c.versions.join == 0 {
		return c.session
	}
	return c.rebalance
}

func (c *client) joinRequest() kmsg.Request {
	m := kmsg.NewPtrJoinGroupRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID = c.versions.join, c.group.id, c.member, c.instance
	m.ProtocolType = c.group.protocolType
	m.SessionTimeoutMillis, m.RebalanceTimeoutMillis = int32(c.session.Milliseconds()), int32(c.rebalance.Milliseconds())
	for _, p := range c.protocols {
		var owned []topicPartition
		version := min(c.versions.join/2, 3)
		if p != rangeAssignor {
			owned, version = c.owned, max(version, 1) // Which is the first that says what one owns.
		}
		m.Protocols = append(m.Protocols, kmsg.JoinGroupRequestProtocol{
			Name: p, Metadata: subscription(version, c.topics, owned, c.ownedIn, c.nonce),
		})
	}
	return m
}

func (c *client) joined(a answer) {
	if c.elsewhere(a) {
		c.retry(c.sendJoin)
		return
	}
	r := a.msg.(*kmsg.JoinGroupResponse)
	switch r.ErrorCode {
	case 0:
		c.member, c.generation, c.protocol = r.MemberID, r.Generation, *r.Protocol
		c.phase, c.leads = syncing, r.LeaderID == r.MemberID
		var plan []kmsg.SyncGroupRequestGroupAssignment
		if c.leads && !r.SkipAssignment {
			c.planTopics = c.w.topics.version
			plan = c.sloppy(assign(c.protocol, r.Members, c.w.topics.all()))
		}
		c.think(func() { c.sendSync(plan) })
	case codeMemberIDRequired:
		c.member = r.MemberID
		if c.w.Chance(c.w.faults().rogue / 10) {
			c.w.Count("client died with a pending member id")
			c.stop()
			c.startLater(c.w.Between(0, 20*time.Second))
			return
		}
		c.sendJoin()
	case codeUnknownMember:
		c.forget()
		c.retry(c.sendJoin)
	case codeRebalanceInProgress:
		c.retry(c.sendJoin)
	case codeFencedInstance, codeMaxSize, codeInconsistentProtocol:
		c.fatal(r.ErrorCode)
	default:
		c.w.Violated("%s: JoinGroup is answered with %d", c.name, r.ErrorCode)
	}
}

// sloppy leaves members out who get nothing, and makes others up, as leaders may.
func (c *client) sloppy(plan []kmsg.SyncGroupRequestGroupAssignment) []kmsg.SyncGroupRequestGroupAssignment {
	if c.w.Rand.IntN(2) == 0 {
		return plan
	}
	plan = slices.DeleteFunc(plan, func(a kmsg.SyncGroupRequestGroupAssignment) bool {
		return len(parseAssignment(a.MemberAssignment)) == 0
	})
	return append(plan, kmsg.SyncGroupRequestGroupAssignment{MemberID: "nobody", MemberAssignment: assignment(c.w.topics.all())})
}

// think takes a moment to sync; a leader with much to assign sometimes more than
// the others have patience for.
func (c *client) think(run func()) {
	d := c.w.About(10 * time.Millisecond)
	if c.w.Chance(c.w.faults().busy) {
		d = c.w.Between(0, c.rebalance*3/2)
		c.w.Count("slow to sync")
	}
	token := c.token
	c.after(d, func() {
		if token == c.token {
			run()
		}
	})
	if c.w.Chance(c.w.faults().rogue) {
		c.after(d/2, c.rogueCommit)
	}
}

func (c *client) sendSync(plan []kmsg.SyncGroupRequestGroupAssignment) {
	m := kmsg.NewPtrSyncGroupRequest()
	m.Version, m.Group, m.MemberID, m.InstanceID = c.versions.sync, c.group.id, c.member, c.instance
	m.Generation, m.GroupAssignment = c.generation, plan
	m.ProtocolType, m.Protocol = &c.group.protocolType, &c.protocol
	token := c.token
	c.call(m, c.rebalance+5*time.Second, func(a answer) {
		if token == c.token {
			c.assigned(a, plan)
		}
	})
}

func (c *client) assigned(a answer, plan []kmsg.SyncGroupRequestGroupAssignment) {
	if c.elsewhere(a) {
		c.retry(func() { c.sendSync(plan) })
		return
	}
	r := a.msg.(*kmsg.SyncGroupResponse)
	switch r.ErrorCode {
	case 0:
		if plan != nil {
			c.seenTopics = c.planTopics
			c.checkPlan(plan)
		}
		c.adopt(parseAssignment(r.MemberAssignment), a)
	case codeRebalanceInProgress:
		c.join("sync: rebalance")
	case codeIllegalGeneration:
		c.lose()
		c.join("sync: old generation")
	case codeUnknownMember:
		c.forget()
		c.join("sync: unknown member")
	case codeFencedInstance, codeInconsistentProtocol:
		c.fatal(r.ErrorCode)
	default:
		c.w.Violated("%s: SyncGroup is answered with %d", c.name, r.ErrorCode)
	}
}

// checkPlan looks whether the group goes by what this leader has assigned. It may
// not: the leader's assignment for a generation of the same number, which was lost,
// came late and was taken for this one's.
func (c *client) checkPlan(plan []kmsg.SyncGroupRequestGroupAssignment) {
	v := c.w.lead.views[c.group.id]
	if v == nil {
		return // No one has loaded the group yet.
	}
	for _, s := range v.seats {
		i := slices.IndexFunc(plan, func(a kmsg.SyncGroupRequestGroupAssignment) bool { return a.MemberID == s.id })
		if i >= 0 && !bytes.Equal(plan[i].MemberAssignment, s.assigned) {
			c.w.strange[c.group.id] = true
			c.w.Count("late assignment of a lost generation")
		}
	}
}

// adopt takes a new assignment. With a cooperative assignor, a member that
// must give up partitions does so and joins again.
func (c *client) adopt(parts []topicPartition, a answer) {
	w := c.w
	now := generation{c.group.id, a.life, c.generation}
	if last := c.synced; last.life == now.life && last.number > now.number && !a.stale && !c.stale {
		w.Violated("%s: synced generation %d after %d", c.name, now.number, last.number)
	}
	c.synced, c.stale = now, a.stale
	before := c.owned
	if c.generation != c.ownedIn+1 {
		// It was not told what became of its partitions in a generation between:
		// another may have had them, and gone on from where this one stands.
		c.position = map[topicPartition]position{}
	}
	c.phase, c.owned, c.ownedIn = stable, parts, c.generation
	for _, tp := range before {
		if !slices.Contains(parts, tp) {
			delete(c.position, tp)
		}
	}
	w.Tracef("%s: has %v in generation %d", c.name, parts, c.generation)
	for _, tp := range before {
		if !slices.Contains(parts, tp) {
			w.Count("cooperative revocation")
			c.join("revoked partitions")
			return
		}
	}
	if c.unsure {
		c.unsure = false
		c.nonce++
		c.join("changed while away")
		return
	}
	c.dirty = false
	c.fetch()
}
