package exact

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
	"muster/internal/record"
	"muster/internal/store"
)

// model is what the logs say, read without the code that wrote them: which
// transactions there were, how each was decided, and what is open where.
type model struct {
	w      *world
	ids    map[string]*idState
	owners map[int64]string // of producer ids
	fences map[int64]int16  // the newest epoch that an answer to Init has named
	given  map[pair]string  // to whom a pair of producer id and epoch was given
	parts  map[store.TopicPartition]*partState
	groups *offsets
	idled  map[idleKey]bool // producers that partitions have forgotten
	// sending is when the transaction began whose marker a leader is given right now.
	sending int64
}

// noStart stands for a start that is not known.
const noStart = -1

// pair is what identifies a producer.
type pair struct {
	id    int64
	epoch int16
}

// idState is a transactional id.
type idState struct {
	value *kmsg.TxnMetadataValue // the last that is durable
	cur   *transaction
	all   []*transaction
	pairs map[pair]bool // that were durable at some time
	order map[pair]int  // in which pairs were given to clients
	fence int           // pairs below are of instances that another has replaced
	gone  time.Duration // when it expired last
}

// transaction is one, as its coordinator's log has it.
type transaction struct {
	number  int
	id      string
	pid     int64
	epoch   int16 // of its data
	start   int64
	parts   map[store.TopicPartition]bool
	decided bool
	commit  bool
	markers int16                         // epoch of its markers
	closed  map[store.TopicPartition]bool // where it has a marker
	told    map[store.TopicPartition]bool // where its marker was acknowledged
	began   time.Duration
}

// partState is what is open in a log, and which markers it has.
type partState struct {
	open   map[int64]*open
	epochs map[int64]int16 // of the last marker
	coords map[int64]int32 // the coordinator epoch of that
	stable int64           // the last stable offset that was told last
}

// open is a transaction that is open in a log.
type open struct {
	t     *transaction
	first int64
}

func newModel(w *world) *model {
	return &model{
		w: w, ids: map[string]*idState{}, owners: map[int64]string{}, fences: map[int64]int16{}, given: map[pair]string{},
		parts: map[store.TopicPartition]*partState{}, groups: newOffsets(w), idled: map[idleKey]bool{}, sending: noStart,
	}
}

func (m *model) id(id string) *idState {
	s := m.ids[id]
	if s == nil {
		s = &idState{pairs: map[pair]bool{}, order: map[pair]int{}}
		m.ids[id] = s
	}
	return s
}

func (m *model) part(tp store.TopicPartition) *partState {
	p := m.parts[tp]
	if p == nil {
		p = &partState{open: map[int64]*open{}, epochs: map[int64]int16{}, coords: map[int64]int32{}}
		m.parts[tp] = p
	}
	return p
}

// stored takes in a batch that is in a log, and may still be lost.
func (m *model) stored(l *simLog, e *entry) {
	b := e.batch
	if l.tp.Topic == stateTopic || b.ProducerID() < 0 {
		return
	}
	if b.Control() {
		mk, ok, err := b.Marker()
		if !ok || err != nil {
			m.w.judge("%v: a control batch that cannot be read: %v", l.tp, err)
		}
		e.marker = &mk
		m.w.Tracef("%s-%d: marker of %d/%d at %d, commit %v, coordinator epoch %d", l.tp.Topic, l.tp.Partition, b.ProducerID(), b.ProducerEpoch(), b.BaseOffset(), mk.Commit, mk.CoordinatorEpoch)
		m.checkMarker(l, e)
	} else if b.Transactional() {
		m.w.Tracef("%s-%d: data of %d/%d at %d, sequence %d", l.tp.Topic, l.tp.Partition, b.ProducerID(), b.ProducerEpoch(), b.BaseOffset(), b.BaseSequence())
		m.checkData(l, e)
	}
	m.cameBack(l, e)
	m.apply(l, e)
}

// apply notes what a batch opens or ends.
func (m *model) apply(l *simLog, e *entry) {
	p, pid := m.part(l.tp), e.batch.ProducerID()
	switch {
	case e.marker != nil:
		delete(p.open, pid)
		p.epochs[pid] = e.batch.ProducerEpoch()
		p.coords[pid] = e.marker.CoordinatorEpoch
		for _, t := range e.closes {
			t.closed[l.tp] = true
		}
	case e.batch.Transactional() && p.open[pid] == nil:
		p.open[pid] = &open{e.of, e.batch.BaseOffset()}
	}
}

// cut makes anew what is known of a log that has lost its end.
func (m *model) cut(l *simLog) {
	stable := m.part(l.tp).stable
	delete(m.parts, l.tp)
	m.part(l.tp).stable = stable
	for _, s := range m.ids {
		for _, t := range s.all {
			delete(t.closed, l.tp)
		}
	}
	for _, e := range l.raw {
		m.apply(l, e)
	}
}

