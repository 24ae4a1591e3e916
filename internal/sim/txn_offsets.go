package sim

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group/schema"
	"muster/internal/machine"
)

// producer is what the log says of a transactional producer.
type producer struct {
	epoch       int16
	coordinator int32 // epoch of the coordinator whose marker was last, -1 if there was none
	open        bool
	id          string // transactional id, if this coordinator has asked for it
	start       int64  // of the open transaction
	ended       int64  // start of the last that ended
	loaded      bool   // it was: when the last one began may have been forgotten
	pending     map[offsetKey]committed
}

// txnWrite is a change by a transaction: an offset that waits for its end, or the
// end itself.
type txnWrite struct {
	producer    int64
	epoch       int16
	id          string
	start       int64
	end         bool
	commit      bool
	coordinator int32
	seq         uint64
}

// applyTxn applies it. At the end of a transaction an offset counts if its record
// comes after that of the one that counts so far.
func (o *offsets) applyTxn(c offsetWrite) {
	t := c.txn
	p, ok := o.producers[t.producer]
	if !ok {
		p.coordinator = -1
	}
	p.epoch = t.epoch
	if !t.end {
		if !p.open {
			p.open, p.pending = true, map[offsetKey]committed{}
		}
		p.id, p.start = t.id, t.start
		p.pending[c.key] = c.val
		o.producers[t.producer] = p
		return
	}
	if t.commit {
		for k, val := range p.pending {
			if val.pos > o.byKey[k].pos {
				val.seq = t.seq
				o.byKey[k] = val
			}
		}
	}
	ended := t.start
	if ended == 0 && p.open {
		ended = p.start
	}
	o.producers[t.producer] = producer{epoch: t.epoch, coordinator: t.coordinator, ended: ended}
}

// loaded is what a coordinator does not know that has just loaded.
func (o *offsets) loaded() {
	for id, p := range o.producers {
		p.id, p.loaded = "", true
		o.producers[id] = p
	}
}

// waits says whether a group has offsets that wait for a transaction.
func (o *offsets) waits(group string) bool {
	for _, p := range o.producers {
		for k := range p.pending {
			if k.group == group {
				return true
			}
		}
	}
	return false
}

func (o *offsets) waitsFor(k offsetKey) bool {
	for _, p := range o.producers {
		if _, ok := p.pending[k]; ok {
			return true
		}
	}
	return false
}

// all lists the offsets of a group, committed or not, in order.
func (o *offsets) all(group string) []offsetKey {
	keys := o.of(group)
	for _, p := range o.producers {
		for k := range p.pending {
			if k.group == group && !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// isOfAnother says whether an offset is of a topic with another id.
func (o *offsets) isOfAnother(k offsetKey, now byte) bool {
	if c, ok := o.get(k); ok && c.topic != 0 && c.topic != now {
		return true
	}
	for _, p := range o.producers {
		if c, ok := p.pending[k]; ok && c.topic != now {
			return true
		}
	}
	return false
}

// groupsOf lists the groups that a producer's open transaction has offsets of.
func (o *offsets) groupsOf(id int64) []string {
	set := map[string]bool{}
	for k := range o.producers[id].pending {
		set[k.group] = true
	}
	return slices.Sorted(maps.Keys(set))
}

// position numbers records of offsets.
func (w *world) position() uint64 {
	w.positions++
	return w.positions
}

// markerRecord stands among a step's records for a marker.
type markerRecord struct {
	machine.Producer
	machine.Control
}

// Encode implements machine.Record.
func (markerRecord) Encode() (key, value []byte) { return nil, nil }

// Size implements machine.Record.
func (markerRecord) Size() int { return 0 }

// take takes in what a step wants appended.
func (e *entry) take(b *machine.Batch) {
	for _, r := range b.Records {
		s := encode(r)
		s.producer = b.Producer
		e.originals, e.records = append(e.originals, r), append(e.records, s)
	}
	if b.Control != nil {
		e.originals = append(e.originals, markerRecord{*b.Producer, *b.Control})
		e.records = append(e.records, stored{producer: b.Producer, control: b.Control})
	}
	e.ends = append(e.ends, len(e.originals))
}

// sameTxn says whether two records are of the same transaction, or two markers the
// same.
func sameTxn(a, b stored) bool {
	return (a.producer == nil) == (b.producer == nil) && (a.control == nil) == (b.control == nil) &&
		(a.producer == nil || *a.producer == *b.producer) && (a.control == nil || *a.control == *b.control)
}

// readStored takes in what a record or marker says.
func (l *offsetsLog) readStored(r stored, e *entry) {
	if r.producer == nil {
		l.read(l.w.decode(r), e)
		return
	}
	k := offsetKey{}
	if r.control == nil {
		o := l.w.decode(r).(*schema.OffsetRecord)
		k = offsetKey{o.Group, o.Topic, o.Partition}
	}
	i := slices.IndexFunc(e.writes, func(o offsetWrite) bool {
		return o.txn != nil && o.txn.producer == r.producer.ID && o.txn.end == (r.control != nil) && o.key == k
	})
	if i < 0 {
		l.w.Violated("%v of a transaction of %+v, which the step does not change", k, *r.producer)
	}
	t := e.writes[i].txn
	if t.epoch != r.producer.Epoch || t.end && (t.commit != r.control.Commit || t.coordinator != r.control.CoordinatorEpoch) {
		l.w.Violated("%+v %+v is appended, should be %+v", *r.producer, r.control, *t)
	}
	if t.end {
		l.w.checkFates(t, l.offsets.producers[t.producer].pending)
	}
	l.offsets.apply(e.writes[i : i+1])
	e.writes = slices.Delete(slices.Clone(e.writes), i, i+1)
}

// checkStable checks that no one has to wait for a transaction any more.
func (c *coordinator) checkStable() {
	for _, v := range c.sortedViews() {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Version, req.RequireStable, req.Groups = 9, true, []kmsg.OffsetFetchRequestGroup{{Group: v.id}}
		fx := c.shard.Step(machine.Input{Now: c.w.Clock(), Event: machine.Request{ID: 1 << 62, Msg: req}})
		for _, t := range fx.Replies[0].Msg.(*kmsg.OffsetFetchResponse).Groups[0].Topics {
			for _, p := range t.Partitions {
				if p.ErrorCode != 0 {
					c.w.Violated("%s: %s-%d is answered with %d in the calm phase", v, t.Topic, p.Partition, p.ErrorCode)
				}
			}
		}
	}
}
