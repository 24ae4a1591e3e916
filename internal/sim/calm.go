package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/machine"
)

// settle is the second phase. Nothing goes wrong any more, and every group must
// come to rest: Stable, with all partitions of what its members subscribe to
// owned once, or Empty.
func (w *world) settle() {
	w.Tracef("calm from now on")
	w.Calm = true
	for _, b := range w.brokers {
		b.up = true
	}
	w.elect()
	cfg := w.plan.config
	cfg.MaxSize, cfg.InitialDelay = group.DefaultConfig().MaxSize, 3*time.Second
	cfg.Consumer.MaxSize = group.DefaultConfig().Consumer.MaxSize
	w.calmSlots(&cfg)
	w.configure(cfg)
	w.wakeClients()
	w.wakeConsumers()
	w.Settle(w.patience(), w.unsettled)
	w.finish()
}

// patience is how long it may take: messages and pauses of before end, sessions
// and join phases of dead members run out one after the other, and a static one
// has a sync phase to wait for too.
func (w *world) patience() time.Duration {
	var session, rebalance time.Duration
	for _, c := range w.clients {
		session, rebalance = max(session, c.session), max(rebalance, c.rebalance)
	}
	for _, c := range w.consumers {
		session, rebalance = max(session, w.plan.config.Consumer.Session), max(rebalance, c.rebalance)
	}
	return 10*session + 4*rebalance + time.Minute
}

// wakeClients decides who is there in the calm phase. A static member that came
// back takes its place without a rebalance, so no one notices if it came back
// with another subscription; and with old versions, one that leads does not know
// that it does. In Kafka that lasts until something else makes the group
// rebalance: here all static members join anew.
func (w *world) wakeClients() {
	for _, c := range w.clients {
		c.pausedUntil, c.busyUntil = min(c.pausedUntil, w.Now+c.session), 0
		unaware := c.instance != nil
		if unaware {
			c.dirty = true
		}
		switch {
		case c.odd:
			c.life++
			c.stop()
		case c.up && unaware && c.phase != leaving:
			c.unsure = true
			c.join("calm")
		case !c.up:
			c.life++
			if c.starting = false; w.Rand.IntN(2) == 0 {
				c.start()
			}
		}
	}
}

// unsettled says what is not yet as it should be, nothing if all is.
func (w *world) unsettled() string {
	switch c := w.lead; {
	case c.gone || c.loading:
		return "nobody leads"
	case c.appendAt > w.Now+time.Second:
		return "a slow append is under way"
	case w.Now < w.lastArrival:
		return "messages are under way"
	case slices.ContainsFunc(w.alive, func(c *coordinator) bool { return c.zombie && !c.gone }):
		return "a deposed broker has not noticed"
	}
	if why := w.unsettledTxns(); why != "" {
		return why
	}
	for _, g := range w.mixedGroups() {
		if why := w.unsettledMixed(g); why != "" {
			return why
		}
	}
	if w.plan.roll > 0 {
		return ""
	}
	for i := range w.plan.groups {
		if why := w.unsettledGroup(&w.plan.groups[i]); why != "" {
			return why
		}
	}
	for i := range w.plan.consumers {
		if why := w.unsettledConsumers(&w.plan.consumers[i]); why != "" {
			return why
		}
	}
	return ""
}

func (w *world) unsettledGroup(g *groupPlan) string {
	v := w.lead.view(g.id)
	var members []*client
	var want, got []topicPartition
	for _, c := range w.clients {
		if c.group != g || !c.up && !c.starting {
			continue
		}
		members = append(members, c)
		for _, tp := range w.topics.all() {
			if slices.Contains(c.topics, tp.topic) && !slices.Contains(want, tp) {
				want = append(want, tp)
			}
		}
		got = append(got, c.owned...)
	}
	if len(members) == 0 {
		if v.exists && v.state != stateEmpty {
			return fmt.Sprintf("%s: has no live members", v)
		}
		return ""
	}
	if v.state != stateStable || len(v.seats) != len(members) {
		return fmt.Sprintf("%s: has %d live members", v, len(members))
	}
	for _, c := range members {
		s := v.seat(c.member)
		if s == nil || c.phase != stable || c.generation != v.generation {
			return fmt.Sprintf("%s: %s is %s in generation %d, phase %d", v, c.name, short(c.member), c.generation, c.phase)
		}
		if w.Now-s.heard > s.session/2 { // It pauses, and would expire when all are quiet.
			return fmt.Sprintf("%s: %s was not heard of lately", v, c.name)
		}
	}
	slices.SortFunc(want, comparePartitions)
	slices.SortFunc(got, comparePartitions)
	if !slices.Equal(want, got) {
		w.mend(v, members)
		return fmt.Sprintf("%s: members own %v of %v", v, got, want)
	}
	return ""
}

