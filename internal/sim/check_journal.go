package sim

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
)

// checkJournal checks that the journal tells of a group what happened to it, and
// nothing else.
func (st *stepped) checkJournal(step *entry) {
	v, w, entries := st.v, st.c.w, step.journal
	got := map[journal.EntryKind]int{}
	var fenced []stale
	for i := range entries {
		e := entries[i]
		if e.Group != v.id {
			continue
		}
		got[e.Kind]++
		if !e.Time.Equal(w.Clock()) {
			w.Violated("%s: a journal entry of another time: %+v", v, e)
		}
		switch e.Kind {
		case journal.KindStarted:
			st.checkStarted(e)
		case journal.KindSettled:
			st.checkSettled(e)
		case journal.KindFenced:
			fenced = append(fenced, stale{e.Triggers[0].Instance, e.Triggers[0].Member})
		}
	}
	_, loads := st.why.event.(machine.Loaded)
	want := map[journal.EntryKind]bool{
		journal.KindStarted:  st.started,
		journal.KindSettled:  st.settled || st.formed && len(v.seats) == 0,
		journal.KindReplaced: st.quiet,
		journal.KindLoaded:   loads && len(v.seats) > 0,
		journal.KindDeleted:  st.ended && !st.byMarker(), // A marker ends what was never a group.
	}
	if v.converted { // Who has replaced whom is told of the consumer group that it was.
		delete(want, journal.KindReplaced)
	}
	for _, kind := range slices.Sorted(maps.Keys(want)) {
		if n := got[kind]; n > 1 || n == 1 != want[kind] {
			w.Violated("%s: the journal has %d entries %s, should have one %t", v, n, kind, want[kind])
		}
	}
	st.checkFenced(fenced)
	st.checkOffsets(step)
}

// checkOffsets checks that the journal tells of all offsets that are gone, and
// of others only if someone from outside has committed them.
func (st *stepped) checkOffsets(step *entry) {
	v, w := st.v, st.c.w
	var gone, set int
	for i, o := range step.writes {
		switch {
		case o.txn != nil || o.val.waited || o.key.group != v.id || slices.ContainsFunc(step.writes[:i], func(before offsetWrite) bool { return before.key == o.key && before.val.gone }):
		case o.val.gone:
			gone++
		case o.val.generation < 0:
			set++
		}
	}
	entries := 0
	for i := range step.journal {
		e := step.journal[i]
		if e.Group != v.id {
			continue
		}
		switch e.Kind {
		case journal.KindOffsetsDeleted, journal.KindOffsetsExpired, journal.KindDeleted:
			gone -= e.PartitionN
		case journal.KindOffsetsReset:
			if set != e.PartitionN || e.By == nil {
				w.Violated("%s: the journal says that %d offsets were reset by %v, should be %d", v, e.PartitionN, e.By, set)
			}
			w.Count("offsets reset")
		default:
			continue
		}
		if entries++; entries > 2 || (e.Cause == journal.CauseRequest) != (e.By != nil) {
			w.Violated("%s: the journal says of offsets: %+v", v, e)
		}
	}
	if gone != 0 {
		w.Violated("%s: the journal does not tell of %d offsets that are gone", v, gone)
	}
}

// rememberedFences is how many member ids a static member is sure to remember.
const rememberedFences = 8

// checkFenced checks that the journal tells who is fenced, once for each
// member id.
func (st *stepped) checkFenced(got []stale) {
	w, v := st.c.w, st.v
	for _, s := range slices.Concat(st.stale, st.refused(), st.fencedInTxn()) {
		p := place{v.id, s.instance}
		seen := st.c.fenced[p]
		if seen == nil {
			seen = map[string]bool{}
			st.c.fenced[p] = seen
		}
		told := slices.Contains(got, s)
		if told == seen[s.member] && len(seen) < rememberedFences {
			w.Violated("%s: %s of %s is fenced, told of %t, told of before %t", v, short(s.member), s.instance, told, seen[s.member])
		}
		seen[s.member] = true
		got = slices.DeleteFunc(got, func(other stale) bool { return other == s })
		w.Count("static member fenced")
	}
	if len(got) > 0 {
		w.Violated("%s: the journal says that %v are fenced", v, got)
	}
	// Only now: one request may be refused for a member and take its holder away.
	for _, p := range st.vacant {
		delete(st.c.fenced, p)
	}
}

// refused lists the senders whose request was refused because another has
// its place.
func (st *stepped) refused() (out []stale) {
	q := st.why.request
	if q == nil || q.ask.group != st.v.id {
		return nil
	}
	for _, h := range st.replies {
		if h.request != q {
			continue
		}
		fenced := slices.Contains(codes(h.msg), codeFencedInstance)
		switch m := q.msg.(type) {
		case *kmsg.OffsetCommitRequest: // It may be of no partition, and then has no error.
			_, code := commitCode(st.v, m)
			fenced = code == codeFencedInstance
		case *kmsg.LeaveGroupRequest:
			fenced = false
			for _, e := range h.msg.(*kmsg.LeaveGroupResponse).Members {
				if e.ErrorCode == codeFencedInstance {
					out = append(out, stale{*e.InstanceID, e.MemberID})
				}
			}
		}
		if fenced {
			out = append(out, stale{*q.ask.instance, q.ask.member})
		}
	}
	return out
}

// checkStarted checks that the journal names everybody who is waited for.
func (st *stepped) checkStarted(e *journal.Entry) {
	v, want := st.v, 0
	if !st.formed && !v.initial {
		want = len(v.seats) - v.parkedJoins() + len(v.pending)
	}
	if e.WaitingN != want || len(e.Waiting) > want {
		st.c.w.Violated("%s: the journal says that it waits for %d, should be %d: %v", v, e.WaitingN, want, e.Waiting)
	}
}

// checkSettled checks the account of a rebalance.
func (st *stepped) checkSettled(e *journal.Entry) {
	v, w := st.v, st.c.w
	owned := 0
	for _, s := range v.seats {
		owned += len(parseAssignment(s.assigned))
	}
	switch {
	case e.After != len(v.seats), e.Generation != v.generation:
		w.Violated("%s: the journal says %d members in generation %d", v, e.After, e.Generation)
	case e.TriggerN == 0 || len(e.Triggers) == 0:
		w.Violated("%s: the journal gives no reason for a rebalance", v)
	case e.JoinPhase < 0 || e.SyncPhase < 0 || e.Started.Add(e.JoinPhase+e.SyncPhase) != e.Time:
		w.Violated("%s: the journal's phases are %s from %s, and %s", v, e.JoinPhase, e.Started, e.SyncPhase)
	case v.protocolType == consumerType && e.PartitionN != owned:
		w.Violated("%s: the journal counts %d partitions of %d", v, e.PartitionN, owned)
	case len(v.seats) > 0 && (e.Leader == nil || e.Leader.Member != v.leader):
		w.Violated("%s: the journal names another leader", v)
	}
}
