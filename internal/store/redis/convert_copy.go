package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// copying makes a log of layout log one of layout indexed: it copies the records into a stream of
// their own, with the index beside it, and then puts both in the place of the log. Offsets stay.
// docs/internals/converting.md says how, and why it can end at any step.
type copying struct {
	batchLog
	// step is called before each step that changes something, and after the last; tests end it there.
	step    func() error
	next    int64 // up to which offset records are copied
	indexed int64 // where the new index ends, 0 if it has no entry
	have    copied
	// changing says that the log may be of the new layout: the answer may be lost.
	changing bool
}

// copied is what the copy has so far.
type copied struct {
	top          entryID // the last id that it covers
	added        int64   // how many ids it covers
	maxTimestamp int64
}

const (
	// copyExpiry is after how many seconds a copy vanishes that no one goes on with.
	copyExpiry = "3600"
	// copyPause is for how long compaction waits for the next part of a copy.
	copyPause = time.Minute
	// copySlower is how much longer it takes to copy records than to read them.
	copySlower = 4
)

// Preview implements store.Convertible. It reads some batches, and copies none. The log does not know how
// many records it has, but how many offsets.
func (l batchLog) Preview(ctx context.Context) (out store.Conversion, err error) {
	start, end := l.Bounds()
	out.Records, out.Bytes, out.Copied = end-start, l.Size(), true
	began := l.store.now()
	found, err := l.batches(ctx, start, end)
	if err != nil || len(found) == 0 {
		return out, err
	}
	read := int64(0)
	for i := range found {
		p, _, err := l.unpacked(&found[i], true)
		if err != nil {
			return out, err
		}
		read += int64(len(p.batch))
		l.drop(p)
	}
	out.Time = time.Duration(float64(l.store.now().Sub(began)) / float64(read) * float64(max(out.Bytes, read)) * copySlower)
	return out, nil
}

// Prepare implements store.Convertible.
func (l batchLog) Prepare(ctx context.Context, span time.Duration) (records int64, done bool, err error) {
	l.maintain.Lock()
	defer l.maintain.Unlock()
	c := &copying{batchLog: l, step: func() error { return nil }}
	if err = c.begin(ctx); err == nil {
		done, err = c.extend(ctx, span)
	}
	return c.have.added, done, c.roomless(ctx, err)
}

// roomless removes the copy if Redis is full: no one else could write until it expires.
func (c *copying) roomless(ctx context.Context, err error) error {
	if err == nil || !strings.Contains(err.Error(), "OOM ") {
		return err
	}
	return errors.Join(fmt.Errorf("%w: a copy does not fit: %w", store.ErrNotConvertible, err), c.dropCopy(ctx))
}

// Convert implements store.Convertible.
func (l batchLog) Convert(ctx context.Context) error {
	return l.convert(ctx, func() error { return nil })
}

func (l batchLog) convert(ctx context.Context, step func() error) error {
	l.maintain.Lock()
	c := &copying{batchLog: l, step: step}
	err := c.roomless(ctx, c.run(ctx))
	l.maintain.Unlock()
	if c.changing {
		l.end()
	}
	return err
}

func (c *copying) run(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	if _, err := c.extend(ctx, forever); err != nil {
		return err
	}
	c.claim()
	defer c.release()
	if _, err := c.extend(ctx, forever); err != nil {
		return err
	}
	return c.change(ctx)
}

// beginCopyScript makes the streams of a copy, unless both are there, and says where they end.
//
// Keys: stream, meta, new index, copy. Arguments: owner, expiry in seconds.
const beginCopyScript = ownFunction + `
if redis.call('EXISTS', KEYS[3], KEYS[4]) < 2 then
  redis.call('UNLINK', KEYS[3], KEYS[4])
  for k = 3, 4 do
    redis.call('XGROUP', 'CREATE', KEYS[k], 'm', '0', 'MKSTREAM')
    redis.call('XGROUP', 'DESTROY', KEYS[k], 'm')
  end
end
for k = 3, 4 do redis.call('EXPIRE', KEYS[k], ARGV[2]) end
local r = redis.call('XINFO', 'STREAM', KEYS[4])
for k = 1, #r, 2 do
  if r[k] == 'last-generated-id' then return {'ok', r[k + 1]} end
end
`

// dropCopyScript removes a copy.
//
// Keys: stream, meta, new index, copy. Arguments: owner.
const dropCopyScript = evenWhenFull + ownFunction + `
return {'ok', redis.call('UNLINK', KEYS[3], KEYS[4])}
`

func (l batchLog) dropCopy(ctx context.Context) error {
	k := l.keys
	_, err := l.ownKeys(ctx, "convert", dropCopyScript, []string{k.stream, k.meta, k.conversion, k.copied}, nil)
	return err
}

