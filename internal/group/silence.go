package group

import (
	"maps"
	"slices"
	"time"
)

// A load gives every member a whole session timeout to be heard of, since nobody could be
// heard of while there was no coordinator. A member that is dead would have one after each
// load: a coordinator that is loaded again and again would never give it up, and a static
// member holds its partitions for as long. So of a member that was loaded and is not heard
// of, it is written down now and then how long that has lasted, over all loads; the next
// one gives it what is left of its session timeout. With the first sign of life, or when it
// is a member no more, that is forgotten.
//
// No client that lives is given up earlier than it would be without: of each load, the
// first returnTime does not count, in which its clients find the coordinator. What counts
// of the silence of a client that lives is therefore never more than the pause between two
// of its heartbeats, and what is left of its session timeout never less than it has after
// any heartbeat. Nor is anybody ever given less than returnTime, unless its session timeout
// is. A session timeout that short always begins anew: to wait for it is no burden.

const (
	// returnTime is how long clients may take to be back after a load. Those that try
	// again with ever longer pauses come to 10 s between two of them.
	returnTime = 10 * time.Second
	// silenceParts is in how many parts of a session timeout silence is written down:
	// however often a member is loaded, there are no more records of it.
	silenceParts = 8
)

// patienceWith is how long a member that was loaded has to be heard of.
func (g *group) patienceWith(id string, session time.Duration) time.Duration {
	return max(session-g.silences[id], min(session, returnTime))
}

// silentSince is since when a member that was loaded counts as silent, in milliseconds:
// returnTime from now, or before that if it was silent before. It is rounded up, so that
// silence is never counted for longer than it was.
func (x *step) silentSince(g *group, id string) int64 {
	return x.now.Add(returnTime - g.silences[id] + time.Millisecond - 1).UnixMilli()
}

// sessionTimer is when the session timer of a member fires: at its deadline, or before it
// to write down that it is silent.
func (g *group) sessionTimer(id string, silent int64, session time.Duration, deadline time.Time) time.Time {
	if silent == 0 {
		return deadline
	}
	if at := g.writesSilence(id, silent, session); at.Before(deadline) {
		return at
	}
	return deadline
}

// writesSilence is when the silence of a member is to be written down next.
func (g *group) writesSilence(id string, silent int64, session time.Duration) time.Time {
	return time.UnixMilli(silent).Add(g.silences[id] + max(session/silenceParts, time.Millisecond))
}

// noteSilence writes down how long a member has been silent, if it is and that is due. The
// record is smaller than what is stored of the member anyway.
func (x *step) noteSilence(g *group, id string, silent int64, session time.Duration) {
	if silent != 0 && !x.now.Before(g.writesSilence(id, silent, session)) {
		x.write(&SilenceRecord{g.id, id, &Silence{Lasted: time.Duration(x.now.UnixMilli()-silent) * time.Millisecond}})
	}
}

// endSilence forgets how long a member was silent.
func (x *step) endSilence(g *group, id string) {
	if _, ok := g.silences[id]; ok {
		x.write(&SilenceRecord{Group: g.id, Member: id})
	}
}

// alive notes that a member of a classic group that was silent since the load is not. What
// was left to it of its session timeout may be short: it has a whole one.
func (x *step) alive(g *group, m *member) {
	if m.silent != 0 {
		m.silent = 0
		x.endSilence(g, m.id)
		x.touch(g, m, m.session)
	}
}

// forgetSilences removes what was written down of those who are no members, after a load:
// of a step that took one away, only the beginning may have been stored.
func (x *step) forgetSilences(g *group, isMember func(id string) bool) {
	for _, id := range slices.Sorted(maps.Keys(g.silences)) {
		if !isMember(id) {
			x.endSilence(g, id)
		}
	}
}

// silentMembers is since when members of a classic group that are silent count as that.
func (g *group) silentMembers() map[string]int64 {
	out := map[string]int64{}
	for m := g.members.first; m != nil; m = m.next {
		if m.silent != 0 {
			out[m.id] = m.silent
		}
	}
	return out
}

func (g *group) applySilence(r *SilenceRecord) {
	if r.Value == nil {
		if delete(g.silences, r.Member); len(g.silences) == 0 {
			g.silences = nil
		}
		return
	}
	if g.silences == nil {
		g.silences = map[string]time.Duration{}
	}
	g.silences[r.Member] = r.Value.Lasted
}
