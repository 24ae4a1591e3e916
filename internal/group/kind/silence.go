package kind

import (
	"maps"
	"slices"
	"time"

	"muster/internal/group/schema"
)

// A load gives every member a whole session timeout to send something, since no one could
// while there was no coordinator. A dead member would get one after each load: a coordinator
// that is loaded again and again would never remove it, and a static member would hold its
// partitions all that time. So for a member that was loaded and has sent nothing since, a
// record says now and then how long that has lasted, over all loads; the next load gives it
// what is left of its session timeout. The record goes with the member's first request, or
// with the member.
//
// A live client is never removed earlier than it would be without this: the first returnTime
// of each load, in which clients find the coordinator, does not count. So what counts of a
// live client's silence is never longer than the pause between two of its heartbeats, and
// what is left of its session timeout never shorter than what it has between any two. And no
// member is given less than returnTime, unless its session timeout is shorter. Such a session
// timeout always starts over: to wait for it is no burden.

const (
	// ReturnTime is how long clients may take to come back after a load. The longest pause
	// between two attempts to connect is 10 s in the clients that we know, by default.
	ReturnTime = 10 * time.Second
	// silenceParts is in how many parts of a session timeout silence is recorded. That many
	// records are the most that a silent member costs, however often it is loaded.
	silenceParts = 8
)

// SessionLeft is how long a member that was loaded has to be heard of.
func (b *Base) SessionLeft(id string, session time.Duration) time.Duration {
	return max(session-b.Silences[id], min(session, ReturnTime))
}

// SilentSince is since when a member that was loaded counts as silent, in milliseconds:
// returnTime from now, or before that if it was silent before. It is rounded up, so that
// silence is never counted for longer than it was.
func (x *Step) SilentSince(b *Base, id string) int64 {
	return x.Now.Add(ReturnTime - b.Silences[id] + time.Millisecond - 1).UnixMilli()
}

// SessionTimer is when the session timer of a member fires: at its deadline, or before it
// to write down that it is silent. That may have been due before now, where the timer that was
// armed for it goes off late, and the group goes over to the other protocol first.
func (x *Step) SessionTimer(b *Base, id string, silent int64, session time.Duration, deadline time.Time) time.Time {
	if silent == 0 {
		return deadline
	}
	at := b.nextSilenceRecord(id, silent, session)
	switch {
	case !at.Before(deadline):
		return deadline
	case at.Before(x.Now):
		return x.Now
	}
	return at
}

// nextSilenceRecord is when the silence of a member is to be written down next.
func (b *Base) nextSilenceRecord(id string, silent int64, session time.Duration) time.Time {
	return time.UnixMilli(silent).Add(b.Silences[id] + max(session/silenceParts, time.Millisecond))
}

// NoteSilence writes down how long a member has been silent, if it is and that is due. The
// record is smaller than what is stored of the member anyway.
func (x *Step) NoteSilence(b *Base, id string, silent int64, session time.Duration) {
	if silent != 0 && !x.Now.Before(b.nextSilenceRecord(id, silent, session)) {
		x.Write(&schema.SilenceRecord{Group: b.ID, Member: id, Value: &schema.Silence{Lasted: time.Duration(x.Now.UnixMilli()-silent) * time.Millisecond}})
	}
}

// EndSilence forgets how long a member was silent.
func (x *Step) EndSilence(b *Base, id string) {
	if _, ok := b.Silences[id]; ok {
		x.Write(&schema.SilenceRecord{Group: b.ID, Member: id})
	}
}

// ForgetSilences removes what was written down of those who are no members, after a load:
// of a step that took one away, only the beginning may have been stored.
func (x *Step) ForgetSilences(b *Base, isMember func(id string) bool) {
	for _, id := range slices.Sorted(maps.Keys(b.Silences)) {
		if !isMember(id) {
			x.EndSilence(b, id)
		}
	}
}

func (b *Base) ApplySilence(r *schema.SilenceRecord) {
	if r.Value == nil {
		if delete(b.Silences, r.Member); len(b.Silences) == 0 {
			b.Silences = nil
		}
		return
	}
	if b.Silences == nil {
		b.Silences = map[string]time.Duration{}
	}
	b.Silences[r.Member] = r.Value.Lasted
}
