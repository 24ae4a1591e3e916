package modern

import (
	"testing"
	"time"

	"muster/internal/group/kind"
	"muster/internal/machine"
)

// stepAt begins a step of a shard.
func stepAt(s *kind.Shard, now time.Time) *kind.Step {
	var x kind.Step
	x.Begin(s, &machine.Input{Now: now})
	return &x
}

// A heartbeat costs no timer: one that fires early is armed again for what remains.
func TestASessionIsOverAtItsDeadlineAndNotBefore(t *testing.T) {
	s, b, start := kind.NewShard(kind.DefaultConfig()), &kind.Base{ID: "g"}, time.Unix(1_700_000_000, 0)
	const session = 10 * time.Second
	m := Member[Partition]{ID: "m"}
	x := stepAt(&s, start)
	m.Wait(x, b, session, session)
	first := x.Out.Timers[0]
	if first.Key != m.Timer(kind.TimerSession, "g") || !first.At.Equal(start.Add(session)) {
		t.Fatalf("armed is %+v", first)
	}
	x = stepAt(&s, start.Add(4*time.Second))
	if m.Wait(x, b, session, session); len(x.Out.Timers) > 0 {
		t.Error("a heartbeat costs a timer")
	}
	x = stepAt(&s, first.At)
	if m.SessionFired(x, b, machine.TimerFired{Key: first.Key, Seq: first.Seq + 1}, session) || len(x.Out.Timers) > 0 {
		t.Error("a stale timer does something")
	}
	if m.SessionFired(x, b, machine.TimerFired{Key: first.Key, Seq: first.Seq}, session) {
		t.Error("the session is over before its deadline")
	}
	next := x.Out.Timers[0]
	if !next.At.Equal(start.Add(14 * time.Second)) {
		t.Errorf("the next timer fires at %s", next.At.Sub(start))
	}
	if x = stepAt(&s, next.At); !m.SessionFired(x, b, machine.TimerFired{Key: next.Key, Seq: next.Seq}, session) || m.TimerSeq != 0 {
		t.Error("the session is not over at its deadline")
	}
}

func TestAMemberIsLateIfItIsStillInTheEpochInWhichItWasTold(t *testing.T) {
	s, now := kind.NewShard(kind.DefaultConfig()), time.Unix(1_700_000_000, 0)
	for epoch, late := range map[int32]bool{4: true, 5: false} {
		m, x := Member[Partition]{ID: "m", Current: &Current[Partition]{Epoch: 4, State: Unrevoked}}, stepAt(&s, now)
		m.StartRevoking(x, "g", time.Minute)
		m.Current = &Current[Partition]{Epoch: epoch}
		if m.RevokeFired(machine.TimerFired{Seq: m.RevokeSeq + 1}) {
			t.Error("a stale timer makes it late")
		}
		if m.RevokeFired(machine.TimerFired{Seq: m.RevokeSeq}) != late || m.RevokeSeq != 0 {
			t.Errorf("in epoch %d: late is %t", epoch, !late)
		}
	}
	m, x := Member[Partition]{ID: "m"}, stepAt(&s, now)
	m.Wait(x, &kind.Base{ID: "g"}, time.Second, time.Second)
	m.StartRevoking(x, "g", time.Minute)
	if m.Stop(x, "g"); m.TimerSeq != 0 || m.RevokeSeq != 0 || len(x.Out.Timers) != 4 || !x.Out.Timers[2].Cancel || !x.Out.Timers[3].Cancel {
		t.Errorf("timers are left: %+v", x.Out.Timers)
	}
}

// The session timeout may be shorter than it was at the last heartbeat: settings change.
func TestASessionThatEndsEarlierHasItsTimerArmedAgain(t *testing.T) {
	s, b, start := kind.NewShard(kind.DefaultConfig()), &kind.Base{ID: "g"}, time.Unix(1_700_000_000, 0)
	m := Member[Partition]{ID: "m"}
	m.Wait(stepAt(&s, start), b, time.Minute, time.Minute)
	x := stepAt(&s, start.Add(time.Second))
	m.Wait(x, b, 10*time.Second, 10*time.Second)
	if len(x.Out.Timers) != 1 || !x.Out.Timers[0].At.Equal(start.Add(11*time.Second)) || x.Out.Timers[0].Seq != m.TimerSeq {
		t.Errorf("armed are %+v", x.Out.Timers)
	}
}
