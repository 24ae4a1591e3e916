package sim

import (
	"bytes"
	"maps"
	"slices"
	"time"

	"muster/internal/coordinator/pump"
	"muster/internal/group"
	"muster/internal/group/schema"
	"muster/internal/machine"
	"muster/internal/record"
)

// stored is a record as the log holds it.
type stored struct {
	offset     int64
	key, value []byte // a nil value is a tombstone
	producer   *machine.Producer
	control    *machine.Control // it is a marker, and no record
}

// offsetsLog is the partition of __consumer_offsets, with what it says in other
// forms: the core's own replay of all that was ever appended, and what the records
// say, read without the core.
type offsetsLog struct {
	w       *world
	epoch   int // appends of a broker that opened it under an older one are refused
	next    int64
	records []stored
	replica *group.Shard
	said
	history []said // as it was before the last appends, if the log may lose them
}

// said is what the records of the log say.
type said struct {
	records     int // how many
	groups      map[string]*schema.Group
	written     map[string]uint64 // in which step
	rebalancing map[string]schema.Rebalance
	departed    map[string]map[string]int32
	rosters     map[string]*roster         // of consumer groups
	offsets     *offsets                   // what was committed, by the requests
	silences    map[memberOf]time.Duration // of members, by the records
	ended       map[string]int             // how often a group of this id has come to its end
}

func newOffsetsLog(w *world) *offsetsLog {
	return &offsetsLog{w: w, replica: group.NewShard(w.plan.config), said: said{
		groups: map[string]*schema.Group{}, written: map[string]uint64{}, rebalancing: map[string]schema.Rebalance{}, departed: map[string]map[string]int32{},
		rosters: map[string]*roster{}, offsets: newOffsets(), silences: map[memberOf]time.Duration{}, ended: map[string]int{},
	}}
}

func (s *said) clone() said {
	departed := make(map[string]map[string]int32, len(s.departed))
	for id, members := range s.departed {
		departed[id] = maps.Clone(members)
	}
	return said{s.records, maps.Clone(s.groups), maps.Clone(s.written), maps.Clone(s.rebalancing), departed, cloneRosters(s.rosters), s.offsets.clone(), maps.Clone(s.silences), maps.Clone(s.ended)}
}

func encode(r machine.Record) stored {
	k, v := r.Encode()
	return stored{key: k, value: v}
}

// decode reads a record back, from bytes that no one else holds.
func (w *world) decode(r stored) machine.Record {
	rec, err := schema.Decode(bytes.Clone(r.key), bytes.Clone(r.value))
	if err != nil {
		w.Violated("a record cannot be read: %v", err)
	}
	return rec
}

// replayed is the record as a replay hands it over.
func (s stored) replayed(w *world) machine.Stored {
	if s.control != nil {
		return machine.Stored{BaseOffset: s.offset, Producer: s.producer, Control: s.control}
	}
	return machine.Stored{BaseOffset: s.offset, Producer: s.producer, Records: []machine.StoredRecord{{Offset: s.offset, Record: w.decode(s)}}}
}

// raw is a record as bytes.
type raw stored

// Encode implements machine.Record.
func (r raw) Encode() (key, value []byte) { return r.key, r.value }

// Size implements machine.Record.
func (r raw) Size() int { return len(r.key) + len(r.value) }

// append makes a batch durable, in the form of the real log, and returns its base
// offset.
func (l *offsetsLog) append(c *coordinator, f *pendingAppend) int64 {
	w := l.w
	b, err := pump.Encode(&f.Batch, w.Clock())
	if err != nil {
		w.Violated("a batch cannot be encoded: %v", err)
	}
	if w.plan.maxBatch > 0 && len(b)-record.HeaderSize > w.plan.maxBatch {
		w.Violated("a batch of %d bytes of records, allowed are %d", len(b)-record.HeaderSize, w.plan.maxBatch)
	}
	base := l.next
	b.SetBaseOffset(base)
	got, err := pump.Decode(b, func(k, v []byte) (machine.Record, error) { return raw{key: bytes.Clone(k), value: bytes.Clone(v)}, nil }, nil)
	if err != nil || len(got.Records) != len(f.Records) {
		w.Violated("a batch of %d records is read as %d: %v", len(f.Records), len(got.Records), err)
	}
	if w.plan.faults.tailLost > 0 {
		l.history = append(l.history, l.said.clone())
		if len(l.history) > maxHistory {
			l.history = l.history[1:]
		}
	}
	for _, r := range got.Records {
		l.store(c, stored{r.Offset, r.Record.(raw).key, r.Record.(raw).value, got.Producer, nil})
	}
	if got.Control != nil {
		l.store(c, stored{offset: base, producer: got.Producer, control: got.Control})
	}
	l.next = b.LastOffset() + 1
	return base
}

