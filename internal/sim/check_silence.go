package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"muster/internal/group"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// The rule by which a member that is dead does not have a whole session timeout after each
// load: what it was silent for counts, but for the first returnTime of each load, and is
// stored in parts of its session timeout.
const (
	returnTime   = 10 * time.Second
	silenceParts = 8
)

// quiet is a member that was loaded, and not heard of since.
type quiet struct {
	since  time.Duration // when it was loaded
	before time.Duration // for how long it was silent until then, by the log
	stored time.Duration // for how long by the last record
}

// lasted is for how long it was silent, as far as that counts.
func (q *quiet) lasted(now time.Duration) time.Duration {
	return q.before + now - q.since - returnTime
}

// patienceAfter is how long a member is waited for after a load.
func patienceAfter(silence, session time.Duration) time.Duration {
	return max(session-silence, min(session, returnTime))
}

// loadQuiet notes that nothing was heard yet of anybody that was loaded, and for how long
// they are waited for.
func (c *coordinator) loadQuiet() {
	for _, v := range c.sortedViews() {
		for _, s := range v.seats {
			q := c.addQuiet(v.id, s.id)
			s.limit = min(s.limit, patienceAfter(q.before, s.session))
		}
		if v.hasConsumers() {
			for id, m := range v.roster.members {
				q, session := c.addQuiet(v.id, id), c.sessionOf(&m)
				v.heard[id] = c.w.Now - (session - patienceAfter(q.before, session))
			}
		}
	}
	c.silences = maps.Clone(c.w.log.silences)
}

func (c *coordinator) addQuiet(id, member string) *quiet {
	silence := c.w.log.silences[memberOf{id, member}]
	if silence > 0 {
		c.w.Count("silence counts after a load")
	}
	q := &quiet{since: c.w.Now, before: silence, stored: silence}
	c.quiet[memberOf{id, member}] = q
	return q
}

// hears notes that a member is heard of, and says whether it was not since the load.
func (c *coordinator) hears(id, member string) bool {
	who := memberOf{id, member}
	if c.quiet[who] == nil {
		return false
	}
	if c.quiet[who].stored > 0 {
		c.w.Count("member heard of after its silence was stored")
	}
	delete(c.quiet, who)
	return true
}

// hearSeat gives a member of a classic group a whole session timeout if that is the first
// that is heard of it.
func (st *stepped) hearSeat() {
	s := st.wants.seat
	switch st.wants.act {
	case actReplace, actRejoin, actCurrent, actSync, actTouch:
		if s != nil && st.c.hears(st.v.id, s.id) {
			s.hear(st.c.w.Now)
		}
	}
}

// checkSilence checks that silence is stored of members that are silent, in time, as long
// as it lasts, and of no one else.
func (c *coordinator) checkSilence(why cause, e *entry) {
	w, now := c.w, c.w.Now
	for _, r := range e.originals {
		r, ok := r.(*schema.SilenceRecord)
		if !ok {
			continue
		}
		who := memberOf{r.Group, r.Member}
		if r.Value == nil {
			if _, ok := c.silences[who]; !ok {
				w.Violated("%s: the silence of %s ends, and there was none", r.Group, short(r.Member))
			}
			delete(c.silences, who)
			continue
		}
		w.Count("silence stored")
		q := c.quiet[who]
		switch {
		case why.timer == nil || *why.timer != (machine.TimerKey{Kind: group.TimerSession, ID: r.Group, Member: r.Member}):
			w.Violated("%s: the silence of %s is stored by something else than its timer", r.Group, short(r.Member))
		case q == nil:
			w.Violated("%s: the silence of %s is stored, and it is not silent since the load", r.Group, short(r.Member))
		case r.Value.Lasted > q.lasted(now) || r.Value.Lasted <= q.lasted(now)-2*time.Millisecond:
			w.Violated("%s: %s is silent for %s, stored are %s", r.Group, short(r.Member), q.lasted(now), r.Value.Lasted)
		}
		c.silences[who], q.stored = r.Value.Lasted, r.Value.Lasted
	}
	for _, who := range sortedMembers(c.quiet) {
		session, ok := c.sessionBy(who)
		if q := c.quiet[who]; !ok {
			delete(c.quiet, who)
		} else if q.lasted(now)-q.stored > session/silenceParts+maxLate {
			w.Violated("%s: %s is silent for %s of %s, and stored are %s", who.group, short(who.member), q.lasted(now), session, q.stored)
		}
	}
	for _, who := range sortedMembers(c.silences) {
		if c.quiet[who] == nil {
			w.Violated("%s: it is stored that %s is silent, and it is not", who.group, short(who.member))
		}
	}
}

// sessionBy is the session timeout of a member, if it is one.
func (c *coordinator) sessionBy(who memberOf) (time.Duration, bool) {
	v := c.view(who.group)
	if s := v.seat(who.member); s != nil {
		return s.session, true
	}
	if m := v.consumer(who.member); m != nil {
		return c.sessionOf(m), true
	}
	return 0, false
}

func sortedMembers[T any](m map[memberOf]T) []memberOf {
	return slices.SortedFunc(maps.Keys(m), func(a, b memberOf) int { return strings.Compare(a.group+" "+a.member, b.group+" "+b.member) })
}
