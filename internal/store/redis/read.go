package redis

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/redis/rueidis"

	"muster/internal/buffer"
	"muster/internal/store"
)

// A read asks for about as many entries as fit, going by the size of those
// that were read before. When it errs, because small ones are followed by large
// ones, the reply must still not become too large.
const (
	maxReadEntries = 2000
	maxReplyBytes  = 128 << 20
)

// readSizes remembers how large the entries were that were read recently.
type readSizes struct{ average atomic.Int64 }

func (s *readSizes) note(bytes, entries int) {
	if entries > 0 {
		s.average.Store(int64(bytes/entries) + 1)
	}
}

// entries returns how many entries to ask for.
func (l *log) entries(bytes int) int64 {
	average := l.sizes.average.Load()
	l.mu.Lock()
	defer l.mu.Unlock()
	if average == 0 {
		average = l.tail.size/max(l.tail.count, 1) + 1
	}
	return min(max(int64(bytes), 0)/average+1, maxReadEntries, max(maxReplyBytes/max(l.tail.largest, 1), 8))
}

// Read implements store.Log.
func (l *log) Read(ctx context.Context, req store.ReadRequest) (store.Records, error) {
	l.mu.Lock()
	ended, start, next, epochs := l.ended, l.start, l.tail.next, l.tail.epochs
	l.mu.Unlock()
	if ended {
		return store.Records{}, store.ErrClosed
	}
	if req.Offset < start || req.Offset > next {
		return store.Records{}, store.ErrOffsetOutOfRange
	}
	req.NextOffset = min(req.NextOffset, next)
	req.MaxBytes = l.store.held.take(req.MaxBytes)
	into := l.numbered.newSink(req, epochs)
	err := l.readInto(ctx, req, into)
	out, ours := into.bytes()
	l.store.held.add(len(out) - req.MaxBytes)
	free := func() {
		l.store.held.add(-len(out))
		if ours {
			buffer.Free(out)
		}
	}
	if err != nil || len(out) == 0 {
		free()
		return store.Records{}, err
	}
	return store.HeldRecords(out, free), nil
}

// sink takes entries in their order.
type sink interface {
	// take takes one, or says that it has enough.
	take(m *rueidis.RedisMessage) (size int, more bool, err error)
	// bytes returns what it has, and whether that is a buffer of the pool.
	bytes() (b []byte, ours bool)
	// room is how many bytes more it can take.
	room() int
}

// readInto reads entries until a sink has enough or the log ends.
func (l *log) readInto(ctx context.Context, req store.ReadRequest, into sink) error {
	from, to := l.idsOf(req.Offset, req.NextOffset)
	for !to.less(from) {
		count := l.entries(into.room())
		entries, err := l.fetch(ctx, req.Offset, from, to, count)
		if err != nil {
			return err
		}
		bytes := 0
		for i := range entries {
			size, more, err := into.take(&entries[i])
			if err != nil {
				return fmt.Errorf("read %s: %w", l.keys.stream, err)
			}
			if !more {
				l.sizes.note(bytes, i)
				return nil
			}
			bytes += size
		}
		l.sizes.note(bytes, len(entries))
		if int64(len(entries)) < count || into.room() <= 0 {
			return nil
		}
		last, _, err := entryParts(&entries[len(entries)-1])
		if err != nil {
			return err
		}
		from = last.after()
	}
	return nil
}

// idsOf returns the ids of the entries that hold an offset and those after it,
// below another offset.
func (l *log) idsOf(offset, next int64) (from, to entryID) {
	if next <= 0 || next <= offset {
		return entryID{ms: 1}, entryID{}
	}
	return l.numbered.span(offset, next)
}

// fetch reads entries, and then the log start offset, in this order: if the
// log was trimmed in between or before, it shows. If someone else has opened the
// log since, it may even be another one of that name, and where it starts says
// nothing.
func (l *log) fetch(ctx context.Context, offset int64, from, to entryID, count int64) ([]rueidis.RedisMessage, error) {
	entries, _, err := l.fetchBeside(ctx, offset, from, to, count)
	return entries, err
}

// fetchBeside is fetch with more commands in the same trip.
func (l *log) fetchBeside(ctx context.Context, offset int64, from, to entryID, count int64, more ...rueidis.Completed) ([]rueidis.RedisMessage, []rueidis.RedisResult, error) {
	b := l.store.client.B()
	results := l.store.doMulti(ctx, append([]rueidis.Completed{
		b.Xrange().Key(l.keys.stream).Start(from.String()).End(to.String()).Count(count).Build(),
		b.Hmget().Key(l.keys.meta).Field("start", "n").Build()}, more...)...)
	entries, err := l.fetched(results[0], results[1], offset)
	return entries, results[2:], err
}

// fetched reads the replies of fetch.
func (l *log) fetched(data, hash rueidis.RedisResult, offset int64) ([]rueidis.RedisMessage, error) {
	what := "read " + l.keys.stream
	entries, err := data.ToArray()
	if err != nil {
		return nil, attempt(what, err)
	}
	meta, err := replies(hash)
	if err != nil {
		return nil, attempt(what, err)
	}
	if len(meta) != 2 || meta[0].m.IsNil() {
		return nil, store.ErrClosed // Deleted.
	}
	start, err := l.parseStart(meta[0].text())
	switch ours := strings.HasPrefix(meta[1].text(), l.owner); {
	case err != nil:
		return nil, err
	case offset < start && !ours:
		return nil, store.ErrClosed
	}
	if offset < l.moveStart(start) {
		return nil, store.ErrOffsetOutOfRange
	}
	return entries, nil
}

// entriesBetween reads entries, wherever the log starts.
func (l *log) entriesBetween(ctx context.Context, from, to entryID, count int64) ([]rueidis.RedisMessage, error) {
	cmd := l.store.client.B().Xrange().Key(l.keys.stream).Start(from.String()).End(to.String()).Count(count).Build()
	entries, err := l.store.do(ctx, cmd).ToArray()
	return entries, attempt("read "+l.keys.stream, err)
}

// parseStart reads the log start offset as the meta hash has it.
func (l *log) parseStart(text string) (int64, error) {
	id, err := parseID(text)
	return l.layout.offsetAt(id), err
}

// moveStart takes note of a log start offset, and returns the one that is known
// then.
func (l *log) moveStart(start int64) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.start = max(l.start, start)
	return l.start
}
