package partition

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"muster/internal/store"
)

// goneFor is how long a log that is gone is left alone, which is more than it
// takes to hear of a change of the metadata.
const goneFor = 2 * time.Second

// fullFor is how long a log is left alone that has taken nothing since it was
// opened. Most likely the store is full. Retention and those who delete records
// make room through the log that is open, and get nowhere if each attempt of a
// producer opens another.
const fullFor = 500 * time.Millisecond

var errFull = errors.New("the store has just refused an append")

// Reopen makes certain what the log holds: when it returns without error, every
// append that was under way is either below the high watermark, which is the end
// of the log, or refused for good. A caller that does not know the outcome of
// an append calls it before reading the log to its end.
//
// A log to which nothing was appended since it was opened leaves no doubt, and
// stays open as it is.
func (p *Partition) Reopen(ctx context.Context) error {
	end, l, err := p.reopen(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return p.wireError("open", err)
	}
	if l == nil {
		return nil
	}
	flushed := make(chan error, 1)
	l.Flush(func(err error) {
		if err == nil {
			p.show(l, end, true) // Also if no one waits for it any more.
		}
		flushed <- err
	})
	select {
	case err = <-flushed:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err != nil {
		return p.syncFailed(l, err)
	}
	return nil
}

// reopen opens the log in the place of the one that is open, if there may be
// anything in doubt about that one.
func (p *Partition) reopen(ctx context.Context) (end int64, l *openLog, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return 0, nil, store.ErrClosed
	case p.cut.Load():
		return 0, nil, errCut
	case p.mustReopen():
		err = p.openAgain(ctx)
		return p.HighWatermark(), p.log.Load(), err
	case !p.used:
		return 0, nil, nil
	}
	end, err = p.openLog(ctx)
	if err != nil {
		p.failed.Store(true) // No one knows which of the two handles is good.
		return 0, nil, err
	}
	return end, p.log.Load(), nil
}

// openAgain opens a failed log again. Records may have been lost that the
// producers' state remembers, so no sequence is looked at before. What is in the
// log now is durable, so all of it may be seen.
func (p *Partition) openAgain(ctx context.Context) error {
	if p.cut.Load() {
		return errCut
	}
	if p.deps.now().Before(p.notBefore) {
		return p.resting
	}
	end, err := p.openLog(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrStorage, err)
	}
	p.show(p.log.Load(), end, true)
	p.failed.Store(false)
	level := slog.LevelInfo
	if _, shared := p.deps.store.(store.Shared); shared {
		level = slog.LevelDebug // The store was away, which is told once and not by each partition.
	}
	p.deps.logger.Log(ctx, level, "log opened again after a storage failure", "topic", p.topic, "partition", p.index)
	return nil
}

// mustReopen says whether the log must be opened again before anything is appended.
func (p *Partition) mustReopen() bool { return p.failed.Load() || p.pipelined && p.hasFailed() }

// HasRestarted says whether the store's server was started again since a run in which the
// log was opened.
func (p *Partition) HasRestarted(since store.Run) bool {
	l, ok := p.log.Load().Log.(store.Restarting)
	return ok && (l.Failed() || l.Run() != since)
}

// isOtherRun says whether someone speaks of another run of the store's server than the
// one in which the log was opened.
func (p *Partition) isOtherRun(id string) bool { return id != "" && p.run.ID != "" && id != p.run.ID }

// MaxBatch returns how many bytes a record batch may have.
func (p *Partition) MaxBatch() int { return int(p.cfg.Load().MaxMessageBytes) }

// errCut says that a log has less than readers were shown.
var errCut = fmt.Errorf("%w: it lost records, and must be led under a higher epoch", store.ErrFenced)

// cutBack notes that the log has less than readers were shown. Its next records
// will have offsets that such readers take for seen, and only a higher leader
// epoch tells them to look where they are (KIP-320). The partition ends, and is
// opened anew under that epoch.
func (p *Partition) cutBack(shown, end int64) error {
	p.deps.logger.Warn("records are lost; the leader epoch rises", "topic", p.topic, "partition", p.index, "epoch", p.epoch, "had", shown, "has", end)
	p.cut.Store(true)
	p.deps.raise(p.id(), p.epoch, p.epoch)
	p.waiters.wake(true, true)
	return errCut
}
