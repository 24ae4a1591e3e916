// Package state is the share coordinator (KIP-932) as a pure state machine: it keeps what the
// leaders of share partitions write of their windows, for the leaders after them.
//
// A Shard holds the share partitions of one partition of __share_group_state. It is told
// everything: Step takes an input and returns effects, which the runtime in package
// coordinator carries out. There is no clock, goroutine, channel, lock or source of
// randomness here.
//
//	            initialize: snapshot            write: update; after 500, or idle: snapshot
//	not there ───────────────────▶ initialized ─────────────┐
//	    ▲                            │    ▲                  │
//	    └────────── delete ──────────┘    └──────────────────┘
//	          (key 0, no value)
//
// Two numbers fence those who write. The leader epoch is that of the partition: who reads
// with a newer one is the leader from then on. The state epoch is the group's: a new one
// comes with a new start, and what was written before it is void.
//
// The log is not compacted. A snapshot says all there is of a share partition, an update what
// changed, so all before the oldest snapshot that is the last of its share partition may go:
// Prune tells of it. What is idle gets a snapshot now and then, or it would keep the log long.
//
// Hard state is what the records say, and changes only in apply, which Step and Replay share.
// Soft state is when a share partition was written to, and where its last snapshot is in the log.
//
//	shard.go       what comes in and goes out, timers
//	requests.go    the five requests (keys 83 to 87)
//	apply.go       the records, and what they change
//	merge.go       what is stored of offsets, and what is written of them
//	sweep.go       snapshots of what is idle, and what of the log no one needs
//	room.go        how much memory all of it may take
//
// The bytes of the records are those of package group/schema.
package state

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/metadata"
	"muster/internal/share/requests"
)

// Definition describes the core to the runtime. config returns the current settings.
func Definition(config func() Config) machine.Definition {
	return machine.Definition{
		Name: "share group state", New: func() machine.Core { return NewShard(config()) }, Decode: schema.DecodeShare,
		Fail: requests.Failed, NeedsRandom: func(kmsg.Request) bool { return false },
	}
}

// Config is the settings of the share coordinator.
type Config struct {
	Updates int           // share.coordinator.snapshot.update.records.per.snapshot
	Idle    time.Duration // share.coordinator.cold.partition.snapshot.interval.ms
	Prune   time.Duration // share.coordinator.state.topic.prune.interval.ms
	// MaxBytes bounds what is stored of all share partitions of the broker; 0 for any number.
	MaxBytes int64
}

// DefaultConfig returns Kafka's defaults.
func DefaultConfig() Config {
	return Config{Updates: 500, Idle: 5 * time.Minute, Prune: 5 * time.Minute, MaxBytes: 256 << 20}
}

// The timers after which idle share partitions get a snapshot, and it is told what may be
// deleted.
const (
	TimerSweep = "sweep"
	TimerPrune = "prune"
)

// Prune says that no record before an offset is needed.
type Prune struct{ Before int64 }

// IsNote implements machine.Note.
func (Prune) IsNote() {}

// Key names a share partition.
type Key = requests.Key

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), bytes.Compare(a.Topic[:], b.Topic[:]), cmp.Compare(a.Partition, b.Partition))
}

// Shard is the state of one partition of __share_group_state.
type Shard struct {
	cfg Config
	all map[Key]*state

	bytes int64 // that all of them are counted for

	seq     uint64            // of the last timer armed
	armed   map[string]uint64 // of the last of each kind
	lastTag uint64
	tagged  map[uint64][]tagged // snapshots that are not known to be durable
	end     int64               // no record is known at this offset or after it
	pruned  int64               // as it was told last
}

// tagged is a snapshot in a batch, so many records after its first.
type tagged struct {
	key   Key
	place int64
}

// state is what is known of a share partition.
type state struct {
	schema.ShareSnapshot     // as the next one would be, but for its epoch and time
	updates              int // since the last one

	// Soft state.
	at      int64     // where the last snapshot is that is durable, unknown if there is none
	touched time.Time // when it was last written to since the load
}

// unknown is an offset that is not known yet, and above all that are.
const unknown = -1

// NewShard returns a shard without share partitions.
func NewShard(cfg Config) *Shard {
	return &Shard{cfg: cfg, all: map[Key]*state{}, armed: map[string]uint64{}, tagged: map[uint64][]tagged{}}
}

// step is one call of Step.
type step struct {
	*Shard
	now      time.Time
	image    *metadata.Image
	maxBatch int
	others   int64 // bytes in other shards
	out      machine.Effects
	records  []machine.Record
	snaps    []tagged
}

// Step handles one input.
func (s *Shard) Step(in machine.Input) machine.Effects {
	x := &step{Shard: s, now: in.Now, image: in.Image, maxBatch: in.MaxBatch, others: in.Others}
	switch e := in.Event.(type) {
	case machine.Request:
		x.request(&e)
	case machine.TimerFired:
		switch {
		case e.Seq != s.armed[e.Key.Kind]:
		case e.Key.Kind == TimerSweep:
			x.sweep()
		case e.Key.Kind == TimerPrune:
			x.prune()
		}
	case machine.TopicsChanged:
		if len(e.Gone) > 0 {
			x.forget()
		}
	case machine.Appended:
		s.appended(e)
	case machine.Loaded:
		x.forget()
		x.arm(TimerSweep, s.cfg.Idle)
		x.arm(TimerPrune, s.cfg.Prune)
	}
	if len(x.records) > 0 {
		b := machine.Batch{Records: x.records}
		if len(x.snaps) > 0 {
			s.lastTag++
			b.Tag, s.tagged[s.lastTag] = s.lastTag, x.snaps
		}
		x.out.Batches = append(x.out.Batches, b)
	}
	return x.out
}

func (x *step) arm(kind string, after time.Duration) {
	x.seq++
	x.armed[kind] = x.seq
	x.out.Timers = append(x.out.Timers, machine.Timer{Key: machine.TimerKey{Kind: kind}, Seq: x.seq, At: x.now.Add(after)})
}

// write makes a record part of the hard state and has it appended.
func (x *step) write(r schema.Record) {
	if snapshot, ok := r.(*schema.ShareSnapshotRecord); ok && snapshot.Value != nil {
		x.snaps = append(x.snaps, tagged{Key{Group: snapshot.Group, Topic: snapshot.Topic, Partition: snapshot.Partition}, int64(len(x.records))})
	}
	x.records = append(x.records, r)
	x.apply(r, unknown)
}

// fits says whether a record can be stored.
func (x *step) fits(r machine.Record) bool {
	return x.maxBatch <= 0 || machine.RecordOverhead+r.Size() <= x.maxBatch
}

// appended takes note of where snapshots are. That of a share partition that was deleted since
// may be taken for one of its next life, which comes later: more of the log is kept than needed.
func (s *Shard) appended(e machine.Appended) {
	for _, t := range s.tagged[e.Tag] {
		at := e.Offset + t.place
		s.end = max(s.end, at+1)
		if p := s.all[t.key]; p != nil {
			p.at = max(p.at, at)
		}
	}
	delete(s.tagged, e.Tag)
}

// keys lists the share partitions, in order.
func (s *Shard) keys() []Key { return slices.SortedFunc(maps.Keys(s.all), compareKeys) }
