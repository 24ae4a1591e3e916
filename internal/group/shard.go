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
// The rules are Kafka's; the file of each phase names them where they are odd.
package group

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// Definition describes the core to the runtime. config returns the current settings.
func Definition(config func() Config) machine.Definition {
	return machine.Definition{
		Name: "groups", New: func() machine.Core { return NewShard(config()) }, Decode: schema.Decode,
		Reader: func() (func(key, value []byte) (machine.Record, error), func()) {
			r := schema.NewReader()
			return r.Decode, r.Done
		},
		Fail: failed, NeedsRandom: needsRandom, WhileLoading: whileLoading,
	}
}

// needsRandom says whether a request may need random bytes, which are made
// into the id of a member that joins. Everything else, heartbeats above all, is
// spared the cost of them.
func needsRandom(req kmsg.Request) bool {
	switch m := req.(type) {
	case *kmsg.JoinGroupRequest:
		return true
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return blank(m.MemberID)
	}
	return false
}

// whileLoading answers heartbeats: it is Kafka's rule that a member is not
// troubled by a load.
func whileLoading(req kmsg.Request) kmsg.Response {
	if _, ok := req.(*kmsg.HeartbeatRequest); ok {
		return failed(req, nil)
	}
	return nil
}

// Configured changes the settings.
type Configured struct{ Config Config }

// IsEvent implements machine.Event.
func (Configured) IsEvent() {}

// The timers. All but the sweep belong to a group, the session's to a member.
const (
	TimerSession = "session" // a member, or a pending one, must be heard of
	TimerJoin    = "join"    // members must have joined
	TimerSync    = "sync"    // members must have synced
	TimerSweep   = "sweep"   // expired offsets and empty groups go
	TimerAsk     = "ask"     // transaction coordinators must have answered
	TimerRevoke  = "revoke"  // a member of a consumer group must have let go of partitions
)

// Config is the settings of the coordinator.
type Config struct {
	InitialDelay     time.Duration // group.initial.rebalance.delay.ms
	MinSession       time.Duration // group.min.session.timeout.ms
	MaxSession       time.Duration // group.max.session.timeout.ms
	MaxSize          int           // group.max.size
	OffsetsRetention time.Duration // offsets.retention.minutes
	SweepInterval    time.Duration // offsets.retention.check.interval.ms
	MaxMetadata      int           // offset.metadata.max.bytes
	MaxBytes         int64         // muster.groups.max.bytes, over all shards; 0 for any number
	Consumer         ConsumerConfig
}

// DefaultConfig returns Kafka's defaults.
func DefaultConfig() Config {
	return Config{
		InitialDelay: 3 * time.Second, MinSession: 6 * time.Second, MaxSession: 30 * time.Minute,
		MaxSize: 1<<31 - 1, OffsetsRetention: 7 * 24 * time.Hour, SweepInterval: 10 * time.Minute, MaxMetadata: 4096, Consumer: defaultConsumerConfig(),
	}
}

// newMemberTimeout is how long a new member may be parked in JoinGroup. It
// cannot send heartbeats, since it does not know its id, and a client that gave
// up and tried again would leave a dead member behind each time.
const newMemberTimeout = 5 * time.Minute

// Shard is the state of one partition of __consumer_offsets.
type Shard struct {
	cfg    Config
	groups map[string]Group
	hosts  hosts
	txns   txns
	tasks  map[uint64]task  // that are under way
	epoch  int32            // the leader epoch of the partition
	run    machine.StoreRun // of the store's server, that it was loaded in
	weight int64            // bytes that the members of all groups hold
	seq    uint64           // of the last timer armed
	step   step             // the one under way, here to be used again
}

// NewShard returns a shard without groups.
func NewShard(cfg Config) *Shard {
	return &Shard{cfg: cfg, groups: map[string]Group{}, hosts: hosts{}, txns: newTxns(), tasks: map[uint64]task{}}
}

// step is one call of Step.
type step struct {
	*Shard
	now      time.Time
	random   [16]byte
	image    *metadata.Image
	req      machine.Request // that is handled, if the event is one; here so that it need not be allocated
	maxBatch int
	others   int64  // bytes that the members in other shards hold
	weighed  string // the group whose members may change, "" if none does
	before   int64  // what they held before
	out      machine.Effects
	records  []machine.Record  // what is to be appended
	from     int               // where among them those begin that a group's epoch must come before
	changed  []unsettled       // groups that may have more to write at the end of the step
	leaving  []leaving         // members that are gone, which is not yet written
	why      []journal.Trigger // why a consumer group will have another epoch
	atN      int               // partitions of members that are gone
}

// task is something that is done beside, of which the result is waited for.
type task interface{ done(x *step, result any) }

// begin begins a task.
func (x *step) begin(t task, run func() any) (id uint64) {
	x.seq++
	x.tasks[x.seq] = t
	x.out.Tasks = append(x.out.Tasks, machine.Task{ID: x.seq, Run: run})
	return x.seq
}

