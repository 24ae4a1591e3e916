package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/store"
)

// ErrLayout says that a log is of a layout that cannot be converted.
var ErrLayout = errors.New("only layouts stream and log can be converted")

// Layout returns how the store has laid out the partition's log, "" where there is no choice.
func (p *Partition) Layout() store.Layout {
	if l, ok := p.log.Load().Log.(store.Laid); ok {
		return l.Layout()
	}
	return ""
}

// convertible returns the log if there is something to convert, nil if that has been done.
func (p *Partition) convertible() (store.Convertible, error) {
	if p.cut.Load() {
		return nil, store.ErrClosed // It is led under a higher epoch soon.
	}
	if l, ok := p.log.Load().Log.(store.Convertible); ok {
		return l, nil
	}
	if layout := p.Layout(); layout != store.LayoutIndexed {
		return nil, fmt.Errorf("%w, and it is in layout %s", ErrLayout, layout)
	}
	return nil, nil
}

// PreviewConversion says what there is to convert, and changes nothing.
func (p *Partition) PreviewConversion(ctx context.Context) (store.Conversion, error) {
	l, err := p.convertible()
	if l == nil || err != nil {
		return store.Conversion{}, err
	}
	return l.Preview(ctx)
}

// PrepareConversion does a part of the conversion, for about that long, while clients go on. It says
// how many records are prepared, and whether Convert is next.
func (p *Partition) PrepareConversion(ctx context.Context, span time.Duration) (records int64, done bool, err error) {
	l, err := p.convertible()
	if l == nil || err != nil {
		return 0, err == nil, err
	}
	return l.Prepare(ctx, span)
}

// Convert gives the log layout indexed, and says whether it had another one. The partition is not served from
// then on: clients ask for its leader, and find it under a higher epoch. That is also so if it fails, since
// no one knows whether the log is what it was.
func (p *Partition) Convert(ctx context.Context) (converted bool, err error) {
	l, err := p.convertible()
	if l == nil || err != nil {
		return false, err
	}
	p.mu.Lock()
	switch {
	case p.closed, p.cut.Load():
		err = store.ErrClosed
	case p.mustReopen():
		err = store.ErrFailed
	default:
		p.cut.Store(true) // Nothing opens the log again either, which would take it for one that was cut.
	}
	p.mu.Unlock()
	if err != nil {
		return false, err
	}
	p.waiters.wake(true, true)
	err = l.Convert(ctx)
	p.deps.raise(p.id(), p.epoch, p.epoch)
	return err == nil, err
}

// before says whether an offset that is asked for is of before the log was converted.
func (l *openLog) before(offset int64) bool {
	c, ok := l.Log.(store.Converted)
	if !ok || !store.IsOld(offset) {
		return false
	}
	_, converted := c.Until()
	return converted
}

// CheckAsked refuses to say where a leader epoch ended that is of before the log was converted. Consumers
// would go where it ended, which is not where they have got to, so they are to ask again: their
// group has them begin anew, where it has committed.
func (p *Partition) CheckAsked(epoch int32) *kerr.Error {
	if c, ok := p.log.Load().Log.(store.Converted); ok {
		if until, converted := c.Until(); converted && epoch <= until {
			return kerr.OffsetNotAvailable
		}
	}
	return nil
}
