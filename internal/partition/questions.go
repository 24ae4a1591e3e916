package partition

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
)

// Bounds for what waits for coordinators.
const (
	maxParked   = 64 << 20 // bytes, of all partitions
	maxParkedIn = 16 << 20 // of one
	// parkedOverhead is about the memory of a batch that waits beyond its bytes,
	// and of its question.
	parkedOverhead = 1 << 10
	// maxLowest is of how many producers the lowest sequence is remembered.
	maxLowest = 10_000
)

// questions are those that coordinators are asked for a partition. The partition's
// lock guards them.
type questions struct {
	asked  map[questionKey]*question
	bytes  int64
	lowest map[int64]lowest
}

type questionKey struct {
	producer int64
	epoch    int16
	id       string
	add      bool
}

// question is one of them, with the batches that wait for its answer.
type question struct {
	key     questionKey
	guard   *guard
	began   time.Time
	asked   int       // how often
	waiting []*parked // in the order in which they came
	// Once the coordinator has answered that the transaction is there:
	answered bool
	start    int64
}

// guard notices whether the transaction that a coordinator is asked about ends
// before the answer is used. It is made before the question is asked.
type guard struct {
	lost    bool  // the log was opened again, and no one watched
	ending  int   // markers under way
	ended   bool  // by a marker that may be any transaction's
	endedAt int64 // the latest start of the transactions that markers ended
}

func newGuard(lost bool) *guard { return &guard{lost: lost, endedAt: NoStart} }

// parked is a batch that waits.
type parked struct {
	request
	ctx     context.Context
	batch   record.Batch
	now     int64
	version int16
}

func (w *parked) size() int64 { return int64(len(w.batch)) + parkedOverhead }

// lowest is the lowest sequence that a coordinator was asked about, of a producer
// that is not known.
type lowest struct {
	epoch    int16
	sequence int32
	at       time.Time
}

// verdict says whether a transaction may begin on the coordinator's word. A marker
// of one that began earlier than what the coordinator answered leaves that true.
func (q *question) verdict() *kerr.Error {
	g := q.guard
	switch {
	case g.lost || g.ending > 0:
		return kerr.NotLeaderForPartition
	case g.ended || g.endedAt != NoStart && q.start <= g.endedAt:
		return kerr.InvalidTxnState
	}
	return nil
}

// stale says whether the answer is of no use to another batch. The question may
// still be there because those that waited are being appended.
func (q *question) stale() bool { return q.guard.ended || q.answered && q.verdict() != nil }

func (t *terms) start() int64 {
	if t.asked == nil {
		return NoStart
	}
	return t.asked.start
}

func (qs *questions) add(key questionKey, now time.Time) *question {
	if qs.asked == nil {
		qs.asked = map[questionKey]*question{}
	}
	q := &question{key: key, guard: newGuard(false), began: now, start: NoStart}
	qs.asked[key] = q
	return q
}

func (qs *questions) remove(q *question) {
	if qs.asked[q.key] == q {
		delete(qs.asked, q.key)
	}
}

// lose notes that the log was opened again.
func (qs *questions) lose() {
	for _, q := range qs.asked {
		q.guard.lost = true
	}
}

// ending notes that a producer's marker is on its way into the log, and returns
// the guards that it concerns: not those of a later epoch than the one it ends.
func (qs *questions) ending(producer int64, epoch int16, m *Marker) []*guard {
	var out []*guard
	for key, q := range qs.asked {
		if key.producer != producer || m != nil && m.Version >= tv2 && key.epoch >= epoch {
			continue
		}
		q.guard.ending++
		out = append(out, q.guard)
	}
	return out
}

// ended notes that the marker is in the log.
func (qs *questions) ended(guards []*guard, m *Marker) {
	for _, g := range guards {
		g.ending--
		if m == nil || m.Start == NoStart {
			g.ended = true
			continue
		}
		g.endedAt = max(g.endedAt, m.Start)
	}
}

// end notes that a producer's marker is in the log.
func (qs *questions) end(producer int64, epoch int16, m *Marker) {
	if len(qs.asked) > 0 {
		qs.ended(qs.ending(producer, epoch, m), m)
	}
	delete(qs.lowest, producer)
}

// lowerTo remembers the sequence of a batch if it is the lowest of its producer.
func (qs *questions) lowerTo(b record.Batch, now time.Time) {
	old, ok := qs.lowest[b.ProducerID()]
	if ok && (old.epoch > b.ProducerEpoch() || old.epoch == b.ProducerEpoch() && old.sequence <= b.BaseSequence()) {
		return
	}
	if qs.lowest == nil {
		qs.lowest = map[int64]lowest{}
	}
	if !ok && len(qs.lowest) >= maxLowest {
		for id := range qs.lowest {
			delete(qs.lowest, id) // Any: no one has so many at once who needs them.
			break
		}
	}
	qs.lowest[b.ProducerID()] = lowest{b.ProducerEpoch(), b.BaseSequence(), now}
}

// lower says whether a coordinator was asked about an earlier batch, which its
// producer will send again.
func (qs *questions) lower(b record.Batch) bool {
	x, ok := qs.lowest[b.ProducerID()]
	return ok && x.epoch == b.ProducerEpoch() && x.sequence < b.BaseSequence()
}

// arrived forgets what is not needed of a producer that has become known.
func (qs *questions) arrived(producer int64) { delete(qs.lowest, producer) }

// expire forgets producers that have not come back.
func (qs *questions) expire(oldest time.Time) {
	for id, x := range qs.lowest {
		if x.at.Before(oldest) {
			delete(qs.lowest, id)
		}
	}
}

// reserve takes room for a batch that is to wait, if there is any. A batch may wait
// alone whatever its size.
func (p *Partition) reserve(n int64) bool {
	if p.questions.bytes > 0 && p.questions.bytes+n > maxParkedIn {
		return false
	}
	if all := p.deps.parked.Add(n); all > maxParked && all > n {
		p.deps.parked.Add(-n)
		return false
	}
	p.questions.bytes += n
	return true
}

func (p *Partition) unreserve(n int64) {
	p.deps.parked.Add(-n)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.questions.bytes -= n
}