// checkData: data is in a partition only after its add was durable, in the
// transaction that it belongs to, before that ended there, and never from a
// producer that was fenced.
func (m *model) checkData(l *simLog, e *entry) {
	b, p := e.batch, m.part(l.tp)
	pid, epoch := b.ProducerID(), b.ProducerEpoch()
	if m.w.void {
		return
	}
	t := m.id(m.owners[pid]).cur
	if e.of = t; t != nil && m.w.image().Topic(l.tp.Topic) == nil { // No one sees what is appended to a topic that is gone.
		return
	}
	if epoch < m.fences[pid] {
		m.w.judge("%v: data of %d/%d, though a producer of epoch %d was initialised", l.tp, pid, epoch, m.fences[pid])
	}
	if last, ok := p.epochs[pid]; ok && epoch < last {
		m.w.judge("%v: data of %d/%d after a marker of epoch %d", l.tp, pid, epoch, last)
	}
	switch {
	case t == nil || t.pid != pid || t.epoch != epoch:
		m.w.judge("%v: data of %d/%d, which has no transaction: %v", l.tp, pid, epoch, t)
	case !t.parts[l.tp]:
		m.w.judge("%v: data of %v, to which the partition was not added", l.tp, t)
	case t.closed[l.tp] || t.told[l.tp]:
		m.w.judge("%v: data of %v after its marker", l.tp, t)
	}
	if o := p.open[pid]; o != nil && o.t != t {
		m.w.judge("%v: data of %v while %v is open", l.tp, t, o.t)
	}
}

// checkMarker: a marker says what was decided, and comes from a coordinator that
// is not older than the last that wrote one.
func (m *model) checkMarker(l *simLog, e *entry) {
	b, p := e.batch, m.part(l.tp)
	pid, epoch := b.ProducerID(), b.ProducerEpoch()
	if m.w.void {
		return
	}
	if last, ok := p.coords[pid]; ok && e.marker.CoordinatorEpoch < last {
		m.w.judge("%v: a marker of %d/%d by coordinator epoch %d after one of epoch %d", l.tp, pid, epoch, e.marker.CoordinatorEpoch, last)
	}
	if last, ok := p.epochs[pid]; ok && epoch < last {
		m.w.judge("%v: a marker of %d/%d after one of epoch %d", l.tp, pid, epoch, last)
	}
	if o := p.open[pid]; o != nil {
		if (!o.t.decided || o.t.commit != e.marker.Commit || o.t.markers != epoch) && !m.torn(o.t, l.tp) {
			m.w.judge("%v: a marker of %d/%d, commit %v, ends %v", l.tp, pid, epoch, e.marker.Commit, o.t)
		}
		m.w.Count("marker ends a transaction")
		e.closes = []*transaction{o.t}
		return
	}
	m.w.Count("marker with nothing open")
	for _, t := range m.id(m.owners[pid]).all {
		// Below version 2 of transactions the log does not say which of them it is: a
		// late one of an earlier transaction may be stored when the next is decided.
		if e.start != noStart && e.start != t.start {
			continue
		}
		if t.pid == pid && t.markers == epoch && t.decided && t.commit == e.marker.Commit && t.parts[l.tp] {
			e.closes = append(e.closes, t)
		}
	}
	switch len(e.closes) {
	case 0:
		m.w.judge("%v: a marker of %d/%d, commit %v, of no transaction", l.tp, pid, epoch, e.marker.Commit)
	case 1:
	default:
		// Below version 2 of transactions it may be a late one of any of them, and
		// data of the last may be on its way behind it.
		e.closes = nil
	}
}

// acknowledged is told that a leader says that a marker is written. It may have
// found that there is no need, but then nothing of the transaction is open, nor
// will be.
func (m *model) acknowledged(tp store.TopicPartition, mk *kmsg.WriteTxnMarkersRequestMarker) {
	if m.w.void {
		return
	}
	start := int64(machine.TxnStartOf(&mk.UnknownTags))
	for _, t := range m.id(m.owners[mk.ProducerID]).all {
		if t.pid != mk.ProducerID || t.start != start || t.markers != mk.ProducerEpoch || !t.decided || t.commit != mk.Committed || !t.parts[tp] {
			continue
		}
		if o := m.part(tp).open[t.pid]; o != nil && o.t == t {
			m.w.judge("%v: a marker of %v is acknowledged, but it is open", tp, t)
		}
		if !t.closed[tp] && !t.told[tp] {
			m.w.Count("marker left unwritten")
		}
		t.told[tp] = true
	}
}

// durable takes in a batch that is durable.
func (m *model) durable(l *simLog, e *entry) {
	switch l.tp.Topic {
	case stateTopic:
		m.eachRecord(e, m.stateRecord)
	case offsetsTopic:
		m.groups.durable(e)
	}
}

func (m *model) eachRecord(e *entry, do func(key, value []byte, offset int64)) {
	err := e.batch.Each(func(r *record.Record) error {
		do(r.Key, r.Value, r.Offset)
		return nil
	})
	if err != nil {
		m.w.judge("a batch cannot be read: %v", err)
	}
}
