// Package group is the group coordinator as a pure state machine.
//
// A Shard holds the groups of one partition of __consumer_offsets. It is told
// everything: Step takes an input (a request, a timer that fired, the time, and
// sixteen fresh random bytes) and returns effects, which the shell in package
// coordinator carries out. There is no clock, goroutine, channel, lock or source
// of randomness here, so that a test, the simulator and a crashed broker's
// successor all see the same behaviour.
//
//	input → Step → Effects{Records, Replies, Timers, Journal}
//
// Hard state (what GroupMetadata and OffsetCommit records say) changes only in
// apply, which Step and Replay share: loading a shard is nothing else than
// applying its records, followed by a Loaded event. Soft state (who is parked in
// JoinGroup or SyncGroup, pending members, deadlines) dies with the process.
//
// Waiting is data: a parked request is its id in soft state. There is no
// rollback: if the shell cannot append the records of a step, it drops the shard
// and loads it again.
//
// The rules are Kafka's; the file of each phase names them where they are odd.
package group

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Input is one event with the time and randomness to handle it.
type Input struct {
	Now   time.Time
	Fresh [16]byte // used only if NeedsFresh
	Event Event
}

// NeedsFresh says whether an event may need fresh random bytes, which are made
// into the id of a member that joins. Everything else, heartbeats above all, is
// spared the cost of them.
func NeedsFresh(e Event) bool {
	r, ok := e.(Request)
	if !ok {
		return false
	}
	_, ok = r.Msg.(*kmsg.JoinGroupRequest)
	return ok
}

// Event is a Request, TimerFired, TopicsDeleted, Configured or Loaded.
type Event interface{ event() }

// RequestID names a request until it is answered. It is never zero.
type RequestID uint64

// Request is a client's request. Byte slices in it may be used again when Step
// returns.
type Request struct {
	ID       RequestID
	ClientID string
	Host     string
	Msg      kmsg.Request
}

// TimerFired says that the time of a timer has come.
type TimerFired struct {
	Key TimerKey
	Seq uint64
}

// TopicsDeleted says that topics are gone, and with them their offsets.
type TopicsDeleted struct{ Topics []string }

// Configured changes the settings.
type Configured struct{ Config Config }

// Loaded says that all records have been replayed.
type Loaded struct{}

func (Request) event()       {}
func (TimerFired) event()    {}
func (TopicsDeleted) event() {}
func (Configured) event()    {}
func (Loaded) event()        {}

// Effects is what a step wants done.
type Effects struct {
	Records []Record // append atomically, in order
	Replies []Reply  // release once these and all earlier records are durable
	Timers  []Timer  // arm or cancel at once
	Journal []Entry  // what happened and why, for people
}

// Reply answers a request.
type Reply struct {
	ID  RequestID
	Msg kmsg.Response
}

// TimerKind says what a timer is for.
type TimerKind string

// The timers. All but the sweep belong to a group, the session's to a member.
const (
	TimerSession TimerKind = "session" // a member, or a pending one, must be heard of
	TimerJoin    TimerKind = "join"    // members must have joined
	TimerSync    TimerKind = "sync"    // members must have synced
	TimerSweep   TimerKind = "sweep"   // expired offsets and empty groups go
)

// TimerKey names a timer. There is one of each key at most.
type TimerKey struct {
	Kind   TimerKind
	Group  string
	Member string
}

// Timer arms a timer, replacing the one of the same key, or cancels it.
type Timer struct {
	Key    TimerKey
	Seq    uint64 // to be given back when it fires, so that a stale one is ignored
	At     time.Time
	Cancel bool
}

// Config is the settings that the coordinator goes by.
type Config struct {
	InitialDelay     time.Duration // group.initial.rebalance.delay.ms
	MinSession       time.Duration // group.min.session.timeout.ms
	MaxSession       time.Duration // group.max.session.timeout.ms
	MaxSize          int           // group.max.size
	OffsetsRetention time.Duration // offsets.retention.minutes
	SweepInterval    time.Duration // offsets.retention.check.interval.ms
	MaxMetadata      int           // offset.metadata.max.bytes
}

// DefaultConfig returns Kafka's defaults.
func DefaultConfig() Config {
	return Config{
		InitialDelay: 3 * time.Second, MinSession: 6 * time.Second, MaxSession: 30 * time.Minute,
		MaxSize: 1<<31 - 1, OffsetsRetention: 7 * 24 * time.Hour, SweepInterval: 10 * time.Minute, MaxMetadata: 4096,
	}
}

