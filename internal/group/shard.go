// Package group is the group coordinator as a pure state machine.
//
// A Shard holds the groups of one partition of __consumer_offsets. It is told
// everything: Step takes an input (a request, a timer that fired, the time, and
// sixteen random bytes) and returns effects, which the runtime in package
// coordinator carries out. There is no clock, goroutine, channel, lock or source
// of randomness here, so that a test, the simulator and a crashed broker's
// successor all see the same behaviour.
//
//	input → Step → Effects{Batches, Replies, Timers, Journal}
//
// Hard state (what GroupMetadata and OffsetCommit records say) changes only in
// apply, which Step and Replay share: loading a shard is nothing but
// applying its records, followed by a Loaded event. Soft state (who is parked in
// JoinGroup or SyncGroup, pending members, deadlines) dies with the process.
//
// Waiting is data: a parked request is its id in soft state. There is no
// rollback: if the runtime cannot append the records of a step, it drops the
// shard and loads it again.
//
// Groups are of a kind (package kind), each of which is a package and a line in
// registry.go. Here is what groups of all kinds have: the shard that they are in,
// their offsets, and those that wait for transactions.
//
// The rules are Kafka's; the file of each phase names them where they are odd.
package group

import (
	"slices"

	"muster/internal/group/kind"
	"muster/internal/group/schema"
	"muster/internal/machine"
)

// Definition describes the core to the runtime. config returns the current settings.
func Definition(config func() kind.Config) machine.Definition {
	return machine.Definition{
		Name: "groups", New: func() machine.Core { return NewShard(config()) }, Decode: schema.Decode,
		Reader: func() (func(key, value []byte) (machine.Record, error), func()) {
			r := schema.NewReader()
			return r.Decode, r.Done
		},
		Fail: failed, NeedsRandom: needsRandom, WhileLoading: whileLoading,
	}
}

// Configured changes the settings.
type Configured struct{ Config kind.Config }

// IsEvent implements machine.Event.
func (Configured) IsEvent() {}

// Shard is the state of one partition of __consumer_offsets.
type Shard struct {
	kind.Shard
	txns txns
	run  machine.StoreRun // of the store's server, that it was loaded in
	step kind.Step        // the one under way, here to be used again
}

// NewShard returns a shard without groups.
func NewShard(cfg kind.Config) *Shard {
	s := &Shard{Shard: kind.NewShard(cfg), txns: newTxns()}
	s.ApplyRecord = s.apply
	return s
}

// shardStep is one call of Step. What only concerns groups of one kind is theirs, by the
// step alone.
type step struct {
	*kind.Step
	shard *Shard
}

// Step handles one input.
func (s *Shard) Step(in machine.Input) machine.Effects {
	s.step.Begin(&s.Shard, &in)
	x := step{&s.step, s}
	switch e := in.Event.(type) {
	case machine.Request:
		x.Req = e
		x.request(&x.Req)
	case machine.TimerFired:
		x.Weigh(e.Key.ID)
		x.timerFired(e)
	case machine.TopicsChanged:
		x.topicsGone(e.Gone)
	case Configured:
		x.Cfg = e.Config
	case machine.Loaded:
		s.run = machine.StoreRun(e.Run.ID)
		x.loaded(e.Epoch)
		x.WeighAll()
	case machine.Sent:
		if a := x.Asked[e.ID]; a != nil {
			delete(x.Asked, e.ID)
			a.Answered(x.Step, e)
			return x.Finish()
		}
		x.answered(e)
	case machine.TaskDone:
		if t := x.Tasks[e.ID]; t != nil {
			delete(x.Tasks, e.ID)
			t.Done(x.Step, e.Result)
		}
	}
	return x.Finish()
}

// ReleaseEffects implements machine.EffectsReleaser: what the last step was about is not kept until
// the next one.
func (s *Shard) ReleaseEffects() { s.step.Forget() }

// timerFired handles a timer, unless it has been replaced or cancelled since.
func (x step) timerFired(e machine.TimerFired) {
	switch e.Key.Kind {
	case kind.TimerSweep:
		x.sweep()
		return
	case kind.TimerAsk:
		x.askFired(e)
		return
	}
	if g := x.Groups[e.Key.ID]; g != nil {
		g.Fired(x.Step, e)
	}
}

// loaded brings groups to life after their records were replayed: a group with
// members is Stable at the generation that was last synced, and its members have
// their whole session timeout to be heard of, or what is left of it if they were not
// heard of after the load before. One that was rebalancing is so again.
func (x step) loaded(epoch int32) {
	x.Epoch = epoch
	ids := x.GroupIDs()
	// Most have a member, a timer for it, and an entry in the journal.
	x.Out.Timers = slices.Grow(x.Out.Timers, len(ids))
	x.Out.Notes = slices.Grow(x.Out.Notes, len(ids))
	for _, id := range ids {
		g := x.Groups[id]
		x.forgetDeleted(g)
		if g.Common().Gone {
			continue
		}
		g.Loaded(x.Step)
	}
	x.shard.txns.loaded(x.Now)
	x.Arm(machine.TimerKey{Kind: kind.TimerSweep}, x.Now.Add(x.Cfg.SweepInterval))
}

// Weight implements machine.Weighed.
func (s *Shard) Weight() int64 { return s.TotalWeight }
