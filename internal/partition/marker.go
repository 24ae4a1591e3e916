package partition

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/record"
	"muster/internal/store"
)

// NoStart is the start of a transaction that no one told.
const NoStart int64 = -1

// tv2 is the transaction version from which on each transaction has an epoch of
// its own (KIP-890).
const tv2 = 2

// Marker ends a producer's transaction in this partition.
type Marker struct {
	ProducerID       int64
	ProducerEpoch    int16
	Commit           bool
	CoordinatorEpoch int32
	Version          int8  // of the transaction
	Start            int64 // of the transaction, in milliseconds; NoStart if it is not known
	// Run is the run of the store's server in which the coordinator has the decision; empty
	// if it need not be ours.
	Run string
}

// WriteMarker ends a producer's transaction, and calls done when that is durable,
// whatever the topic's settings: the coordinator forgets a transaction of which
// all markers are written.
func (p *Partition) WriteMarker(ctx context.Context, m Marker, done func(*kerr.Error)) {
	p.putMarker(ctx, terms{marker: &m}, done)
}

func (p *Partition) putMarker(ctx context.Context, t terms, done func(*kerr.Error)) {
	m := t.marker
	if m.ProducerID < 0 || m.ProducerEpoch < 0 {
		done(kerr.InvalidRequest)
		return
	}
	if !p.transactional() {
		done(kerr.UnsupportedForMessageFormat)
		return
	}
	now := p.deps.now().UnixMilli()
	b, err := record.BuildMarker(m.ProducerID, m.ProducerEpoch, record.Marker{Commit: m.Commit, CoordinatorEpoch: m.CoordinatorEpoch}, now)
	if err != nil {
		done(p.wireError("build marker", err))
		return
	}
	p.put(ctx, b, now, request{acks: AcksAll, terms: t, done: func(a Appended) { done(a.Err) }})
}

// mayEnd decides whether a marker may be appended. One that the log has is answered
// when the log is durable as it is.
func (p *Partition) mayEnd(t *terms) (known *store.ProducerBatch, err *kerr.Error) {
	if p.isOtherRun(t.marker.Run) {
		// The store may have lost the decision since. A coordinator that is told so looks.
		return nil, kerr.TransactionCoordinatorFenced
	}
	written, err := p.checkMarker(t)
	if err != nil || !written {
		return nil, err
	}
	if x := p.producers[t.marker.ProducerID]; t.orphan == nil && x.TxnFirst == store.NoTxn {
		// It may be the end of a transaction whose first batch is to come yet.
		p.questions.end(t.marker.ProducerID, t.marker.ProducerEpoch, t.marker)
	}
	// Not the end of the log: a batch may be there whose outcome is not known here
	// yet, and with it a transaction that readers would be shown as decided. Nor the
	// high watermark: the marker may be above it, if it was not durable in time.
	return &store.ProducerBatch{BaseOffset: max(p.noted-1, 0), LastOffset: p.noted - 1}, nil
}

// checkMarker decides whether a marker is to be written; written says that there
// is no need, since the log has it, or that it would change nothing.
func (p *Partition) checkMarker(t *terms) (written bool, err *kerr.Error) {
	m := t.marker
	x := p.producers[m.ProducerID]
	if o := t.orphan; o != nil {
		return x == nil || x.TxnFirst != o.FirstOffset || x.Epoch != o.ProducerEpoch, nil
	}
	if x == nil {
		return false, nil // There is no data, but from now on the epoch is known.
	}
	switch {
	case m.ProducerEpoch < x.Epoch:
		return false, kerr.InvalidProducerEpoch
	case m.CoordinatorEpoch < x.CoordinatorEpoch:
		return false, kerr.TransactionCoordinatorFenced
	case m.ProducerEpoch > x.Epoch:
		return false, nil
	case x.TxnFirst == store.NoTxn:
		// A repeat, or the end of a transaction without data here. An epoch of a
		// coordinator that is newer must become known, to fence the older. Below
		// TV2 only its start tells a repeat from the end of a transaction whose
		// data another leader has, of which this one has not heard yet: that one's
		// append is refused. Who does not tell it gets the benefit of the doubt.
		return m.Version >= tv2 || (m.Start == NoStart || p.hasEnded(m)) && m.CoordinatorEpoch == x.CoordinatorEpoch, nil
	case m.Version >= tv2:
		return false, kerr.InvalidProducerEpoch // It ended the one before: this one has the epoch that it gave.
	}
	return p.isLate(m), nil
}