// begin finds how far an earlier conversion has come. If all that it copied is gone by now, or is
// of a log that has lost its end, it begins anew.
func (c *copying) begin(ctx context.Context) error {
	k := c.keys
	start, end := c.Bounds()
	for range 2 {
		r, err := c.ownKeys(ctx, "convert", beginCopyScript, []string{k.stream, k.meta, k.conversion, k.copied}, []string{copyExpiry})
		if err != nil {
			return err
		}
		top, err := parseID(r[0].text())
		if err != nil {
			return err
		}
		cmd := c.store.client.B().Xrevrange().Key(k.conversion).End("+").Start("-").Count(1).Build()
		found, err := decodeEntries(c.store.do(ctx, cmd), k)
		if err != nil {
			return err
		}
		c.next, c.have.maxTimestamp, c.log.copying = start, record.NoTimestamp, c.store.now()
		if len(found) == 0 {
			return nil
		}
		if e := found[0]; e.next > start && e.next <= end {
			c.next, c.indexed, c.have = e.next, e.next, copied{top, e.added, e.maxTimestamp}
			return nil
		}
		if err := c.dropCopy(ctx); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: convert %s: its copy changes meanwhile", store.ErrStorage, k.stream)
}

// batches reads some of the batches from an offset on, below another.
func (l batchLog) batches(ctx context.Context, offset, next int64) ([]rueidis.RedisMessage, error) {
	from, to := l.span(offset, next)
	if to.less(from) {
		return nil, nil
	}
	found, err := l.entriesBetween(ctx, from, to, l.entries(1<<20))
	return found, err
}

// unpacked makes entries of the records of a batch, which are to be dropped. It says no if there is not enough
// memory for that now, and may not wait.
func (l batchLog) unpacked(m *rueidis.RedisMessage, wait bool) (p *pending, ok bool, err error) {
	s, err := decodeBatch(m)
	if err != nil {
		return nil, false, fmt.Errorf("convert %s: %w", l.keys.stream, err)
	}
	p = &pending{batch: s.batch, deltas: []int32{}}
	if p.batch.Control() {
		p.bytes = int64(len(p.batch))
		return p, true, nil
	}
	if !l.split(p, wait) {
		return nil, false, nil
	}
	last := int32(-1)
	for _, d := range p.deltas {
		if p.err == nil && (d <= last || d > p.batch.LastOffsetDelta()) {
			p.err = fmt.Errorf("%w: its offsets do not grow", store.ErrInvalidBatch)
		}
		last = d
	}
	if p.err != nil {
		l.drop(p)
		return nil, false, fmt.Errorf("%w: the batch at offset %d: %w", store.ErrNotConvertible, p.batch.BaseOffset(), p.err)
	}
	return p, true, nil
}

// extend copies what the log has and the copy does not, for about that long, and says whether that is all.
// What is being appended is left out: whoever appends has yet to hear of it.
func (c *copying) extend(ctx context.Context, span time.Duration) (all bool, err error) {
	for began := c.store.now(); ; {
		c.mu.Lock()
		next := c.tail.next
		c.mu.Unlock()
		found, err := c.batches(ctx, c.next, next)
		if err != nil {
			return false, err
		}
		if len(found) == 0 {
			return true, nil
		}
		if err := c.copy(ctx, found); err != nil {
			return false, err
		}
		if c.log.copying = c.store.now(); c.log.copying.Sub(began) >= span {
			return false, nil
		}
	}
}

// copy copies batches, some at a time.
func (c *copying) copy(ctx context.Context, found []rueidis.RedisMessage) error {
	var some []*pending
	var entries, bytes int64
	send := func() error {
		if len(some) == 0 {
			return nil
		}
		err := c.send(ctx, some)
		for _, p := range some {
			c.drop(p)
		}
		some, entries, bytes = nil, 0, 0
		return err
	}
	for i := 0; i < len(found); {
		p, ok, err := c.unpacked(&found[i], len(some) == 0)
		full := ok && len(some) > 0 && (entries+int64(len(p.ends)) > maxGroupEntries || bytes+p.bytes > maxGroupBytes)
		if full {
			c.drop(p)
		}
		if err != nil || full || !ok {
			if err := errors.Join(send(), err); err != nil {
				return err
			}
			continue
		}
		some, entries, bytes = append(some, p), entries+int64(len(p.ends)), bytes+p.bytes
		i++
	}
	return send()
}

// copyScript adds entries to the new index, whose data follows it in a transaction, and moves the copy
// to where that adds it. The owner alone adds to a copy, and none that it does not know the end of.
//
// Keys: stream, meta, new index, copy, where the copy is held. Arguments: owner, the last id of the new
// index, the size of the largest record, expiry in seconds, and ids and fields of the new index.
const copyToScript = ownFunction + `
if redis.call('EXISTS', KEYS[3], KEYS[5]) < 2 then return {'gone', ''} end
local r = redis.call('XINFO', 'STREAM', KEYS[3])
for k = 1, #r, 2 do
  if r[k] == 'last-generated-id' and r[k + 1] ~= ARGV[2] then return {'gone', r[k + 1]} end
end
for k = 5, #ARGV, 2 do redis.call('XADD', KEYS[3], ARGV[k], 'b', ARGV[k + 1]) end
if tonumber(ARGV[3]) > (tonumber(redis.call('HGET', KEYS[2], 'largest')) or 0) then redis.call('HSET', KEYS[2], 'largest', ARGV[3]) end
redis.call('EXPIRE', KEYS[3], ARGV[4])
redis.call('EXPIRE', KEYS[5], ARGV[4])
redis.call('RENAME', KEYS[5], KEYS[4])
return {'ok', ''}
`

// send copies batches, all or none. Each offset of a batch has an id, and those of records that compaction has
// removed have no entry, as after XDEL.
func (c *copying) send(ctx context.Context, batches []*pending) error {
	k, b := c.keys, c.store.client.B()
	to, index, deleted := c.have, []indexEntry(nil), entryID{}
	var adds []rueidis.Completed
	largest := int64(0)
	for _, p := range batches {
		base := p.batch.BaseOffset()
		if n := len(index); n == 0 || index[n-1].next != base {
			index = append(index, indexEntry{base: base, next: base})
		}
		e := &index[len(index)-1]
		x := p.indexed(p.batch.LeaderEpoch())
		e.batches, e.next = append(e.batches, x), e.next+x.count
		if !x.isControl() {
			first := to.take(e, x, c.store.now().UnixMilli())
			start := 0
			for i, end := range p.ends {
				id := entryID{first.ms, first.seq + uint64(p.deltas[i])}
				adds = append(adds, b.Arbitrary("XADD").Keys(k.copied).Args("NOMKSTREAM", id.String()).Args(p.words[start:end]...).Build())
				start = end
			}
			if n, ok := p.lastGap(); ok {
				deleted = entryID{first.ms, first.seq + uint64(n)}
			}
		}
		e.maxTimestamp, e.added = to.maxTimestamp, to.added
		largest = max(largest, p.largest)
	}
	args := []string{c.owner, decimal(c.indexed) + "-0", decimal(largest), copyExpiry}
	for i := range index {
		e := &index[i]
		first := "-"
		if len(e.runs) > 0 {
			first = e.runs[0].first.String()
		}
		args = append(args, decimal(e.next)+"-0", fmt.Sprintf("%d %d %s\n%s", e.maxTimestamp, e.added, first, e.body()))
	}
	if err := c.step(); err != nil {
		return err
	}
	script := c.store.eval(copyToScript, []string{k.stream, k.meta, k.conversion, k.copied, k.copiedHeld}, args)
	if err := c.transact(ctx, script, adds, to, deleted); err != nil {
		return err
	}
	c.mu.Lock()
	c.tail.largest = max(c.tail.largest, largest)
	c.mu.Unlock()
	c.next, c.indexed, c.have = index[len(index)-1].next, index[len(index)-1].next, to
	return nil
}

// transact executes a script, and what it allows to be added. Ids that no entry has are made known to Redis
// as deleted.
func (c *copying) transact(ctx context.Context, script rueidis.Completed, adds []rueidis.Completed, to copied, deleted entryID) error {
	k, b := c.keys, c.store.client.B()
	cmds := append([]rueidis.Completed{b.Multi().Build().ToPipe(), b.Rename().Key(k.copied).Newkey(k.copiedHeld).Build(), script}, adds...)
	if to.added > 0 {
		set := []string{to.top.String(), "ENTRIESADDED", decimal(to.added)}
		if deleted != (entryID{}) {
			set = append(set, "MAXDELETEDID", deleted.String())
		}
		cmds = append(cmds, b.Arbitrary("XSETID").Keys(k.copied).Args(set...).Build())
	}
	cmds = append(cmds, b.Renamenx().Key(k.copiedHeld).Newkey(k.copied).Build(), b.Exec().Build())
	r, err := executed(c.store.doMulti(ctx, cmds...))
	if err != nil {
		return attempt("convert "+k.stream, err)
	}
	if len(r) != len(cmds)-2 {
		return fmt.Errorf("%w: convert %s: %d replies", store.ErrStorage, k.stream, len(r))
	}
	if err := r[1].Error(); err != nil {
		return attempt("convert "+k.stream, err)
	}
	switch told := (reply{r[1]}).list(); {
	case len(told) == 2 && told[0].text() == "refused":
		return c.refusal(told[1].text())
	case len(told) != 2 || told[0].text() != "ok":
		return fmt.Errorf("%w: convert %s: its copy was changed or is gone; it begins anew", store.ErrStorage, k.stream)
	}
	return wantAdded("convert "+k.stream, r[2:len(r)-1])
}
