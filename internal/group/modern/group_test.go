package modern

import (
	"slices"
	"testing"
	"time"

	"muster/internal/group/kind"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

func active(numbers ...int32) []task {
	out := []task{}
	for _, n := range numbers {
		out = append(out, task{N: n})
	}
	return out
}

// two is a world in which a and b share the tasks, and have settled.
func two(t *testing.T) *world {
	w := newWorld(t)
	w.beat("a", "", EpochJoin, active()...)
	w.beat("b", "", EpochJoin, active()...)
	w.beat("a", "", 2, active(0, 1, 2, 3)...)
	w.beat("a", "", 2, active(0, 2)...)
	w.beat("b", "", 3, active()...)
	if w.g.StateName() != StateStable || len(w.g.owners) != 4 {
		t.Fatalf("the group is %s: %v", w.g.StateName(), w.g.owners)
	}
	return w
}

// The order in which a heartbeat goes on is Kafka's, and so is that of its records: the epoch
// comes before what it is for.
func TestMembersShareTheTasksHeartbeatByHeartbeat(t *testing.T) {
	w := newWorld(t)
	w.want("the first has all", w.beat("a", "", EpochJoin, active()...), "a in 2 has [0 1 2 3]")
	w.wantLog("a joins", "epoch", "member a", "target a", "target-epoch", "current a")
	w.want("the second waits, but for standbys", w.beat("b", "", EpochJoin, active()...), "b in 3 has [s0 s2]")
	w.wantLog("b joins", "epoch", "member b", "target a", "target b", "target-epoch", "current b")
	if got := w.notes(); !slices.Equal(got, []journal.EntryKind{journal.KindEpoch, journal.KindTarget}) {
		t.Errorf("the journal tells of %v", got)
	}
	w.want("the first is told to let go", w.beat("a", "", 2, active(0, 1, 2, 3)...), "a in 2 has [0 2]")
	w.want("nothing is new", w.beat("a", "", 2), "a in 2")
	w.wantLog("nothing is new")
	w.now = w.now.Add(3 * time.Second)
	w.want("the first has let go", w.beat("a", "", 2, active(0, 2)...), "a in 3 has [0 2 s1 s3]")
	w.want("the second gets it", w.beat("b", "", 3), "b in 3 has [1 3 s0 s2]")
	if got := w.notes(); !slices.Equal(got, []journal.EntryKind{journal.KindSettled}) {
		t.Fatalf("the journal tells of %v", got)
	}
	e := w.fx.Notes[0].(*journal.Entry)
	if e.MoveN != 6 || e.PartitionN != 8 || e.TriggerN != 1 || len(e.Held) != 1 || e.Held[0].Who.Member != "a" || e.Held[0].Waited != 3*time.Second || e.Type != "small" {
		t.Errorf("of that it says %+v", e)
	}
	w.want("an older epoch", w.beat("a", "", 1, active(0, 1)...), "FENCED_MEMBER_EPOCH")
	w.want("no member", w.beat("c", "", 3), "UNKNOWN_MEMBER_ID")
	w.want("the one before, without what is not its own", w.beat("a", "", 2, active(0)...), "a in 3")
}

func TestATargetIsMadeAfterTheIntervalAndOnce(t *testing.T) {
	w := newWorld(t)
	w.g.set.Interval = time.Minute
	w.beat("a", "", EpochJoin, active()...)
	w.want("the target is not due", w.beat("b", "", EpochJoin, active()...), "b in 2 has []")
	w.now = w.now.Add(time.Minute)
	w.want("it is", w.beat("b", "", 2), "b in 3 has [s0 s2]")
	if w.beat("b", "", 3); len(w.log) > 0 || w.g.refreshs != 4 {
		t.Errorf("another heartbeat writes %v; %d times the group was refreshed", w.log, w.g.refreshs)
	}
}

// What someone is to have must fit into a record, or everybody keeps what they have.
func TestATargetThatIsTooLargeIsNotMade(t *testing.T) {
	w := newWorld(t)
	w.g.fits = 3
	w.want("the target is too large", w.beat("a", "", EpochJoin, active()...), "a in 1 has []")
	e := w.fx.Notes[1].(*journal.Entry)
	if e.Kind != journal.KindTarget || len(e.Triggers) != 1 || e.Triggers[0].Kind != journal.TriggerTooLarge {
		t.Errorf("the journal tells of %+v", e)
	}
	if w.beat("a", "", 1); len(w.fx.Notes) > 0 {
		t.Errorf("it is tried again in the same epoch: %v", w.notes())
	}
}

// Topics are looked at with the first heartbeat of any member that sees another image.
func TestTopicsThatChangeRaiseTheEpoch(t *testing.T) {
	w := two(t)
	edit := metadata.NewImage(&config.Broker{}).Edit()
	edit.PutTopic(metadata.Topic{Name: "t", ID: topic, Partitions: make([]metadata.Partition, 5)})
	w.image = edit.Image()
	w.beat("b", "", 3)
	w.wantLog("a topic has grown", "epoch", "target-epoch", "current b")
	if e := w.fx.Notes[0].(*journal.Entry); len(e.Triggers) != 1 || e.Triggers[0].Kind != journal.TriggerTopics || e.Triggers[0].Topics.N != 1 {
		t.Errorf("the journal tells of %+v", e)
	}
	if w.image = edit.Image(); w.g.Epoch != 4 {
		t.Errorf("the epoch is %d", w.g.Epoch)
	}
	if w.beat("a", "", 3); w.g.Epoch != 4 {
		t.Error("another image in which nothing is different raises the epoch")
	}
}

// beside is a world whose assignor does not run in the step.
func beside(t *testing.T) *world {
	w := newWorld(t)
	w.g.set.AtOnce = 1
	return w
}

func TestAHeartbeatWaitsForTheAssignor(t *testing.T) {
	w := beside(t)
	w.want("it waits", w.beat("a", "", EpochJoin, active()...), "")
	w.want("the next does not, and the one that waits is answered", w.beat("a", "", EpochJoin, active()...), "a in 0; a in 1 has []")
	w.want("no one waits any more", w.finish(), "")
	w.want("the target is there", w.beat("a", "", 1), "a in 2 has [0 1 2 3]")

	w.want("the next one waits", w.beat("b", "", EpochJoin, active()...), "")
	w.want("it is answered with what it gets", w.finish(), "b in 3 has [s0 s2]")
}

func TestWhoIsGoneDoesNotWaitForTheAssignor(t *testing.T) {
	w := beside(t)
	w.beat("a", "", EpochJoin, active()...)
	w.want("it leaves", w.leave("a", "", EpochLeave), "UNKNOWN_MEMBER_ID")
	w.want("the result", w.finish(), "no one waits for it")
	if w.g.Run != nil || w.g.TargetEpoch != w.g.Epoch || w.g.StateName() != StateEmpty {
		t.Errorf("the group is %s, run %v, in %d of %d", w.g.StateName(), w.g.Run, w.g.TargetEpoch, w.g.Epoch)
	}
	w.want("and is back", w.beat("a", "", EpochJoin, active()...), "")
	if done := w.tasks[0]; w.g.Run.id == 0 || done.ID != w.g.Run.id {
		t.Error("another run is not begun")
	}
	run := w.g.Run
	w.g.Gone = true
	w.want("the group is gone", w.step(func(x *kind.Step) { run.Done(x, run.job.Assign()) }), "UNKNOWN_MEMBER_ID")
}

func TestAMemberThatIsNotHeardOfIsFenced(t *testing.T) {
	w := two(t)
	w.now = w.now.Add(10 * time.Second)
	w.beat("b", "", 3)
	w.fire(kind.TimerSession, "a")
	w.wantLog("a is fenced", "epoch", "-current a", "-target a", "-member a")
	e := w.fx.Notes[0].(*journal.Entry)
	if e.Triggers[0].Kind != journal.TriggerExpired || e.Triggers[0].Had != 4 || e.Triggers[0].Silent != 45*time.Second || w.g.forgot != 1 {
		t.Errorf("the journal tells of %+v", e.Triggers)
	}
	w.want("b gets it all", w.beat("b", "", 3, append(active(1, 3), task{true, 0}, task{true, 2})...), "b in 3 has [1 3]")
	w.want("in place of its standbys", w.beat("b", "", 3, active(1, 3)...), "b in 4 has [0 1 2 3]")
}

func TestAMemberThatDoesNotLetGoIsFenced(t *testing.T) {
	w := newWorld(t)
	w.beat("a", "", EpochJoin, active()...)
	w.beat("b", "", EpochJoin, active()...)
	w.beat("a", "", 2, active(0, 1, 2, 3)...)
	if by := w.g.Member("a").RevokeBy; !by.Equal(w.now.Add(time.Minute)) {
		t.Errorf("a has until %s from now", by.Sub(w.now))
	}
	w.fire(kind.TimerRevoke, "a")
	w.wantLog("a is fenced", "epoch", "-current a", "-target a", "-member a")
	if e := w.fx.Notes[0].(*journal.Entry); e.Triggers[0].Kind != journal.TriggerNotRevoked {
		t.Errorf("the journal tells of %+v", e.Triggers)
	}
}

func TestTheLastThatLeavesLeavesAnEmptyGroup(t *testing.T) {
	w := two(t)
	w.leave("a", "", EpochLeave)
	w.leave("b", "", EpochLeave)
	w.wantLog("b leaves", "epoch", "-current b", "-target b", "-member b", "target-epoch")
	if got := w.notes(); !slices.Equal(got, []journal.EntryKind{journal.KindEpoch, journal.KindSettled}) {
		t.Errorf("the journal tells of %v", got)
	}
	w.want("who is no member", w.leave("b", "", EpochLeave), "UNKNOWN_MEMBER_ID")
	w.step(func(x *kind.Step) { w.g.DeleteRecords(x) })
	w.wantLog("it is deleted", "-target-epoch", "-epoch")
	if !w.g.IsGone() {
		t.Error("something is left")
	}
}

func TestAFullGroupTakesOnlyWhoTakesAPlace(t *testing.T) {
	w := newWorld(t)
	w.g.set.MaxSize = 1
	w.beat("a", "i", EpochJoin, active()...)
	w.want("another", w.beat("b", "", EpochJoin, active()...), "GROUP_MAX_SIZE_REACHED")
	w.want("another instance", w.beat("b", "j", EpochJoin, active()...), "GROUP_MAX_SIZE_REACHED")
	w.want("a member", w.beat("a", "i", EpochJoin, active()...), "a in 2 has [0 1 2 3]")
	w.leave("a", "i", EpochLeaveStatic)
	w.want("its heir", w.beat("b", "i", EpochJoin, active()...), "b in 2 has [0 1 2 3]")
}

func TestAStaticMemberLeavesItsPlaceToItsHeir(t *testing.T) {
	w := newWorld(t)
	w.beat("a", "i", EpochJoin, active()...)
	w.want("the place is taken", w.beat("b", "i", EpochJoin, active()...), "UNRELEASED_INSTANCE_ID")
	if got := w.notes(); !slices.Equal(got, []journal.EntryKind{journal.KindFenced}) {
		t.Errorf("the journal tells of %v", got)
	}
	if w.beat("b", "i", EpochJoin, active()...); len(w.fx.Notes) > 0 {
		t.Error("the journal tells of it twice")
	}
	w.want("another goes on as it", w.beat("b", "i", 2), "FENCED_INSTANCE_ID")
	w.want("another leaves as it", w.leave("b", "i", EpochLeave), "FENCED_INSTANCE_ID")
	w.want("an instance that no one is", w.beat("b", "j", 2), "UNKNOWN_MEMBER_ID")
	w.leave("a", "i", EpochLeaveStatic)
	w.wantLog("it leaves for a while", "current a")
	if now := w.g.Member("a").Now(); now.Epoch != EpochLeaveStatic || len(now.Assigned) != 4 || now.Assigned[0].Since != 0 {
		t.Errorf("it is in %+v", now)
	}
	if w.leave("a", "i", EpochLeaveStatic); len(w.log) > 0 {
		t.Error("who has left leaves again")
	}
	w.want("it has left", w.beat("a", "i", 2), "FENCED_MEMBER_EPOCH")
	w.want("its heir has what it had", w.beat("b", "i", EpochJoin, active()...), "b in 2 has [0 1 2 3]")
	w.wantLog("the heir is there", "-current a", "-target a", "-member a", "member b", "target b", "current b", "current b")
	if first := w.fx.Batches[0]; !first.Whole || len(first.Records) != 6 || w.g.Epoch != 2 {
		t.Errorf("the batch is %+v", w.fx.Batches)
	}
}

// Who takes the place of one that has not left begins anew: no commit of an older epoch is for
// what it has.
func TestAnHeirHasNothingSinceAnEpochOfItsOwn(t *testing.T) {
	w := newWorld(t)
	w.g.lends = true
	w.beat("a", "i", EpochJoin, active()...)
	w.want("the heir", w.beat("b", "i", EpochJoin, active()...), "b in 2 has [0 1 2 3]")
	for _, p := range w.g.Member("b").Now().Assigned {
		if p.Since != 0 {
			t.Errorf("it has %s since epoch %d", p.Part, p.Since)
		}
	}
}

// What the assignor says of a member is for whoever has its place when it is done.
func TestAnHeirGetsWhatTheAssignorSaysOfItsPredecessor(t *testing.T) {
	w := beside(t)
	w.beat("a", "i", EpochJoin, active()...)
	w.finish()
	w.beat("c", "", EpochJoin, active()...)
	w.leave("a", "i", EpochLeaveStatic)
	w.beat("b", "i", EpochJoin, active()...)
	w.want("c gets what it may have", w.finish(), "c in 3 has [s0 s2]")
	if target := w.g.Member("b").Target; !slices.Equal(target, append(active(0, 2), task{true, 1}, task{true, 3})) {
		t.Errorf("the heir is to have %v", target)
	}
}

// What is stored is the same group again, whatever order its records come in. After a load no
// one gets what seems to be free until all were heard of.
func TestALoadedGroupGoesOn(t *testing.T) {
	w := two(t)
	w.leave("b", "", EpochLeave)
	w.beat("c", "", EpochJoin, active()...)
	next := newWorld(t)
	var stored []machine.Record
	w.g.EachRecord(func(r machine.Record) {
		if r.(*rec).String() != "current c" { // The log has lost it.
			stored = append(stored, r)
		}
	})
	slices.Reverse(stored)
	for _, r := range append(stored, &rec{"target", "gone", &TargetOf[task]{}}) {
		next.ApplyRecord(r)
	}
	next.step(func(x *kind.Step) { next.g.Loaded(x) })
	next.wantLog("what is left of who is gone", "-target gone")
	again := 0
	next.g.EachRecord(func(r machine.Record) {
		again++
		if !slices.ContainsFunc(stored, func(s machine.Record) bool { return encoded(s) == encoded(r) }) {
			t.Errorf("%s is another one than was stored", encoded(r))
		}
	})
	if again != len(stored) || again != 7 {
		t.Errorf("%d records are %d when they are replayed", len(stored), again)
	}
	if e := next.fx.Notes[0].(*journal.Entry); e.Kind != journal.KindLoaded || len(e.Triggers) != 1 || len(next.fx.Timers) != 2 {
		t.Errorf("the journal tells of %+v; timers %+v", e, next.fx.Timers)
	}
	next.want("c waits until a was heard of", next.beat("c", "", EpochJoin, active()...), "c in 5 has [s0 s2]")
	next.want("a has more than the log says", next.beat("a", "", 3, active(0, 1, 2, 3)...), "FENCED_MEMBER_EPOCH")
	next.want("a is told what it has", next.beat("a", "", 3), "a in 5 has [0 2 s1 s3]")
	next.want("c gets what is free", next.beat("c", "", 5), "c in 5 has [1 3 s0 s2]")
	next.leave("c", "", EpochLeave)
	if next.g.Epoch < kind.GenerationBlock {
		t.Errorf("the first epoch after a load is %d", next.g.Epoch)
	}
}

// A target that was due when the group was loaded is made for an epoch of its own.
func TestATargetThatWasDueIsMadeForAnotherEpoch(t *testing.T) {
	w := newWorld(t)
	w.ApplyRecord(&rec{"member", "a", &says{Topic: "t"}})
	w.ApplyRecord(&rec{"epoch", "", &Epoch{Epoch: 7, Hash: FindTopics(w.image, []string{"t"}).Hash()}})
	w.step(func(x *kind.Step) { w.g.Loaded(x) })
	w.beat("a", "", EpochJoin, active()...)
	if w.g.Epoch <= 7 || w.g.TargetEpoch != w.g.Epoch {
		t.Errorf("the target is of epoch %d of %d", w.g.TargetEpoch, w.g.Epoch)
	}
	if e := w.fx.Notes[0].(*journal.Entry); e.Triggers[0].Kind != journal.TriggerResumed {
		t.Errorf("the journal tells of %+v", e.Triggers)
	}
}

func TestWhatIsWrongIsFound(t *testing.T) {
	for what, spoil := range map[string]func(g *small, a, b *worker){
		"a target that is to come":   func(g *small, _, _ *worker) { g.TargetEpoch++ },
		"members out of order":       func(g *small, a, b *worker) { g.Members[0], g.Members[1] = b, a },
		"a member that is to come":   func(_ *small, a, _ *worker) { a.Current.Epoch++ },
		"who has not joined":         func(_ *small, a, _ *worker) { a.says = nil },
		"who left and is not static": func(_ *small, a, _ *worker) { a.Current.Epoch = EpochLeaveStatic },
		"no session":                 func(_ *small, a, _ *worker) { a.TimerSeq = 0 },
		"a session that ends late":   func(_ *small, a, _ *worker) { a.TimerAt = a.Deadline.Add(1) },
		"a timer for nothing":        func(_ *small, a, _ *worker) { a.RevokeSeq = 7 },
		"pending while stable":       func(_ *small, a, _ *worker) { a.Current.Pending = a.Current.Assigned[:1] },
		"given in time to come":      func(_ *small, a, _ *worker) { a.Current.Assigned[0].Since = 9 },
		"miscounted":                 func(g *small, _, _ *worker) { g.Present++ },
		"unheard, miscounted":        func(g *small, _, _ *worker) { g.unheard++ },
		"an instance of no one":      func(g *small, _, b *worker) { g.Instances["j"] = b },
		"a heartbeat of no one":      func(g *small, _, _ *worker) { g.Run = &Run[task, *worker]{Parked: &Pending[task]{Member: "y"}} },
	} {
		w := two(t)
		if spoil(w.g, w.g.Members[0], w.g.Members[1]); w.g.Check() == nil {
			t.Errorf("%s is not found", what)
		}
	}
}

// encoded is a record as a log has it.
func encoded(r machine.Record) string {
	k, v := r.Encode()
	return string(k) + " " + string(v)
}
