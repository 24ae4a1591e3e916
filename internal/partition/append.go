package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
	"muster/internal/store"
)

// AcksAll is the value of acks that asks for durability.
const AcksAll = -1

// Appended is the outcome of an append.
type Appended struct {
	Err            *kerr.Error
	Message        string        // why, for people
	Records        []RecordError // which records are at fault, if some are
	BaseOffset     int64
	LogAppendTime  int64 // record.NoTimestamp unless the topic uses it
	LogStartOffset int64
	// Stored is how many bytes are stored, where that is not the batch as it came.
	Stored int64
}

func refused(err *kerr.Error, message string) Appended {
	return Appended{Err: err, Message: message, BaseOffset: -1, LogAppendTime: record.NoTimestamp, LogStartOffset: -1}
}

// Produce says how a client wants a batch appended.
type Produce struct {
	Acks            int16
	TransactionalID string // "" for none
	// Version of the Produce request decides how errors of transactions are told,
	// and whether the producer relies on us to add the partition to its transaction.
	Version int16
	// Later, if it is given, takes note of what is to be made durable, and whoever gave it
	// begins that: so all partitions of a request can become durable together.
	Later *Flushes
}

// Flushes are appends that are to be made durable.
type Flushes struct{ all []flush }

type flush struct {
	log  *openLog
	done func(error)
}

// Begin has them made durable.
func (f *Flushes) Begin() {
	for _, x := range f.all {
		x.log.Flush(x.done)
	}
	f.all = nil
}

// terms say what a batch is held to.
type terms struct {
	own    bool   // written by this broker for itself …
	run    string // … in this run of the store
	adds   bool   // of a producer whose transactions have an epoch each (KIP-890)
	asked  *question
	marker *Marker
	orphan *OpenTxn
}

// request is an append that was begun.
type request struct {
	terms
	acks  int16
	out   Appended
	done  func(Appended)
	later *Flushes // nil to make it durable at once
}

// Append appends what a producer sent for this partition, and calls done, at
// once or later, when the outcome is what acks asked for. The bytes may be
// changed, and belong to the caller again when Append returns. done must not
// block.
func (p *Partition) Append(ctx context.Context, batch []byte, how Produce, done func(Appended)) {
	b := record.Batch(batch)
	cfg := p.cfg.Load()
	now := p.deps.now()
	if bad := validate(b, cfg, now); bad.Err != nil {
		bad.LogStartOffset = p.LogStartOffset()
		done(bad)
		return
	}
	b, bad := p.repack(b, cfg)
	if bad.Err != nil {
		done(bad)
		return
	}
	r := request{acks: how.Acks, out: stamp(b, cfg, now), done: done}
	if b.Transactional() {
		p.verify(ctx, b, now.UnixMilli(), how, r)
		return
	}
	r.later = how.Later
	p.put(ctx, b, now.UnixMilli(), r)
}

// AppendOwn appends a batch that this broker made for itself, and calls done when
// it is as durable as acks=all. No one is asked about its transaction, and it has
// no sequence. If it is a marker, it ends a transaction as others do.
func (p *Partition) AppendOwn(ctx context.Context, batch []byte, done func(base int64, err error)) {
	p.AppendOwnIn(ctx, "", batch, done)
}

// AppendOwnIn is AppendOwn for what was concluded from the log in one run of the store's
// server: in another, the log may have lost what it was concluded from.
func (p *Partition) AppendOwnIn(ctx context.Context, run string, batch []byte, done func(base int64, err error)) {
	b, cfg, now := record.Batch(batch), p.cfg.Load(), p.deps.now()
	err := checkOwn(b)
	if err == nil && int64(len(b)) > cfg.MaxMessageBytes {
		err = kerr.MessageTooLarge
	}
	if err != nil {
		done(-1, err)
		return
	}
	report := func(a Appended) {
		if a.Err != nil {
			done(-1, a.Err)
			return
		}
		done(a.BaseOffset, nil)
	}
	p.put(ctx, b, now.UnixMilli(), request{terms: terms{own: true, run: run}, acks: AcksAll, out: stamp(b, cfg, now), done: report})
}

// checkOwn looks for mistakes of ours, which must not come into the log.
func checkOwn(b record.Batch) error {
	if err := b.Check(); err != nil {
		return err
	}
	if b.Control() {
		_, ok, err := b.Marker()
		if err == nil && !ok {
			err = kerr.InvalidRecord
		}
		return err
	}
	return nil
}

// stamp gives a batch the time of its append if the topic wants that.
func stamp(b record.Batch, cfg *config.Topic, now time.Time) Appended {
	out := Appended{LogAppendTime: record.NoTimestamp}
	if cfg.LogAppendTime && !b.Control() {
		out.LogAppendTime = now.UnixMilli()
		b.SetLogAppendTime(out.LogAppendTime)
	}
	return out
}

// mustFlush says whether a batch is to be durable whatever the settings are: a
// transaction marker, and the decision that it rests on. If only the one survived a
// loss of power, partitions would disagree about a transaction.
func (p *Partition) mustFlush(b record.Batch) bool {
	return b.Control() || p.topic == metadata.TransactionsTopic
}