// store makes one record durable. It must be the next that the coordinator's steps
// have asked for.
func (l *offsetsLog) store(c *coordinator, r stored) {
	w := l.w
	if len(c.entries) == 0 {
		w.Violated("a record is appended that no step has asked for: %v", r)
	}
	e := c.entries[0]
	if want := e.records[e.durable]; !bytes.Equal(want.key, r.key) || !bytes.Equal(want.value, r.value) || !sameTxn(want, r) {
		w.Violated("%v is appended, should be %v", r, e.originals[e.durable])
	}
	l.records = append(l.records, r)
	l.said.records++
	l.replica.Replay(r.replayed(w))
	l.readStored(r, e)
	e.durable++
	c.durable++
	// A step's records may be stored in parts, and the rest be lost.
	e.ended = slices.DeleteFunc(e.ended, func(id string) bool {
		if l.exists(id) {
			return false
		}
		l.ended[id]++
		return true
	})
	if e.durable == len(e.records) {
		c.entries = c.entries[1:]
	}
}

// exists says whether a group has a record, or offsets.
func (l *offsetsLog) exists(id string) bool {
	return l.groups[id] != nil || !l.rosters[id].isGone() || l.offsets.has(id) || l.offsets.waits(id)
}

// read takes in what a record says.
func (l *offsetsLog) read(r machine.Record, e *entry) {
	switch r := r.(type) {
	case *schema.GroupRecord:
		if r.Value != nil && l.groups[r.Group] == nil && isMixed(r.Group) {
			l.ended[r.Group]++ // A classic group begins, whose generations are not those of before.
		}
		if l.groups[r.Group] = r.Value; r.Value == nil {
			delete(l.groups, r.Group)
		}
		l.written[r.Group] = e.seq
	case *schema.RebalanceRecord:
		if delete(l.rebalancing, r.Group); r.Value != nil {
			l.rebalancing[r.Group] = *r.Value
		}
	case *schema.DepartureRecord:
		if delete(l.departed[r.Group], r.Member); r.Value != nil {
			if l.departed[r.Group] == nil {
				l.departed[r.Group] = map[string]int32{}
			}
			l.departed[r.Group][r.Member] = r.Value.Generation
		}
	case *schema.SilenceRecord:
		if delete(l.silences, memberOf{r.Group, r.Member}); r.Value != nil {
			l.silences[memberOf{r.Group, r.Member}] = r.Value.Lasted
		}
	case *schema.OffsetRecord:
		k := offsetKey{r.Group, r.Topic, r.Partition}
		i := slices.IndexFunc(e.writes, func(o offsetWrite) bool { return o.key == k && o.txn == nil })
		if i < 0 {
			l.w.Violated("a record of offset %v, which the step does not change", k)
		}
		l.offsets.apply(e.writes[i : i+1])
		e.writes = slices.Delete(slices.Clone(e.writes), i, i+1)
	default:
		id := consumerGroupOf(r)
		begins := isMixed(id) && l.rosters[id].isGone()
		if applyRoster(l.rosters, r, e.seq) {
			if begins && !l.rosters[id].isGone() {
				l.ended[id]++ // A consumer group begins, whose epochs are not the generations of before.
			}
			l.w.promises.upgraded(e, id)
			l.w.promises.stored(r, e.seq)
		}
	}
}

// replay makes a shard of the log, and checks that it is what was appended.
func (l *offsetsLog) replay(cfg group.Config) *group.Shard {
	s := group.NewShard(cfg)
	for _, r := range l.records {
		s.Replay(r.replayed(l.w))
	}
	if s.Digest() != l.replica.Digest() {
		l.w.Violated("replay of the log gives another state than what was appended to it")
	}
	return s
}

// noticeLoss is how long it takes until a broker finds that the log is not what
// it was, if it appends nothing.
const noticeLoss = 2 * time.Second

// maxHistory is how many appends the log may lose.
const maxHistory = 5

// loseTail is a log that comes back without its last appends, though it had
// acknowledged them. A broker that has it open is refused from then on, and begins
// again; what clients were told since is void.
func (w *world) loseTail() {
	l := w.log
	if len(l.history) == 0 {
		return
	}
	n := 1 + w.Rand.IntN(len(l.history))
	before := l.history[len(l.history)-n]
	lost := len(l.records) - before.records
	w.Tracef("log: loses its last %d records", lost)
	w.Count("log lost its tail")
	ended := l.ended
	w.unsay(l.records[before.records:])
	l.records, l.history, l.said = l.records[:before.records], nil, before
	l.replica = group.NewShard(w.plan.config)
	for _, r := range l.records {
		l.replica.Replay(r.replayed(w))
	}
	w.promises.forget(l, ended)
	w.voidTxns()
	l.epoch++
	for _, c := range w.alive {
		c.void = true
	}
	if c := w.lead; !c.gone {
		c.zombie = true
		w.deposedAt = w.Now
		w.After(w.About(noticeLoss), func() {
			if !c.gone {
				c.resign()
			}
			if w.lead == c {
				w.elect()
			}
		})
	}
}
