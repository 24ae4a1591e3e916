package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// sharedLog is a log that several brokers append to, in the log layout. Where
// the log ends is in the meta hash, and an append that believes something else
// is refused.
type sharedLog struct {
	store *Store
	keys  keys
}

// OpenShared implements store.Shared.
func (s *Store) OpenShared(ctx context.Context, tp store.TopicPartition) (store.SharedLog, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	l := &sharedLog{store: s, keys: logKeys(s.prefix, tp)}
	r, err := l.run(ctx, "open", openSharedScript)
	if err != nil {
		return nil, err
	}
	if r[0].text() != "ok" {
		return nil, fmt.Errorf("%w: open %s: a log of layout %q", store.ErrCorrupt, l.keys.stream, r[1].text())
	}
	return l, nil
}

// run runs a script of the shared log. Its reply has two values at least.
func (l *sharedLog) run(ctx context.Context, what, script string, args ...string) ([]reply, error) {
	if err := l.store.check(); err != nil {
		return nil, err
	}
	what += " " + l.keys.stream
	r, err := replies(l.store.do(ctx, l.store.eval(evenWhenFull+script, []string{l.keys.stream, l.keys.meta, l.keys.rewrite}, args)))
	if err != nil {
		return nil, attempt(what, err)
	}
	if len(r) < 2 {
		return nil, fmt.Errorf("%w: %s: short reply", store.ErrStorage, what)
	}
	return r, nil
}

// AppendAt implements store.SharedLog.
func (l *sharedLog) AppendAt(ctx context.Context, logEnd int64, batch []byte) error {
	if n, err := record.Peek(batch); err != nil || n != len(batch) {
		return store.ErrInvalidBatch
	}
	b := append(record.Batch(nil), batch...)
	b.SetBaseOffset(logEnd)
	id := entryID{ms: uint64(b.LastOffset()) + 1}
	r, err := l.run(ctx, "append", appendSharedScript, decimal(logEnd), id.String(), decimal(b.LastOffset()+1), rueidis.BinaryString(b), decimal(b.MaxTimestamp()))
	if err != nil {
		return err
	}
	switch r[0].text() {
	case "ok":
		record.Batch(batch).SetBaseOffset(logEnd)
		return nil
	case "moved":
		return fmt.Errorf("%w: to %s", store.ErrMoved, r[1].text())
	case "gone":
		return store.ErrClosed
	}
	return fmt.Errorf("%w: append %s: %s", store.ErrStorage, l.keys.stream, r[1].text())
}

// sharedReadEntries bounds what one Read of a shared log asks for.
const sharedReadEntries = 500

// Read implements store.SharedLog.
func (l *sharedLog) Read(ctx context.Context, offset int64, wait time.Duration) ([]byte, error) {
	if err := l.store.check(); err != nil {
		return nil, err
	}
	after := entryID{ms: uint64(max(offset, 0))}.String()
	b := l.store.client.B()
	cmd := b.Xread().Count(sharedReadEntries).Streams().Key(l.keys.stream).Id(after).Build()
	if wait > 0 {
		cmd = b.Xread().Count(sharedReadEntries).Block(max(wait.Milliseconds(), 1)).Streams().Key(l.keys.stream).Id(after).Build()
	}
	ctx, cancel := context.WithTimeout(ctx, l.store.timeout+max(wait, 0))
	defer cancel()
	m, err := l.store.client.Do(ctx, cmd).ToMessage()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, attempt("read "+l.keys.stream, err)
	}
	var out []byte
	for _, e := range readEntries(&m) {
		s, err := decodeBatch(&e)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", l.keys.stream, err)
		}
		out = append(out, s.batch...)
	}
	return out, nil
}

// readEntries returns the entries in a reply of XREAD of one stream, which is
// a map or, in the older protocol, a list of pairs.
func readEntries(m *rueidis.RedisMessage) []rueidis.RedisMessage {
	if byKey, err := m.AsMap(); err == nil {
		for _, list := range byKey {
			entries, _ := list.ToArray()
			return entries
		}
	}
	streams, _ := m.ToArray()
	for _, one := range streams {
		if pair, _ := one.ToArray(); len(pair) == 2 {
			entries, _ := pair[1].ToArray()
			return entries
		}
	}
	return nil
}

// Start implements store.SharedLog.
func (l *sharedLog) Start(ctx context.Context) (int64, error) {
	start, err := l.store.do(ctx, l.store.client.B().Hget().Key(l.keys.meta).Field("start").Build()).AsInt64()
	if rueidis.IsRedisNil(err) {
		return 0, store.ErrClosed
	}
	return start, attempt("read "+l.keys.meta, err)
}

// Close implements store.SharedLog.
func (*sharedLog) Close() error { return nil }
