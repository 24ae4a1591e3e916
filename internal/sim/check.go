package sim

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// check compares what a step did with what the rules say, and brings the
// checker's own view of things up to date.
func (c *coordinator) check(why cause, wants verdict, e *entry) {
	c.foresee(why, &wants, e)
	reply := c.checkAnswer(why, &wants, e)
	wants.ends = wants.ends || wants.maybe && len(e.records) > 0
	e.writes = c.writesOf(why, &wants, reply)
	c.offsets.apply(e.writes)
	c.checkGivenUp(why, e)
	if len(e.writes) > 0 && len(e.records) == 0 {
		c.w.Violated("offsets changed without a record")
	}
	if resp, ok := reply.(*kmsg.OffsetFetchResponse); ok {
		for i := range resp.Groups {
			c.compareOffsets(resp.Groups[i].Group, &resp.Groups[i], why.request.msg.(*kmsg.OffsetFetchRequest).RequireStable)
		}
	}
	touched := c.touched(why)
	for _, v := range touched {
		switch {
		case v.isOfConsumers() && wants.becomes != typeClassic || wants.becomes == typeConsumer && why.request.ask.group == v.id:
			c.checkConsumers(v, why, &wants, e)
		default:
			c.checkForgotten(v, e)
			c.reconcile(v, why, &wants, e)
		}
	}
	for i := range e.replies {
		if v := c.views[e.replies[i].request.ask.group]; v != nil {
			e.replies[i].life, e.replies[i].stable, e.replies[i].mixed = v.life, v.state == stateStable, isMixed(v.id) && v.hasConsumers()
			if isMixed(v.id) && !v.hasConsumers() {
				e.replies[i].former = v.former
			}
		}
	}
	if resp, ok := reply.(*kmsg.ListGroupsResponse); ok {
		c.checkList(why.request.msg.(*kmsg.ListGroupsRequest), resp)
	}
	for _, r := range e.originals {
		if id := groupOf(r); id != "" && !slices.ContainsFunc(touched, func(v *view) bool { return v.id == id }) {
			c.w.Violated("a record of group %s, which the step is not about", id)
		}
	}
}

// groupOf returns which group a record is about.
func groupOf(r machine.Record) string {
	if r, ok := r.(schema.Record); ok {
		return r.GroupID()
	}
	return ""
}

// checkAnswer checks the answer to the request that caused the step.
func (c *coordinator) checkAnswer(why cause, wants *verdict, e *entry) kmsg.Response {
	if why.request == nil {
		return nil
	}
	i := slices.IndexFunc(e.replies, func(h held) bool { return h.request == why.request })
	if i < 0 {
		if !wants.parks {
			c.w.Violated("%s is not answered, should be with %v", why.request, wants.codes)
		}
		c.w.Count("parked " + kmsg.NameForKey(why.request.ask.key))
		c.w.moment(momentParked)
		return nil
	}
	msg := e.replies[i].msg
	if got := codes(msg); !slices.Equal(got, wants.codes) {
		c.w.Violated("%s is answered with %v, should be with %v", why.request, got, wants.codes)
	}
	for _, code := range wants.codes {
		c.w.Count(fmt.Sprintf("%s %d", kmsg.NameForKey(msg.Key()), code))
	}
	return msg
}

// touched lists the groups that an event may change.
func (c *coordinator) touched(why cause) []*view {
	switch e := why.event.(type) {
	case machine.Sent:
		return c.viewsOf(why.groups)
	case machine.TaskDone:
		return c.viewsOf(c.tasksOf(e.ID))
	case machine.Request:
		if len(why.groups) > 0 {
			return c.viewsOf(why.groups)
		}
		if m, ok := why.request.msg.(*kmsg.DeleteGroupsRequest); ok {
			var out []*view
			for _, id := range m.Groups {
				if v := c.view(id); !slices.Contains(out, v) {
					out = append(out, v)
				}
			}
			return out
		}
		if why.request.ask.group != "" {
			return []*view{c.view(why.request.ask.group)}
		}
		return nil
	case machine.TimerFired:
		if e.Key.Kind == group.TimerAsk {
			return nil
		}
		if e.Key.Kind != group.TimerSweep {
			return []*view{c.view(e.Key.ID)}
		}
	case group.Configured:
		return nil
	}
	return c.sortedViews()
}

// checkList compares ListGroups with the views.
func (c *coordinator) checkList(req *kmsg.ListGroupsRequest, resp *kmsg.ListGroupsResponse) {
	var want, got []string
	for _, v := range c.sortedViews() {
		if v.exists && (len(req.StatesFilter) == 0 || slices.Contains(req.StatesFilter, v.state)) {
			want = append(want, v.id+" "+v.state+" "+v.protocolType)
		}
	}
	for _, g := range resp.Groups {
		got = append(got, g.Group+" "+g.GroupState+" "+g.ProtocolType)
	}
	if !slices.Equal(got, want) {
		c.w.Violated("ListGroups says %v, should say %v", got, want)
	}
}

// checkTimes checks that no one is waited for longer than agreed. Timers may be
// late.
func (c *coordinator) checkTimes(v *view) {
	now := c.w.Now
	for _, s := range v.seats {
		parked := s.join != nil || s.sync != nil
		if (s.isNew || !parked) && now > s.heard+s.patience()+maxLate {
			c.w.Violated("%s: member %s was not heard of for %s", v, short(s.id), now-s.heard)
		}
		if !s.synced && v.state != statePreparing && now > v.formed+v.syncLimit+maxLate {
			c.w.Violated("%s: member %s has not synced for %s", v, short(s.id), now-v.formed)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(v.pending)) {
		if now > v.pending[id]+maxLate {
			c.w.Violated("%s: pending member %s was not heard of", v, short(id))
		}
	}
	limit := v.joinLimit
	if v.initial {
		limit = v.delay
	}
	if v.state == statePreparing && now > v.prepared+limit+maxLate {
		c.w.Violated("%s: its members have waited for %s", v, now-v.prepared)
	}
}

// checkParked checks that exactly those requests are open that members are
// parked with.
func (c *coordinator) checkParked(v *view) {
	n := 0
	for _, s := range v.seats {
		for _, q := range []*request{s.join, s.sync} {
			if q == nil {
				continue
			}
			n++
			if c.open[q.id] == nil {
				c.w.Violated("%s: %s is not parked any more, and was not answered", v, q)
			}
		}
		if s.join != nil && v.state != statePreparing || s.sync != nil && v.state != stateCompleting {
			c.w.Violated("%s: member %s is parked", v, short(s.id))
		}
	}
	open := 0
	for _, q := range c.open {
		if q.ask.group == v.id {
			open++
		}
	}
	if open != n {
		c.w.Violated("%s: %d requests are open, %d are parked", v, open, n)
	}
}

// checkSync checks an assignment as told to a member.
func (c *coordinator) checkSync(v *view, s *seat, q *request, r *kmsg.SyncGroupResponse) {
	switch {
	case v.state != stateStable:
		c.w.Violated("%s: %s is answered before there is an assignment", v, q)
	case q.ask.generation != v.generation:
		c.w.Violated("%s: %s is answered in generation %d", v, q, v.generation)
	case !bytes.Equal(r.MemberAssignment, s.assigned):
		c.w.Violated("%s: %s gets %v, the leader assigned %v", v, q, parseAssignment(r.MemberAssignment), parseAssignment(s.assigned))
	case r.Protocol == nil || *r.Protocol != v.protocol || *r.ProtocolType != v.protocolType:
		c.w.Violated("%s: %s is told another protocol", v, q)
	}
}
