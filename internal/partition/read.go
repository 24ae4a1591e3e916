package partition

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/store"
)

// NoEpoch is a leader epoch that a client does not know.
const NoEpoch = -1

// Fetch asks for records.
type Fetch struct {
	Offset           int64
	LeaderEpoch      int32 // that the client believes in, or NoEpoch
	LastFetchedEpoch int32 // of the last record the client has, or NoEpoch
	MaxBytes         int
	MinOne           bool // return the first batch whatever its size
	Committed        bool // only what is below the last stable offset
}

// Fetched is the answer to Fetch. Records must be released.
type Fetched struct {
	Err              *kerr.Error
	Records          store.Records
	HighWatermark    int64
	LastStableOffset int64
	LogStartOffset   int64
	// Aborted has the aborted transactions whose records may be among these, in the
	// order of their first offsets. It is set only for Fetch.Committed: other
	// readers would drop the records.
	Aborted []store.Aborted
	// Diverging is set when the client's last records are not in this log.
	Diverging *EpochEnd
}

// EpochEnd is where a leader epoch ended.
type EpochEnd struct {
	Epoch     int32
	EndOffset int64
}

// CheckEpoch compares the leader epoch that a client believes in with ours.
func (p *Partition) CheckEpoch(epoch int32) *kerr.Error {
	switch {
	case epoch == NoEpoch || epoch == p.epoch:
		return nil
	case epoch < p.epoch:
		return kerr.FencedLeaderEpoch
	default:
		return kerr.UnknownLeaderEpoch
	}
}

// Read reads records.
func (p *Partition) Read(ctx context.Context, f Fetch) Fetched {
	out := Fetched{HighWatermark: -1, LastStableOffset: -1, LogStartOffset: -1}
	if out.Err = p.CheckEpoch(f.LeaderEpoch); out.Err != nil {
		return out
	}
	if p.cut.Load() {
		out.Err = kerr.NotLeaderForPartition
		return out
	}
	if hw := p.HighWatermark(); f.Offset > hw || f.Offset == hw && !p.watched() {
		if out.Err = p.Refresh(ctx); out.Err != nil {
			return out
		}
	}
	l := p.log.Load()
	stable := l.lastStable.Load()
	start, end := l.Bounds()
	// None is above the next.
	out.LogStartOffset, out.LastStableOffset = start, max(start, stable)
	out.HighWatermark = p.HighWatermark()
	// Within the current epoch nothing can diverge.
	if f.LastFetchedEpoch != NoEpoch && f.LastFetchedEpoch != p.epoch {
		if e := epochEnd(l.Epochs(), f.LastFetchedEpoch, end); e.Epoch < f.LastFetchedEpoch || e.EndOffset < f.Offset {
			if e.Epoch != NoEpoch {
				out.Diverging = &e
				return out
			}
		}
	}
	if f.Offset > end && l.before(f.Offset) {
		out.Err = kerr.OffsetNotAvailable // Consumers ask again, until their group has them begin anew.
		return out
	}
	if f.Offset < start || f.Offset > end {
		out.Err = kerr.OffsetOutOfRange
		return out
	}
	limit := out.HighWatermark
	if f.Committed {
		limit, out.Aborted = out.LastStableOffset, []store.Aborted{}
	}
	if f.Offset >= limit || f.MaxBytes <= 0 && !f.MinOne {
		return out
	}
	recs, err := l.Read(ctx, store.ReadRequest{Offset: f.Offset, NextOffset: limit, MaxBytes: f.MaxBytes, MinOne: f.MinOne})
	if err != nil {
		out.Err = p.wireError("read", err)
		return out
	}
	out.Records = recs
	if f.Committed && recs.Len > 0 {
		p.addAborted(ctx, l, f, &out)
	}
	return out
}

// EpochEnd returns the largest leader epoch not above the one asked for, and
// where it ended; NoEpoch if there is none.
func (p *Partition) EpochEnd(epoch int32) EpochEnd {
	l := p.log.Load()
	_, end := l.Bounds()
	if epoch == p.epoch {
		return EpochEnd{Epoch: epoch, EndOffset: end}
	}
	return epochEnd(l.Epochs(), epoch, end)
}

func epochEnd(epochs []store.EpochStart, epoch int32, logEnd int64) EpochEnd {
	out := EpochEnd{Epoch: NoEpoch, EndOffset: -1}
	for i, e := range epochs {
		if e.Epoch > epoch {
			break
		}
		out = EpochEnd{Epoch: e.Epoch, EndOffset: logEnd}
		if i+1 < len(epochs) {
			out.EndOffset = epochs[i+1].Start
		}
	}
	return out
}

// OffsetForTimestamp finds the first record with that timestamp or a later one
// among those below limit.
func (p *Partition) OffsetForTimestamp(ctx context.Context, ts, limit int64) (store.TimestampOffset, bool, *kerr.Error) {
	hit, ok, err := p.log.Load().OffsetForTimestamp(ctx, ts)
	return p.visible(hit, ok, limit, err)
}

// MaxTimestamp finds the record with the largest timestamp.
func (p *Partition) MaxTimestamp(ctx context.Context, limit int64) (store.TimestampOffset, bool, *kerr.Error) {
	hit, ok, err := p.log.Load().MaxTimestamp(ctx)
	return p.visible(hit, ok, limit, err)
}

func (p *Partition) visible(hit store.TimestampOffset, ok bool, limit int64, err error) (store.TimestampOffset, bool, *kerr.Error) {
	if err != nil {
		return hit, false, p.wireError("search", err)
	}
	return hit, ok && hit.Offset < limit, nil
}

// EpochAt returns the leader epoch that appended the record at an offset.
func (p *Partition) EpochAt(offset int64) int32 {
	epoch := int32(NoEpoch)
	for _, e := range p.log.Load().Epochs() {
		if e.Start > offset {
			break
		}
		epoch = e.Epoch
	}
	return epoch
}

// DeleteBefore removes the records below an offset, or all visible ones if it
// is -1, and returns the new log start offset.
func (p *Partition) DeleteBefore(ctx context.Context, offset int64) (int64, *kerr.Error) {
	hw := p.HighWatermark()
	if offset == -1 {
		offset = hw
	}
	if offset > hw || offset < 0 {
		return -1, kerr.OffsetOutOfRange
	}
	if err := p.log.Load().Trim(ctx, offset); err != nil {
		return -1, p.wireError("delete records", err)
	}
	return p.LogStartOffset(), nil
}
