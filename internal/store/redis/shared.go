package redis

import (
	"context"
	"encoding/binary"
	"fmt"
	"strconv"
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

// run runs a script of the shared log. Its reply has two values at least, of
// which the first says how it went.
func (l *sharedLog) run(ctx context.Context, what, script string, args ...string) ([]reply, error) {
	if err := l.store.check(); err != nil {
		return nil, err
	}
	return l.answer(what, l.store.do(ctx, l.script(script, args)))
}

func (l *sharedLog) script(script string, args []string) rueidis.Completed {
	return l.store.eval(evenWhenFull+script, []string{l.keys.stream, l.keys.meta, l.keys.mark}, args)
}

// answer reads the reply of a script of the shared log.
func (l *sharedLog) answer(what string, result rueidis.RedisResult) ([]reply, error) {
	what += " " + l.keys.stream
	r, err := replies(result)
	switch {
	case err != nil:
		return nil, attempt(what, err)
	case len(r) < 2:
		return nil, fmt.Errorf("%w: %s: short reply", store.ErrStorage, what)
	}
	switch r[0].text() {
	case "moved":
		return nil, fmt.Errorf("%w: to %s", store.ErrMoved, r[1].text())
	case "gone":
		return nil, fmt.Errorf("%w: %s: it is gone", store.ErrLost, what)
	case "lost":
		return nil, fmt.Errorf("%w: %s: it ends at %s", store.ErrLost, what, r[1].text())
	case "compacted":
		return nil, fmt.Errorf("%w: %s", store.ErrCompacted, what)
	case "error":
		return nil, fmt.Errorf("%w: %s: %s", store.ErrStorage, what, r[1].text())
	}
	return r, nil
}

// proof is what scripts want to know of what was seen.
func proof(at store.Seen) []string {
	return []string{decimal(at.Next), string(binary.BigEndian.AppendUint32(nil, at.CRC))}
}

// AppendAt implements store.SharedLog.
func (l *sharedLog) AppendAt(ctx context.Context, at store.Seen, batch []byte) error {
	if n, err := record.Peek(batch); err != nil || n != len(batch) {
		return store.ErrInvalidBatch
	}
	b := append(record.Batch(nil), batch...)
	b.SetBaseOffset(at.Next)
	id := entryID{ms: uint64(b.LastOffset()) + 1}
	args := append(proof(at), id.String(), decimal(b.LastOffset()+1), rueidis.BinaryString(b), decimal(b.MaxTimestamp()))
	_, err := l.run(ctx, "append", appendSharedScript, args...)
	if err == nil {
		record.Batch(batch).SetBaseOffset(at.Next)
	}
	return err
}

// sharedReadEntries bounds what one Read of a shared log asks for.
const sharedReadEntries = 500

// Read implements store.SharedLog. Waiting only tells that there is something:
// what there is and the proof are read in one step.
func (l *sharedLog) Read(ctx context.Context, after store.Seen, wait time.Duration) ([]byte, error) {
	b, err := l.read(ctx, after)
	if err != nil || len(b) > 0 || wait <= 0 {
		return b, err
	}
	id := entryID{ms: uint64(max(after.Next, 0))}.String()
	cmd := l.store.client.B().Xread().Count(1).Block(max(wait.Milliseconds(), 1)).Streams().Key(l.keys.stream).Id(id).Build()
	bounded, cancel := context.WithTimeout(ctx, l.store.timeout+wait)
	defer cancel()
	err = l.store.client.Do(bounded, cmd).Error()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	if err != nil {
		return nil, attempt("read "+l.keys.stream, err)
	}
	return l.read(ctx, after)
}

func (l *sharedLog) read(ctx context.Context, after store.Seen) ([]byte, error) {
	r, err := l.run(ctx, "read", readSharedScript, append(proof(after), strconv.Itoa(sharedReadEntries))...)
	if err != nil {
		return nil, err
	}
	entries, err := r[1].m.ToArray()
	if err != nil {
		return nil, attempt("read "+l.keys.stream, err)
	}
	var out []byte
	for i := range entries {
		s, err := decodeBatch(&entries[i])
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", l.keys.stream, err)
		}
		out = append(out, s.batch...)
	}
	return out, nil
}

// Replicate implements store.SharedLog. As with other logs, a small write goes
// before WAIT, which speaks of what its own connection wrote, and looks whether
// the server has what is to be replicated.
func (l *sharedLog) Replicate(ctx context.Context, upTo store.Seen, copies int) error {
	if copies <= 1 {
		return nil
	}
	if err := l.store.check(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.store.timeout+l.store.replica)
	defer cancel()
	results := l.store.client.DoMulti(ctx, l.script(markSharedScript, proof(upTo)),
		l.store.client.B().Wait().Numreplicas(int64(copies-1)).Timeout(l.store.replica.Milliseconds()).Build())
	if _, err := l.answer("replicate", results[0]); err != nil {
		return err
	}
	got, err := results[1].AsInt64()
	if err != nil {
		return attempt("replicate "+l.keys.stream, err)
	}
	if got < int64(copies-1) {
		return fmt.Errorf("%w: %s: %d of %d replicas within %v", store.ErrNotReplicated, l.keys.stream, got, copies-1, l.store.replica)
	}
	return nil
}

// Time implements store.SharedLog.
func (l *sharedLog) Time(ctx context.Context) (time.Time, error) {
	r, err := l.run(ctx, "time", `return redis.call('TIME')`)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(r[0].int(), r[1].int()*1000), nil
}

// Close implements store.SharedLog.
func (*sharedLog) Close() error { return nil }
