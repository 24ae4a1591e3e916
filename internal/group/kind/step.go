package kind

import (
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/journal"
	"muster/internal/machine"
	"muster/internal/metadata"
)

// Shard is what groups know of the shard that they are in.
type Shard struct {
	Cfg         Config
	Groups      map[string]Group
	Hosts       Hosts
	Tasks       map[uint64]task  // that are under way
	Asked       map[uint64]asker // who waits for the outcome of a send
	Waiting     int              // bytes of requests that wait for that
	Epoch       int32            // the leader epoch of the partition
	TotalWeight int64            // bytes that the members of all groups hold
	Seq         uint64           // of the last timer armed, task begun or question sent
	// ApplyRecord makes a record part of the hard state.
	ApplyRecord func(machine.Record)
}

func NewShard(cfg Config) Shard {
	return Shard{Cfg: cfg, Groups: map[string]Group{}, Hosts: Hosts{}, Tasks: map[uint64]task{}, Asked: map[uint64]asker{}}
}

func (s *Shard) GroupIDs() []string { return slices.Sorted(maps.Keys(s.Groups)) }

// task is something that is done beside, of which the result is waited for.
type task interface{ Done(x *Step, result any) }

// RunTask begins a task.
func (x *Step) RunTask(t task, run func() any) (id uint64) {
	x.Seq++
	x.Tasks[x.Seq] = t
	x.Out.Tasks = append(x.Out.Tasks, machine.Task{ID: x.Seq, Run: run})
	return x.Seq
}

// asker waits for the outcome of what it has sent.
type asker interface{ Answered(x *Step, e machine.Sent) }

// Ask sends a request, of whose outcome is told.
func (x *Step) Ask(a asker, to int32, msg kmsg.Request) (id uint64) {
	x.Seq++
	x.Asked[x.Seq] = a
	x.Out.Sends = append(x.Out.Sends, machine.Send{ID: x.Seq, To: to, Msg: msg})
	return x.Seq
}

// Leaving is a member that the records of a group have and that is gone.
type Leaving struct{ Group, Member string }

// unsettled is a group that has something to write at the end of a step.
type unsettled interface{ Flush(x *Step) }

// Step is one call of Step.
type Step struct {
	*Shard
	Now      time.Time
	Random   [16]byte
	Image    *metadata.Image
	Req      machine.Request // that is handled, if the event is one; here so that it need not be allocated
	MaxBatch int
	others   int64  // bytes that the members in other shards hold
	Weighed  string // the group whose members may change, "" if none does
	before   int64  // what they held before
	Out      machine.Effects
	Records  []machine.Record  // what is to be appended
	From     int               // where among them those begin that a group's epoch must come before
	Changed  []unsettled       // groups that may have more to write at the end of the step
	Leaving  []Leaving         // members that are gone, which is not yet written
	Why      []journal.Trigger // why a consumer group will have another epoch
	atN      int               // partitions of members that are gone
}

// Emit asks for the plain records so far to be appended. A batch that is made
// apart comes after them.
func (x *Step) Emit() {
	if len(x.Records) > 0 {
		x.Out.Batches = append(x.Out.Batches, machine.Batch{Records: x.Records})
		x.Records = nil
	}
	x.From = 0
}

func (x *Step) Reply(id machine.RequestID, msg kmsg.Response) {
	x.Out.Replies = append(x.Out.Replies, machine.Reply{ID: id, Msg: msg})
}

// Write makes a record part of the hard state and has it appended.
func (x *Step) Write(r machine.Record) {
	x.Records = append(x.Records, r)
	x.ApplyRecord(r)
}

// Arm arms a timer and returns its sequence.
func (x *Step) Arm(key machine.TimerKey, at time.Time) uint64 {
	x.Seq++
	x.Out.Timers = append(x.Out.Timers, machine.Timer{Key: key, Seq: x.Seq, At: at})
	return x.Seq
}

func (x *Step) Cancel(key machine.TimerKey) {
	x.Out.Timers = append(x.Out.Timers, machine.Timer{Key: key, Cancel: true})
}

// Fits says whether a record can be stored. What cannot is refused before
// anything is changed, for the sake of everybody else in the shard.
func (x *Step) Fits(r machine.Record) bool {
	return x.MaxBatch <= 0 || machine.RecordOverhead+r.Size() <= x.MaxBatch
}

// WriteWhole makes records part of the hard state, and has them appended as one batch.
func (x *Step) WriteWhole(records []machine.Record) {
	x.Emit()
	for _, r := range records {
		x.ApplyRecord(r)
	}
	x.Out.Batches = append(x.Out.Batches, machine.Batch{Records: records, Whole: true})
}

// Begin begins a step. What the last one had room for is used again.
func (x *Step) Begin(s *Shard, in *machine.Input) {
	old := x.Out
	*x = Step{
		Shard: s, Now: in.Now, Random: in.Random, Image: in.Image, MaxBatch: in.MaxBatch, others: in.Others, Records: again(x.Records), Changed: again(x.Changed),
		Out: machine.Effects{Batches: again(old.Batches), Replies: again(old.Replies), Timers: again(old.Timers), Notes: again(old.Notes), Sends: again(old.Sends), Tasks: again(old.Tasks)},
	}
}

// Finish ends a step.
func (x *Step) Finish() machine.Effects {
	for _, g := range x.Changed {
		g.Flush(x)
	}
	clear(x.Changed)
	x.weighAgain()
	if len(x.Records) > 0 {
		x.Out.Batches = append(x.Out.Batches, machine.Batch{Records: x.Records})
	}
	return x.Out
}

// Forget has what the last step was about not be kept until the next one.
func (x *Step) Forget() {
	x.Image, x.Req = nil, machine.Request{}
	clear(x.Records)
	clear(x.Out.Batches)
	clear(x.Out.Sends)
	clear(x.Out.Replies)
	clear(x.Out.Timers)
	clear(x.Out.Notes)
	clear(x.Out.Tasks)
}

// Keep is for how many things room is kept from step to step. What more a large
// one needs, such as a load, is given back, together with what it was about.
const Keep = 16

// again empties a list that is used again.
func again[T any](list []T) []T {
	if cap(list) > Keep {
		return nil
	}
	return list[:0]
}
