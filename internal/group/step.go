package group

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// shardState is what groups know of the shard that they are in.
type shardState struct {
	cfg    Config
	groups map[string]Group
	hosts  hosts
	tasks  map[uint64]task // that are under way
	epoch  int32           // the leader epoch of the partition
	weight int64           // bytes that the members of all groups hold
	seq    uint64          // of the last timer armed
	// applyRecord makes a record part of the hard state.
	applyRecord func(machine.Record)
}

func newState(cfg Config) shardState {
	return shardState{cfg: cfg, groups: map[string]Group{}, hosts: hosts{}, tasks: map[uint64]task{}}
}

func (s *shardState) groupIDs() []string { return slices.Sorted(maps.Keys(s.groups)) }

// task is something that is done beside, of which the result is waited for.
type task interface{ done(x *step, result any) }

// runTask begins a task.
func (x *step) runTask(t task, run func() any) (id uint64) {
	x.seq++
	x.tasks[x.seq] = t
	x.out.Tasks = append(x.out.Tasks, machine.Task{ID: x.seq, Run: run})
	return x.seq
}

// leaving is a member that the records of a group have and that is gone.
type leaving struct{ group, member string }

// unsettled is a group that has something to write at the end of a step.
type unsettled interface{ flush(x *step) }

// step is one call of Step.
type step struct {
	*shardState
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

// emit asks for the plain records so far to be appended. A batch that is made
// apart comes after them.
func (x *step) emit() {
	if len(x.records) > 0 {
		x.out.Batches = append(x.out.Batches, machine.Batch{Records: x.records})
		x.records = nil
	}
	x.from = 0
}

func (x *step) reply(id machine.RequestID, msg kmsg.Response) {
	x.out.Replies = append(x.out.Replies, machine.Reply{ID: id, Msg: msg})
}

// write makes a record part of the hard state and has it appended.
func (x *step) write(r machine.Record) {
	x.records = append(x.records, r)
	x.applyRecord(r)
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

// fits says whether a record can be stored. What cannot is refused before
// anything is changed, for the sake of everybody else in the shard.
func (x *step) fits(r machine.Record) bool {
	return x.maxBatch <= 0 || machine.RecordOverhead+r.Size() <= x.maxBatch
}

// writeWhole makes records part of the hard state, and has them appended as one batch.
func (x *step) writeWhole(records []machine.Record) {
	x.emit()
	for _, r := range records {
		x.applyRecord(r)
	}
	x.out.Batches = append(x.out.Batches, machine.Batch{Records: records, Whole: true})
}

// begin begins a step. What the last one had room for is used again.
func (x *step) begin(s *shardState, in *machine.Input) {
	old := x.out
	*x = step{
		shardState: s, now: in.Now, random: in.Random, image: in.Image, maxBatch: in.MaxBatch, others: in.Others, records: again(x.records), changed: again(x.changed),
		out: machine.Effects{Batches: again(old.Batches), Replies: again(old.Replies), Timers: again(old.Timers), Notes: again(old.Notes), Sends: again(old.Sends), Tasks: again(old.Tasks)},
	}
}

// finish ends a step.
func (x *step) finish() machine.Effects {
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

// forget has what the last step was about not be kept until the next one.
func (x *step) forget() {
	x.image, x.req = nil, machine.Request{}
	clear(x.records)
	clear(x.out.Batches)
	clear(x.out.Sends)
	clear(x.out.Replies)
	clear(x.out.Timers)
	clear(x.out.Notes)
	clear(x.out.Tasks)
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