// leaving is a member that the records of a group have and that is gone.
type leaving struct{ group, member string }

// unsettled is a group that has something to write at the end of a step.
type unsettled interface{ flush(x *step) }

// Step handles one input.
func (s *Shard) Step(in machine.Input) machine.Effects {
	x := &s.step
	old := x.out
	*x = step{
		Shard: s, now: in.Now, random: in.Random, image: in.Image, maxBatch: in.MaxBatch, others: in.Others, records: again(x.records), changed: again(x.changed),
		out: machine.Effects{Batches: again(old.Batches), Replies: again(old.Replies), Timers: again(old.Timers), Notes: again(old.Notes), Sends: again(old.Sends), Tasks: again(old.Tasks)},
	}
	switch e := in.Event.(type) {
	case machine.Request:
		x.req = e
		x.request(&x.req)
	case machine.TimerFired:
		x.weigh(e.Key.ID)
		x.timerFired(e)
	case machine.TopicsChanged:
		x.topicsGone(e.Gone)
	case Configured:
		x.cfg = e.Config
	case machine.Loaded:
		x.run = machine.StoreRun(e.Run.ID)
		x.loaded(e.Epoch)
		x.weighAll()
	case machine.Sent:
		x.answered(e)
	case machine.TaskDone:
		if t := x.tasks[e.ID]; t != nil {
			delete(x.tasks, e.ID)
			t.done(x, e.Result)
		}
	}
	for _, g := range x.changed {
		g.flush(x)
	}
	clear(x.changed)
	x.weighAgain()
	if len(x.records) > 0 {
		x.out.Batches = append(x.out.Batches, machine.Batch{Records: x.records})
	}
	return x.out
}

// ReleaseEffects implements machine.EffectsReleaser: what the last step was about is not kept until
// the next one.
func (s *Shard) ReleaseEffects() {
	x := &s.step
	x.image, x.req = nil, machine.Request{}
	clear(x.records)
	clear(x.out.Batches)
	clear(x.out.Sends)
	clear(x.out.Replies)
	clear(x.out.Timers)
	clear(x.out.Notes)
	clear(x.out.Tasks)
}

// emit asks for the plain records so far to be appended. A batch that is made
// apart comes after them.
func (x *step) emit() {
	if len(x.records) > 0 {
		x.out.Batches = append(x.out.Batches, machine.Batch{Records: x.records})
		x.records = nil
	}
	x.from = 0
}

// keep is for how many things room is kept from step to step. What more a large
// one needs, such as a load, is given back, together with what it was about.
const keep = 16

// again empties a list that is used again.
func again[T any](list []T) []T {
	if cap(list) > keep {
		return nil
	}
	return list[:0]
}

func (x *step) request(r *machine.Request) {
	switch m := r.Msg.(type) {
	case *kmsg.OffsetCommitRequest:
		x.commit(r, m)
	case *kmsg.TxnOffsetCommitRequest:
		x.txnCommit(r, m)
	case *kmsg.WriteTxnMarkersRequest:
		x.writeMarkers(r, m)
	case *kmsg.OffsetFetchRequest:
		x.fetchOffsets(r, m)
	case *kmsg.OffsetDeleteRequest:
		x.deleteOffsets(r, m)
	case *kmsg.ListGroupsRequest:
		x.list(r, m)
	case *kmsg.DeleteGroupsRequest:
		x.deleteGroups(r, m)
	default:
		for i := range kinds {
			if kinds[i].request(x, r) {
				return
			}
		}
		panic("a request that no group handles: " + kmsg.NameForKey(r.Msg.Key()))
	}
}

func (x *step) reply(id machine.RequestID, msg kmsg.Response) {
	x.out.Replies = append(x.out.Replies, machine.Reply{ID: id, Msg: msg})
}

// write makes a record part of the hard state and has it appended.
func (x *step) write(r machine.Record) {
	x.records = append(x.records, r)
	x.apply(r)
}

// arm arms a timer and returns its sequence.
func (x *step) arm(key machine.TimerKey, at time.Time) uint64 {
	x.seq++
	x.out.Timers = append(x.out.Timers, machine.Timer{Key: key, Seq: x.seq, At: at})
	return x.seq
}

func (x *step) cancel(key machine.TimerKey) {
	x.out.Timers = append(x.out.Timers, machine.Timer{Key: key, Cancel: true})
}

// timerFired handles a timer, unless it has been replaced or cancelled since.
func (x *step) timerFired(e machine.TimerFired) {
	switch e.Key.Kind {
	case TimerSweep:
		x.sweep()
		return
	case TimerAsk:
		x.askFired(e)
		return
	}
	if g := x.groups[e.Key.ID]; g != nil {
		g.fired(x, e)
	}
}

func (s *Shard) groupIDs() []string { return slices.Sorted(maps.Keys(s.groups)) }