// put appends a batch on its terms.
func (p *Partition) put(ctx context.Context, b record.Batch, now int64, r request) {
	if p.pipelined {
		p.begin(ctx, b, now, &pendingAppend{
			request: r, transactional: b.Transactional(), control: b.Control(),
			producer: b.ProducerID(), epoch: b.ProducerEpoch(), first: b.BaseSequence(), last: b.LastSequence(),
		})
		return
	}
	end, l, err := p.appendValid(ctx, b, now, &r)
	if err != nil {
		r.done(refused(err, ""))
		return
	}
	r.out.LogStartOffset, _ = l.Bounds()
	if !p.mustFlush(b) && (r.acks != AcksAll || !p.deps.flushAll()) {
		p.show(l, end, false)
		if p.dirty.CompareAndSwap(false, true) {
			p.deps.dirtied(p)
		}
		r.done(r.out)
		return
	}
	durable := func(err error) {
		if err != nil {
			r.done(refused(p.syncFailed(l, err), ""))
			return
		}
		p.show(l, end, true)
		r.done(r.out)
	}
	if r.later != nil {
		r.later.all = append(r.later.all, flush{l, durable})
		return
	}
	l.Flush(durable)
}

// appendValid appends a validated batch under the lock, or finds that it was
// appended before. It returns the offset up to which the log must be durable.
func (p *Partition) appendValid(ctx context.Context, b record.Batch, now int64, r *request) (int64, *openLog, *kerr.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, nil, kerr.NotLeaderForPartition
	}
	end, l, err := p.tryAppend(ctx, b, now, r)
	if errors.Is(err, store.ErrFailed) {
		p.failed.Store(true)
		end, l, err = p.tryAppend(ctx, b, now, r)
	}
	var wire *kerr.Error
	if err != nil && !errors.As(err, &wire) {
		wire = p.wireError("append", err)
	}
	return end, l, wire
}

func (p *Partition) tryAppend(ctx context.Context, b record.Batch, now int64, r *request) (int64, *openLog, error) {
	if p.failed.Load() {
		if err := p.openAgain(ctx); err != nil {
			return 0, nil, err
		}
	}
	l := p.log.Load()
	if b.ProducerID() >= 0 {
		known, err := p.mayAppend(l, b, &r.terms)
		if err != nil {
			return 0, nil, err
		}
		if known != nil {
			r.out.BaseOffset = known.BaseOffset
			return known.LastOffset + 1, l, nil
		}
	}
	p.used = true
	at, err := l.Append(ctx, b)
	if err != nil {
		return 0, nil, err
	}
	if at.Rolled && (len(p.producers) > 0 || p.cfg.Load().SegmentBytes > worthRead) {
		if err := l.SaveProducers(ctx, p.producers.List(), at.BaseOffset); err != nil {
			p.deps.logger.Warn("producer state not saved; a restart will take longer", "topic", p.topic, "partition", p.index, "error", err)
		}
	}
	if err := p.note(ctx, l, b, now, r); err != nil {
		// The log has it, and the state does not: only the log can be trusted.
		p.failed.Store(true)
		return 0, nil, err
	}
	p.noted = at.LastOffset + 1
	r.out.BaseOffset = at.BaseOffset
	return p.noted, l, nil
}

// note takes in a batch that the log has taken.
func (p *Partition) note(ctx context.Context, l *openLog, b record.Batch, now int64, r *request) error {
	if _, err := p.producers.Note(b, now); err != nil || !b.Transactional() {
		return err
	}
	if !b.Control() {
		p.begins(b.ProducerID(), b.BaseOffset(), r.start())
		p.questions.arrived(b.ProducerID())
		return nil
	}
	p.questions.end(b.ProducerID(), b.ProducerEpoch(), r.marker)
	p.noteEnd(b.ProducerID(), r.marker, b.LastOffset())
	m, _, err := b.Marker()
	return errors.Join(err, p.ends(ctx, l, b.ProducerID(), b.LastOffset(), m.Commit))
}

// syncFailed logs a failed sync and notes that the log must be opened again, unless it was since.
func (p *Partition) syncFailed(l *openLog, err error) *kerr.Error {
	if p.log.Load() == l && !errors.Is(err, store.ErrClosed) {
		p.failed.Store(true)
	}
	return p.wireError("sync", err)
}

// validate checks a batch as far as the topic's settings decide.
func validate(b record.Batch, cfg *config.Topic, now time.Time) Appended {
	if int64(len(b)) > cfg.MaxMessageBytes {
		return refused(kerr.MessageTooLarge, fmt.Sprintf("the record batch has %d bytes, the topic allows %d (max.message.bytes)", len(b), cfg.MaxMessageBytes))
	}
	if err := b.ValidateProduced(); err != nil {
		switch {
		case errors.Is(err, record.ErrMagic):
			return refused(kerr.InvalidRecord, "only message format v2 is supported: "+err.Error())
		case errors.Is(err, record.ErrInvalid):
			return refused(kerr.InvalidRecord, err.Error())
		}
		return refused(kerr.CorruptMessage, err.Error())
	}
	return validateRecords(b, cfg, now)
}
