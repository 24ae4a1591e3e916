package web

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/auth"
	"muster/internal/search"
	"muster/internal/web/records"
)

// oneLog is a topic of one partition, in memory. It implements Records and search.Log.
type oneLog struct {
	opened func()                      // Called when someone asks for the partition, nil for nothing.
	read   func()                      // The same, before something is read.
	room   func() (int, time.Duration) // What may be read, nil for everything.
	taken  atomic.Int64

	mu    sync.Mutex
	lines []string
	more  chan struct{} // Closed when there is more.
}

func newLog(values ...string) *oneLog { return &oneLog{lines: values, more: make(chan struct{})} }

func (l *oneLog) put(value string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, value)
	close(l.more)
	l.more = make(chan struct{})
}

// Partitions implements Records.
func (l *oneLog) Partitions(string, []int32, bool) (map[int32]search.Log, []records.Elsewhere) {
	if l.opened != nil {
		l.opened()
	}
	return map[int32]search.Log{0: l}, nil
}

// Count implements Records.
func (l *oneLog) Count(context.Context, string, []search.Span) (total int64, dense bool) {
	return -1, true
}

// Await implements Records.
func (l *oneLog) Await(context.Context, string, []int32, bool) (ready <-chan struct{}, done func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.more, func() {}
}

// Quota implements Records.
func (l *oneLog) Quota(auth.Principal) records.Quota { return l }

// Room implements records.Quota.
func (l *oneLog) Room(want int) (int, time.Duration) {
	if l.room == nil {
		return want, 0
	}
	return l.room()
}

// Take implements records.Quota.
func (l *oneLog) Take(n int) { l.taken.Add(int64(n)) }

// Bounds implements search.Log.
func (l *oneLog) Bounds(context.Context) (start, end int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return 0, int64(len(l.lines)), nil
}

// At implements search.Log.
func (l *oneLog) At(context.Context, time.Time) (int64, error) { return 0, nil }

// Density implements search.Log.
func (l *oneLog) Density() float64 { return 100 }

// Read implements search.Log.
func (l *oneLog) Read(_ context.Context, from int64, most int, f func(*search.Record) bool) (search.Chunk, error) {
	if l.read != nil {
		l.read()
	}
	l.mu.Lock()
	values := l.lines[from:]
	l.mu.Unlock()
	c := search.Chunk{Base: from, Next: from}
	for _, v := range values {
		if !f(&search.Record{Offset: c.Next, Value: []byte(v), ValueSize: len(v), ProducerID: -1}) {
			break
		}
		c.Next++
		if c.Bytes += len(v); c.Bytes >= most {
			break
		}
	}
	return c, nil
}