// newMemberTimeout is how long a new member may be parked in JoinGroup. It
// cannot send heartbeats, since it does not know its id, and a client that gave
// up and tried again would leave a dead member behind each time.
const newMemberTimeout = 5 * time.Minute

// Shard is the state of one partition of __consumer_offsets.
type Shard struct {
	cfg    Config
	groups map[string]*group
	seq    uint64 // of the last timer armed
	step   step   // the one under way, here to be used again
}

// NewShard returns a shard without groups.
func NewShard(cfg Config) *Shard { return &Shard{cfg: cfg, groups: map[string]*group{}} }

// step is one call of Step.
type step struct {
	*Shard
	now   time.Time
	fresh [16]byte
	out   Effects
}

// Step handles one input.
func (s *Shard) Step(in Input) Effects {
	x := &s.step
	*x = step{Shard: s, now: in.Now, fresh: in.Fresh}
	switch e := in.Event.(type) {
	case Request:
		x.request(&e)
	case TimerFired:
		x.timerFired(e)
	case TopicsDeleted:
		x.topicsDeleted(e.Topics)
	case Configured:
		x.cfg = e.Config
	case Loaded:
		x.loaded()
	}
	out := x.out
	x.out = Effects{}
	return out
}

func (x *step) request(r *Request) {
	switch m := r.Msg.(type) {
	case *kmsg.JoinGroupRequest:
		x.join(r, m)
	case *kmsg.SyncGroupRequest:
		x.sync(r, m)
	case *kmsg.HeartbeatRequest:
		x.heartbeat(r, m)
	case *kmsg.LeaveGroupRequest:
		x.leave(r, m)
	case *kmsg.OffsetCommitRequest:
		x.commit(r, m)
	case *kmsg.OffsetFetchRequest:
		x.fetchOffsets(r, m)
	case *kmsg.OffsetDeleteRequest:
		x.deleteOffsets(r, m)
	case *kmsg.DescribeGroupsRequest:
		x.describe(r, m)
	case *kmsg.ListGroupsRequest:
		x.list(r, m)
	case *kmsg.DeleteGroupsRequest:
		x.deleteGroups(r, m)
	default:
		panic("a request that no group handles: " + kmsg.NameForKey(r.Msg.Key()))
	}
}

func (x *step) reply(id RequestID, msg kmsg.Response) {
	x.out.Replies = append(x.out.Replies, Reply{ID: id, Msg: msg})
}

// write makes a record part of the hard state and has it appended.
func (x *step) write(r Record) {
	x.out.Records = append(x.out.Records, r)
	x.apply(r)
}

// arm arms a timer and returns its sequence.
func (x *step) arm(key TimerKey, at time.Time) uint64 {
	x.seq++
	x.out.Timers = append(x.out.Timers, Timer{Key: key, Seq: x.seq, At: at})
	return x.seq
}

func (x *step) cancel(key TimerKey) {
	x.out.Timers = append(x.out.Timers, Timer{Key: key, Cancel: true})
}

// timerFired handles a timer, unless it has been replaced or cancelled since.
func (x *step) timerFired(e TimerFired) {
	if e.Key.Kind == TimerSweep {
		x.sweep()
		return
	}
	g := x.groups[e.Key.Group]
	if g == nil {
		return
	}
	switch e.Key.Kind {
	case TimerSession:
		x.sessionFired(g, e)
	case TimerJoin:
		if g.joinSeq == e.Seq {
			x.joinFired(g)
		}
	case TimerSync:
		if g.syncSeq == e.Seq {
			x.syncFired(g)
		}
	}
}

// loaded brings groups to life after their records were replayed: a group with
// members is Stable at the generation that was last synced, and its members have
// their whole session timeout to be heard of.
func (x *step) loaded() {
	for _, id := range x.groupIDs() {
		g := x.groups[id]
		g.revive(x.now)
		for m := g.members.first; m != nil; m = m.next {
			x.touch(g, m, m.session)
		}
		if g.members.len() > 0 {
			x.note(g, KindLoaded)
		}
		if g.members.len() > x.cfg.MaxSize {
			x.prepareRebalance(g, Trigger{Kind: TriggerMaxSize})
		}
	}
	x.arm(TimerKey{Kind: TimerSweep}, x.now.Add(x.cfg.SweepInterval))
}
