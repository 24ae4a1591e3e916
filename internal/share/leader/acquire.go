package leader

import (
	"context"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/partition"
	"muster/internal/share/window"
	"muster/internal/store"
)

// In is a share partition, and the log that it is of.
type In struct {
	Key
	Log *partition.Partition
	// Sparse says that the offsets of the log have holes.
	Sparse bool
}

// Fetch is what a member asks for of a share partition.
type Fetch struct {
	Member     string
	Mode       window.Mode
	MaxRecords int64
	BatchSize  int64
	MaxBytes   int
	MinOne     bool  // return the first batch whatever its size
	Wait       *Wait // nil for who would not wait
}

// Acquired is what it gets. Records must be released: batches as they are in the log, from the
// first record that was acquired to the last, with others in between.
type Acquired struct {
	Err     *kerr.Error
	Ranges  []window.Range
	Records store.Records
	Count   int64 // of records
}

// maxLooks is how often a fetch reads on if it came by nothing but what no one is given.
const maxLooks = 16

// lookBytes is how much of the log is read at once, whatever a member would take: what it gets
// is bounded by records mostly, and Java's consumer asks for 50 MiB.
const lookBytes = 1 << 20

// Acquire gives records to a member. It reads, and waits for nothing else: a share partition
// that is not here is loaded meanwhile, and whoever watches it is woken.
func (l *Leader) Acquire(ctx context.Context, in In, f Fetch) Acquired {
	p := l.findOrLoad(in.Key, in.Log, in.Sparse)
	if p == nil {
		return Acquired{}
	}
	set := l.opts.Settings(in.Group)
	f.Wait.add(p, set.Committed)
	if l.memory.Load() > l.budget {
		l.evict(0)
	}
	from, out, ok := p.reserve(set, f.Wait)
	if !ok {
		return out
	}
	defer p.unreserve()
	for range maxLooks {
		out = p.look(ctx, set, from, f)
		if out.Err != nil || len(out.Ranges) > 0 || f.MaxRecords <= 0 {
			return out
		}
		next, more := p.nextFetch()
		if !more || next == from || next >= p.limit(set) {
			return out
		}
		from = next
	}
	f.Wait.again() // Others have their turn first.
	return out
}

// limit is the end of what members of the group may see.
func (p *part) limit(set Settings) int64 {
	if set.Committed {
		return p.log.LastStableOffset()
	}
	return p.log.HighWatermark()
}

// reserve makes the caller the one who reads the log for the share partition, if it is there
// and no one else does.
func (p *part) reserve(set Settings, w *Wait) (from int64, out Acquired, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.failure != nil:
		out.Err = p.failure.err
		p.discard()
		return 0, out, false
	case p.dropped || p.window == nil:
		return 0, out, false
	case p.fetching:
		p.waiters.queueUp(w)
		return 0, out, false
	}
	p.window.Configure(set.Settings)
	p.window.LogStart(p.log.LogStartOffset())
	from, ok = p.window.NextFetch()
	if ok && p.leader.memory.Load() > p.leader.budget {
		ok = p.size <= partSize+runSize // Some room is always there for one run.
	}
	p.fetching = ok
	return from, out, ok
}

// unreserve ends reserve.
func (p *part) unreserve() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fetching = false
	p.waiters.wakeNext()
}

func (p *part) nextFetch() (int64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.window.LogStart(p.log.LogStartOffset())
	return p.window.NextFetch()
}

// limitOfWindow is where the window has no more room. No one but who reads for it adds to it.
func (p *part) limitOfWindow() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.window.Limit()
}

// look reads from an offset on, and gives what is there.
func (p *part) look(ctx context.Context, set Settings, from int64, f Fetch) Acquired {
	got := p.log.Read(ctx, partition.Fetch{
		Offset: from, LeaderEpoch: partition.NoEpoch, LastFetchedEpoch: partition.NoEpoch,
		MaxBytes: min(f.MaxBytes, lookBytes), MinOne: f.MinOne, Committed: set.Committed,
	})
	switch {
	case got.Err == kerr.OffsetOutOfRange || got.Err == kerr.OffsetNotAvailable:
		// The log begins later by now, which the next look finds out; or it has lost its end,
		// and what comes in its place is waited for.
		return Acquired{}
	case got.Err != nil:
		return Acquired{Err: got.Err}
	case got.Records.Len == 0:
		return Acquired{}
	}
	read, err := scan(&got, from, p.limitOfWindow(), p.sparse)
	if err != nil {
		got.Records.Release()
		p.leader.opts.Logger.Error("a batch could not be read for a share group", "group", p.key.Group, "topic", p.key.Topic, "partition", p.key.Index, "offset", from, "error", err)
		return Acquired{Err: kerr.CorruptMessage}
	}
	ranges, ok := p.take(f, read, from)
	if !ok || len(ranges) == 0 {
		got.Records.Release()
		return Acquired{}
	}
	out := Acquired{Ranges: ranges}
	for _, r := range out.Ranges {
		out.Count += r.Last - r.First + 1
	}
	out.Records = read.cut(got.Records, out.Ranges[0].First, out.Ranges[len(out.Ranges)-1].Last)
	return out
}

// take acquires of what was read; false says that the share partition is not there any more.
func (p *part) take(f Fetch, read *scanned, from int64) (ranges []window.Range, ok bool) {
	p.mu.Lock()
	defer func() {
		if !ok { // It may be that it has panicked.
			p.discard()
		}
		p.mu.Unlock()
	}()
	if p.dropped {
		return nil, false
	}
	ranges = p.window.Acquire(p.leader.now(), window.Fetch{
		Member: f.Member, Mode: f.Mode, MaxRecords: f.MaxRecords, BatchSize: f.BatchSize,
		From: from, Next: read.next, Batches: read.batches, Aborted: read.aborted,
	})
	p.changed()
	return ranges, true
}
