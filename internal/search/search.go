package search

import (
	"cmp"
	"context"
	"time"
)

// Log is a partition, as far as the one who searches may read it.
type Log interface {
	// Bounds returns the offset of the first record, and the one after the last.
	Bounds(ctx context.Context) (start, end int64, err error)
	// At returns the offset of the first record with that timestamp or a later one,
	// and the end if there is none.
	At(ctx context.Context, t time.Time) (int64, error)
	// Density is about how many bytes there are for an offset.
	Density() float64
	// Read calls f with records, in the order of their offsets, beginning with the batch
	// that an offset is in, until it has read about so many bytes, but one batch at
	// least, or f wants no more. The record is there for the call only.
	Read(ctx context.Context, from int64, most int, f func(*Record) bool) (Chunk, error)
}

// Chunk is what was read at once.
type Chunk struct {
	Base  int64 // Where the first batch begins; the offset that was asked for if there is none.
	Next  int64 // From where to read on.
	Bytes int
	// Unreadable is how many batches could not be read, which were passed over.
	Unreadable int
}

// Found is a record that was looked for. Of key and value it has the beginning, if they
// are long.
type Found struct {
	Record
	Result string // What jq made of it, as JSON.
}

// Limits bound a search.
type Limits struct {
	Records int           // That are found.
	Bytes   int64         // That are read.
	Page    int           // Bytes of what is found.
	Shown   int           // Bytes of a key or a value that are shown.
	Time    time.Duration // At least one record is looked at, however long it takes.
}

// Search is a search to be made.
type Search struct {
	Logs   map[int32]Log
	Filter *Filter
	Limits Limits
	Dense  bool // Each offset is a record, mostly.
	Now    func() time.Time
	// Found and Progress are called meanwhile, by the one who searches.
	Found    func(*Found)
	Progress func(Progress)
}

// Progress is how far a search has got.
type Progress struct {
	Searched, Found int64
	// Total is how many records there are to be searched, as far as is known: About
	// says that there may be fewer. It is -1 if nothing is known.
	Total int64
	About bool
	Bytes int64 // Read by this part of the search.
}

// The reasons why a part of a search ends.
const (
	AtEnd     = "end"     // Everything has been searched.
	AtLimit   = "limit"   // So many were found.
	AtBytes   = "bytes"   // So much was read.
	AtPage    = "page"    // So much was found.
	AtTimeout = "time"    // So long it took.
	AtFailure = "failure" // A partition could not be read.
)

// Outcome is how a part of a search ended.
type Outcome struct {
	Progress
	Why  string
	Next *Cursor // Nil after the last part.
	// Cut is how many records were too large to be looked at whole, and Unreadable how
	// many batches could not be read.
	Cut, Unreadable int
	// Failed is on how many records jq failed, and Failure why, for the first.
	Failed   int
	Failure  string
	Failures []Failure
}

// Failure is a partition that could not be read.
type Failure struct {
	Partition int32
	Err       error
}

// Begin returns the cursor from which a search begins: its end is fixed, so that it comes
// to one.
func Begin(ctx context.Context, logs map[int32]Log, partitions []int32, from, to Place) (*Cursor, error) {
	c := &Cursor{Total: -1}
	for _, p := range partitions {
		log := logs[p]
		if log == nil {
			continue
		}
		start, end, err := log.Bounds(ctx)
		if err != nil {
			return nil, err
		}
		low, err := from.in(ctx, log, start, end)
		if err != nil {
			return nil, err
		}
		high, err := to.in(ctx, log, start, end)
		if err != nil {
			return nil, err
		}
		c.Spans = append(c.Spans, Span{p, low, max(low, high)})
	}
	return c, nil
}

// in returns the offset of a place in a partition.
func (p Place) in(ctx context.Context, log Log, start, end int64) (int64, error) {
	switch p.Kind {
	case AtOffset:
		return min(max(p.Offset, start), end), nil
	case AtTime:
		at, err := log.At(ctx, p.Time)
		return min(max(at, start), end), err
	case End:
		return end, nil
	}
	return start, nil
}

// Run makes a part of a search, from a cursor on. It is an error only if ctx has ended.
func (s *Search) Run(ctx context.Context, from *Cursor) (*Outcome, error) {
	w := newSweep(ctx, s, from)
	for w.why == "" {
		l := w.furthestBack()
		if l == nil {
			break
		}
		w.advance(l)
		w.release()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.bound()
		w.tell()
	}
	return w.end(), nil
}

// end tells what is still held, and how it ended.
func (w *sweep) end() *Outcome {
	for len(w.held) > 0 {
		w.pass()
	}
	next := &Cursor{Question: w.from.Question, Newest: w.from.Newest, Total: w.from.Total}
	for _, l := range w.lanes {
		if !l.done() {
			next.Spans = append(next.Spans, l.span)
		}
		if l.failed != nil {
			w.out.Failures = append(w.out.Failures, Failure{l.span.Partition, l.failed})
		}
	}
	w.out.Progress = w.progress()
	next.Searched, next.Found = w.out.Searched, w.out.Found
	switch {
	case len(next.Spans) == 0:
		w.out.Why = AtEnd
		return &w.out
	case w.why != "":
		w.out.Why = w.why
	case w.told >= w.Limits.Records:
		w.out.Why = AtLimit
	default:
		w.out.Why = AtFailure
	}
	w.out.Next = next
	return &w.out
}

// progress says how far it has got.
func (w *sweep) progress() Progress {
	out := Progress{Searched: w.from.Searched, Found: w.from.Found + int64(w.told), Total: -1, Bytes: w.bytes}
	var left int64
	for _, l := range w.lanes {
		out.Searched += l.searched
		left += l.span.High - l.span.Low
	}
	switch {
	case w.Dense || left == 0:
		out.Total, out.About = out.Searched+left, left > 0
	case w.from.Total >= 0:
		out.Total, out.About = max(w.from.Total, out.Searched), true
	}
	return out
}

// tellEvery is how often progress is told.
const tellEvery = 200 * time.Millisecond

func (w *sweep) tell() {
	if now := w.Now(); now.Sub(w.toldAt) >= tellEvery {
		w.toldAt = now
		w.Search.Progress(w.progress())
	}
}

// bound ends the search when it has taken what it may.
func (w *sweep) bound() {
	switch {
	case w.told >= w.Limits.Records:
		w.why = AtLimit
	case w.full:
		w.why = AtPage
	case !w.moved:
	case w.bytes >= w.Limits.Bytes:
		w.why = AtBytes
	case w.over():
		w.why = AtTimeout
	}
}

// before says whether a record that was found comes before another.
func (h *held) before(o *held) bool {
	return cmp.Or(cmp.Compare(h.key, o.key), cmp.Compare(h.lane.span.Partition, o.lane.span.Partition), cmp.Compare(h.number, o.number)) < 0
}