// mend has a group rebalance whose assignment was made for another generation. In
// Kafka that lasts until something else makes the group rebalance.
func (w *world) mend(v *view, members []*client) {
	if !w.strange[v.id] {
		return
	}
	for _, c := range members {
		if c.member == v.leader {
			delete(w.strange, v.id)
			c.join("its assignment was for others")
		}
	}
}

// finish checks that no one waits for an answer, that nothing is left over, and
// that the log still says the same.
func (w *world) finish() {
	w.quiet = true
	w.RunUntil(w.Now + 2*time.Second)
	c := w.lead
	for id, q := range c.open {
		w.Violated("request %d was never answered: %s", id, q)
	}
	for _, p := range w.peers() {
		if p.conn != nil && !p.conn.broken && p.conn.life == p.conn.broker.life && slices.ContainsFunc(p.conn.calls, func(cl *call) bool { return !cl.over && w.Now-cl.sent > time.Second }) {
			w.Violated("%s waits for an answer", p.name)
		}
	}
	c.checkTimers()
	c.checkStable()
	if w.plan.farewell {
		w.sayFarewell()
	}
	for c.underWay != nil || c.host.Soon {
		w.RunUntil(w.Now + time.Millisecond)
	}
	if len(c.entries)+len(c.held)+len(c.notes) > 0 {
		w.Violated("%d steps, %d answers and %d notes wait for nothing", len(c.entries), len(c.held), len(c.notes))
	}
	w.log.compact()
	if w.log.replay(c.config).Digest() != c.shard.Digest() {
		w.Violated("the log says other things than the shard")
	}
}

// checkTimers checks that there is a timer for everybody, and for no one else.
func (c *coordinator) checkTimers() {
	want := map[machine.TimerKey]bool{{Kind: group.TimerSweep}: true}
	for _, v := range c.sortedViews() {
		for _, k := range v.consumerTimers() {
			want[k] = true
		}
		for _, s := range v.seats {
			want[machine.TimerKey{Kind: group.TimerSession, ID: v.id, Member: s.id}] = true
			if !s.synced {
				want[machine.TimerKey{Kind: group.TimerSync, ID: v.id}] = true
			}
		}
		for id := range v.pending {
			want[machine.TimerKey{Kind: group.TimerSession, ID: v.id, Member: id}] = true
		}
		if v.state == statePreparing {
			want[machine.TimerKey{Kind: group.TimerJoin, ID: v.id}] = true
		}
	}
	for k := range want {
		if _, ok := c.timers[k]; !ok {
			c.w.Violated("there is no timer %v", k)
		}
	}
	for k := range c.timers {
		if !want[k] && k.Kind != group.TimerAsk {
			c.w.Violated("timer %v is left over", k)
		}
	}
}

// sayFarewell has everybody leave and deletes all groups: then the log must be
// empty but for tombstones.
func (w *world) sayFarewell() {
	admin := &peer{w: w, name: "farewell", up: true, conn: &conn{broker: w.lead.broker, life: w.lead.broker.life}}
	admin.conn.peer = admin
	var groups []string
	for _, v := range w.lead.sortedViews() {
		m := kmsg.NewPtrLeaveGroupRequest()
		m.Version, m.Group = 5, v.id
		for _, s := range v.seats {
			e := kmsg.NewLeaveGroupRequestMember()
			e.MemberID, e.InstanceID = s.id, s.instance
			m.Members = append(m.Members, e)
		}
		for _, id := range slices.Sorted(maps.Keys(v.pending)) {
			e := kmsg.NewLeaveGroupRequestMember()
			e.MemberID = id
			m.Members = append(m.Members, e)
		}
		groups = append(groups, v.id)
		admin.call(m, noWait, func(answer) {})
		for _, q := range v.leaveRequests() {
			admin.call(q, noWait, func(answer) {})
		}
	}
	m := kmsg.NewPtrDeleteGroupsRequest()
	m.Version, m.Groups = 2, groups
	admin.call(m, noWait, func(answer) {})
	w.RunUntil(w.Now + 2*time.Second)
	if w.lead.shard.Digest() != group.NewShard(w.plan.config).Digest() {
		w.Violated("all groups were deleted, but something is left")
	}
	w.Count("farewell")
}
