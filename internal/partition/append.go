package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

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
}

func refused(err *kerr.Error, message string) Appended {
	return Appended{Err: err, Message: message, BaseOffset: -1, LogAppendTime: record.NoTimestamp, LogStartOffset: -1}
}

// Append appends what a producer sent for this partition, and calls done, at
// once or later, when the outcome is what acks asked for. The bytes may be
// changed, and belong to the caller again when Append returns. done must not
// block.
func (p *Partition) Append(ctx context.Context, batch []byte, acks int16, done func(Appended)) {
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
	out := Appended{LogAppendTime: record.NoTimestamp}
	if cfg.LogAppendTime {
		out.LogAppendTime = now.UnixMilli()
		b.SetLogAppendTime(out.LogAppendTime)
	}
	if p.pipelined {
		p.begin(ctx, b, now.UnixMilli(), &pendingAppend{
			acks: acks, out: out, done: done,
			producer: b.ProducerID(), epoch: b.ProducerEpoch(), first: b.BaseSequence(), last: b.LastSequence(),
		})
		return
	}
	end, l, err := p.appendValid(ctx, b, now.UnixMilli(), &out)
	if err != nil {
		done(refused(err, ""))
		return
	}
	out.LogStartOffset, _ = l.Bounds()
	if acks != AcksAll || !p.deps.flushAll() {
		p.show(l, end)
		if p.dirty.CompareAndSwap(false, true) {
			p.deps.dirtied(p)
		}
		done(out)
		return
	}
	l.Flush(func(err error) {
		if err != nil {
			done(refused(p.syncFailed(l, err), ""))
			return
		}
		p.show(l, end)
		done(out)
	})
}

// appendValid appends a validated batch under the lock, or finds that it was
// appended before. It returns the offset up to which the log must be durable.
func (p *Partition) appendValid(ctx context.Context, b record.Batch, now int64, out *Appended) (int64, *openLog, *kerr.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, nil, kerr.NotLeaderForPartition
	}
	end, l, err := p.tryAppend(ctx, b, now, out)
	if errors.Is(err, store.ErrFailed) {
		p.failed.Store(true)
		end, l, err = p.tryAppend(ctx, b, now, out)
	}
	var wire *kerr.Error
	if err != nil && !errors.As(err, &wire) {
		wire = p.wireError("append", err)
	}
	return end, l, wire
}

func (p *Partition) tryAppend(ctx context.Context, b record.Batch, now int64, out *Appended) (int64, *openLog, error) {
	if p.failed.Load() {
		if err := p.openAgain(ctx); err != nil {
			return 0, nil, err
		}
	}
	l := p.log.Load()
	if b.ProducerID() >= 0 {
		duplicate, err := checkSequence(l, p.producers, b)
		if err != nil {
			return 0, nil, err
		}
		if duplicate != nil {
			out.BaseOffset = duplicate.BaseOffset
			return duplicate.LastOffset + 1, l, nil
		}
	}
	p.used = true
	at, err := l.Append(ctx, b)
	if err != nil {
		return 0, nil, err
	}
	if at.Rolled && len(p.producers) > 0 {
		if err := l.SaveProducers(ctx, p.producers.List(), at.BaseOffset); err != nil {
			p.deps.logger.Warn("producer state not saved; a restart will take longer", "topic", p.topic, "partition", p.index, "error", err)
		}
	}
	if _, err := p.producers.Note(b, now); err != nil {
		return 0, nil, err
	}
	out.BaseOffset = at.BaseOffset
	return at.LastOffset + 1, l, nil
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
	if b.Transactional() {
		return refused(kerr.InvalidTxnState, "transactions are not supported yet")
	}
	return validateRecords(b, cfg, now)
}