// lastEnd is the transaction of a producer that ended last.
type lastEnd struct {
	start  int64 // when it began
	marker int64 // the offset of its marker, math.MaxInt64 while that is under way
}

// hasEnded says whether a marker is that of the transaction which ended last here.
// Clocks of coordinators differ, so that nothing is said about others.
func (p *Partition) hasEnded(m *Marker) bool {
	e, ok := p.lastEnds[m.ProducerID]
	return ok && m.Start == e.start
}

// noteEnd remembers which transaction of a producer a marker ends.
func (p *Partition) noteEnd(producer int64, m *Marker, offset int64) {
	delete(p.lastEnds, producer)
	if m == nil || m.Start == NoStart {
		return
	}
	if p.lastEnds == nil {
		p.lastEnds = map[int64]lastEnd{}
	}
	p.lastEnds[producer] = lastEnd{m.Start, offset}
}

// lastBegin is the transaction of a producer whose first batch was under way last.
// If the log is opened again that batch may be there, though its append failed.
type lastBegin struct {
	epoch int16
	start int64
}

// noteBegin remembers which transaction a producer begins.
func (p *Partition) noteBegin(producer int64, epoch int16, start int64) {
	if p.lastBegins == nil {
		p.lastBegins = map[int64]lastBegin{}
	}
	p.lastBegins[producer] = lastBegin{epoch, start}
}

// isLate says whether a marker is that of an earlier transaction than the one that
// is open, which could not have begun before the marker was written. After the log
// was opened again it may not be known when the open one began, but it was after
// those whose markers are in the log.
func (p *Partition) isLate(m *Marker) bool {
	start := p.startOf(m.ProducerID)
	return start != NoStart && m.Start != NoStart && m.Start < start || start != m.Start && p.hasEnded(m)
}

// startOf returns when a producer's open transaction began, also if its first batch
// is still under way; NoStart if no one told.
func (p *Partition) startOf(producer int64) int64 {
	for _, f := range slices.Backward(p.underWay) {
		if f.opens && f.producer == producer {
			return f.start()
		}
	}
	p.showing.Lock()
	defer p.showing.Unlock()
	if t := p.stable.open[producer]; t != nil {
		return t.start
	}
	return NoStart
}

// begins notes that a transaction's first record is stored, unless it is not the
// first. The coordinator said when the transaction began, if it was asked.
func (p *Partition) begins(producer, first, start int64) {
	p.showing.Lock()
	defer p.showing.Unlock()
	if p.stable.open[producer] == nil {
		p.stable.add(&txn{producer: producer, first: first, last: store.NoTxn, start: start, since: p.deps.now()})
	}
}

// ends notes that a transaction's marker is stored. Aborted transactions are listed
// before readers of committed records can see any of them.
func (p *Partition) ends(ctx context.Context, l *openLog, producer, marker int64, commit bool) error {
	p.showing.Lock()
	t := p.stable.end(producer, marker)
	p.showing.Unlock()
	if t == nil || commit {
		return nil
	}
	l.aborts.Store(someAborted)
	return l.NoteAborted(ctx, []store.Aborted{{ProducerID: producer, FirstOffset: t.first, LastOffset: marker}})
}

// transactional says whether the log can hold transactions.
func (p *Partition) transactional() bool {
	r, ok := p.log.Load().Log.(store.Refresher)
	return !ok || r.Transactional()
}
