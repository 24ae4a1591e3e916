package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/redis/rueidis"

	"muster/internal/store"
)

// conversion makes a log of layout stream one of layout indexed, where it lies. docs/internals/converting.md
// says how, and why it can end at any step.
type conversion struct {
	recordLog
	// step is called before each step that changes something; tests end it there.
	step func() error
	last indexEntry // of the new index, as far as it goes
	// changing says that the log may be of the new layout: the answer may be lost.
	changing bool
}

// minConverted is the smallest offset that a log may begin at which is converted. The offsets that it has
// afterwards do not get there, so that it is clear of a committed offset whether it is of before.
const minConverted = store.LeastOld

var errAmbiguous = fmt.Errorf("%w: it begins at an id that is too small for a time, so that its offsets could not be told from those that it would get", store.ErrNotConvertible)

// Convert implements store.Convertible.
func (l recordLog) Convert(ctx context.Context) error {
	return l.convert(ctx, func() error { return nil })
}

// Prepare implements store.Convertible.
func (l recordLog) Prepare(ctx context.Context, span time.Duration) (records int64, done bool, err error) {
	l.maintain.Lock()
	defer l.maintain.Unlock()
	c := &conversion{recordLog: l, step: func() error { return nil }}
	if err := c.begin(ctx); err != nil {
		return 0, false, err
	}
	done, err = c.extend(ctx, span)
	return c.last.added, done, err
}

// sampled is how many entries are read to find out how long a conversion takes.
const sampled = 2000

// Preview implements store.Convertible. It reads some records, as a conversion does with all, and adds none
// to the new index.
func (l recordLog) Preview(ctx context.Context) (out store.Conversion, err error) {
	if start, _ := l.Bounds(); start < minConverted {
		return out, fmt.Errorf("convert %s: %w", l.keys.stream, errAmbiguous)
	}
	if out.Records, err = l.store.do(ctx, l.store.client.B().Xlen().Key(l.keys.stream).Build()).AsInt64(); err != nil {
		return out, attempt("measure", err)
	}
	out.Bytes = l.Size()
	began := l.store.now()
	cmd := l.store.client.B().Xrange().Key(l.keys.stream).Start("-").End("+").Count(min(sampled, entriesIn(1<<20, l.average()))).Build()
	found, err := l.store.do(ctx, cmd).ToArray()
	if err != nil || len(found) == 0 {
		return out, attempt("read "+l.keys.stream, err)
	}
	if _, err = indexed(found); err != nil {
		return out, err
	}
	out.Time = time.Duration(float64(l.store.now().Sub(began)) / float64(len(found)) * float64(out.Records))
	return out, nil
}

func (l recordLog) convert(ctx context.Context, step func() error) error {
	l.maintain.Lock()
	c := &conversion{recordLog: l, step: step}
	err := c.run(ctx)
	l.maintain.Unlock()
	if c.changing {
		l.end()
	}
	return err
}

func (c *conversion) run(ctx context.Context) error {
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

// begin looks whether the log can be converted, and how far that is.
func (c *conversion) begin(ctx context.Context) error {
	if _, err := c.own(ctx, "convert", checkScript); err != nil {
		return err
	}
	if start, _ := c.Bounds(); start < minConverted {
		return fmt.Errorf("convert %s: %w", c.keys.stream, errAmbiguous)
	}
	return c.resume(ctx)
}

// resume finds how far an earlier conversion has come.
func (c *conversion) resume(ctx context.Context) error {
	cmd := c.store.client.B().Xrevrange().Key(c.keys.conversion).End("+").Start("-").Count(1).Build()
	found, err := decodeEntries(c.store.do(ctx, cmd), c.keys)
	if err == nil && len(found) > 0 {
		c.last = found[0]
	}
	return err
}

// forever is longer than any conversion takes.
const forever = time.Duration(math.MaxInt64)

// extend adds to the new index what the log has and the index does not, for about that long, and says whether
// that is all. What is being appended is left out: whoever appends has yet to hear of it.
func (c *conversion) extend(ctx context.Context, span time.Duration) (all bool, err error) {
	for began := c.store.now(); ; {
		c.mu.Lock()
		next := c.tail.next
		c.mu.Unlock()
		after := "-"
		if n := len(c.last.runs); n > 0 {
			after = "(" + c.last.runs[n-1].last().String()
		}
		count := entriesIn(1<<20, c.average())
		cmd := c.store.client.B().Xrange().Key(c.keys.stream).Start(after).End(c.lastBefore(next).String()).Count(count).Build()
		found, err := c.store.do(ctx, cmd).ToArray()
		if err != nil {
			return false, attempt("convert "+c.keys.stream, err)
		}
		if len(found) > 0 {
			if err := c.add(ctx, found); err != nil {
				return false, err
			}
		}
		if int64(len(found)) < count {
			return true, nil
		}
		if c.store.now().Sub(began) >= span {
			return false, nil
		}
	}
}

// convertScript adds an entry to the new index.
//
// Keys: stream, meta, new index. Arguments: owner, id, field.
const convertScript = ownFunction + `
return {'ok', redis.call('XADD', KEYS[3], ARGV[2], 'b', ARGV[3])}
`

// indexed makes an entry of the new index, for entries of the data.
func indexed(found []rueidis.RedisMessage) (e indexEntry, err error) {
	for i := range found {
		id, fields, err := entryParts(&found[i])
		if err != nil {
			return e, err
		}
		e.addRecord(id, fields)
	}
	return e, nil
}

// add adds an entry to the new index, for entries of the data.
func (c *conversion) add(ctx context.Context, found []rueidis.RedisMessage) error {
	e, err := indexed(found)
	if err != nil {
		return err
	}
	e.added = c.last.added + int64(len(found))
	e.setNext(c.last.next + int64(len(found)))
	e.maxTimestamp = e.batches[0].maxTimestamp
	if c.last.next > 0 {
		e.maxTimestamp = max(e.maxTimestamp, c.last.maxTimestamp)
	}
	if err := c.step(); err != nil {
		return err
	}
	k := c.keys
	text := fmt.Sprintf("%d %d %s\n%s", e.maxTimestamp, e.added, e.runs[0].first, e.body())
	if _, err := c.ownKeys(ctx, "convert", convertScript, []string{k.stream, k.meta, k.conversion}, []string{decimal(e.next) + "-0", text}); err != nil {
		return err
	}
	c.last = e
	return nil
}

// addRecord adds a record to an entry of the index that is being made, all of which are one batch. It is of no
// leader epoch: consumers compare epochs with those of positions from before, which no offset of now follows.
func (e *indexEntry) addRecord(id entryID, fields []rueidis.RedisMessage) {
	if n := len(e.runs); n > 0 && e.runs[n-1].last().after() == id && e.runs[n-1].first.ms == id.ms {
		e.runs[n-1].count++
	} else {
		e.runs = append(e.runs, idRun{id, 1})
	}
	words := make(entry, len(fields))
	for k := range fields {
		words[k], _ = fields[k].ToString()
	}
	size, _ := words.size()
	ts := decodeRecord(id, words).Timestamp
	if len(e.batches) == 0 {
		e.batches = []indexBatch{{leaderEpoch: noEpoch, baseTimestamp: ts, maxTimestamp: ts}}
	}
	b := &e.batches[0]
	b.count, b.bytes, b.maxTimestamp = b.count+1, b.bytes+size, max(b.maxTimestamp, ts)
}

// changeScript puts the new index in its place. From then on the log is one of layout indexed, and
// whoever had it open has not any more. What is below its start goes from the index.
//
// Keys: stream, meta, new index, index, producers. Arguments: owner, start, end, state, the last leader epoch of
// before, where the log began before, and the fields and values of producers.
const changeScript = ownFunction + `
if redis.call('EXISTS', KEYS[3]) == 1 then
  redis.call('RENAME', KEYS[3], KEYS[4])
  redis.call('XTRIM', KEYS[4], 'MINID', string.format('%.0f', ARGV[2] + 1))
else
  redis.call('XGROUP', 'CREATE', KEYS[4], 'm', '0', 'MKSTREAM')
  redis.call('XGROUP', 'DESTROY', KEYS[4], 'm')
end
local i = string.format('%.0f', redis.call('HGET', KEYS[2], 'i') + 1)
redis.call('HSET', KEYS[2], 'layout', 'indexed', 'was', 'stream', 'start', ARGV[2], 'end', ARGV[3], 's', ARGV[4], 'epochs', '[]',
  'converted', ARGV[6], 'until', ARGV[5], 'i', i, 'n', string.match(n, '^-?%d+') .. '.' .. i .. '.0')
redis.call('HDEL', KEYS[2], 'size', 'count', 'ahead', 'maxts', 'cleaned', 'clean', 'passes')
for k = 7, #ARGV, 1000 do redis.call('HSET', KEYS[5], unpack(ARGV, k, math.min(k + 999, #ARGV))) end
return {'ok', i}
`

// change makes the log one of layout indexed, at once. Nothing may be under way.
func (c *conversion) change(ctx context.Context) error {
	c.mu.Lock()
	start, producers := c.start, make([]producer, 0, len(c.producers))
	for _, p := range c.producers {
		p.Batches = slices.Clone(p.Batches)
		producers = append(producers, p)
	}
	c.mu.Unlock()
	places := placed{c.id(start - 1): 0}
	for _, p := range producers {
		for _, b := range p.Batches {
			places[c.id(b.BaseOffset-1)], places[c.id(b.LastOffset)] = 0, 0
		}
	}
	summary, err := c.place(ctx, places)
	if err != nil {
		return err
	}
	newStart := places[c.id(start-1)]
	top := entryID{}
	if n := len(c.last.runs); n > 0 {
		top = c.last.runs[n-1].last()
	}
	args := []string{
		decimal(newStart), decimal(c.last.next), fmt.Sprintf("%s %d %d %d", top, c.last.added, summary.maxTimestamp, summary.bytesFrom(newStart)),
		decimal(int64(c.epoch)), decimal(start), snapshotNext, decimal(c.last.next),
	}
	for _, p := range producers {
		for i := range p.Batches {
			b := &p.Batches[i]
			base, next := places[c.id(b.BaseOffset-1)], places[c.id(b.LastOffset)]
			b.BaseOffset, b.LastOffset = base, max(base, next-1) // Of records that were deleted nothing is left but where they were.
		}
		args = append(args, decimal(p.ID), formatProducer(p))
	}
	if err := c.step(); err != nil {
		return err
	}
	c.changing = true
	k := c.keys
	if _, err := c.ownKeys(ctx, "convert", changeScript, []string{k.stream, k.meta, k.conversion, k.index, k.producers}, args); err != nil {
		return err
	}
	return c.step()
}

// placed is the offsets that follow ids, in an index.
type placed map[entryID]int64

// summary is what a new index says of all records.
type summary struct {
	maxTimestamp int64
	batches      []sized
}

// sized is the batches of an entry.
type sized struct{ next, bytes int64 }

// bytesFrom is what the batches from an offset on take.
func (s *summary) bytesFrom(start int64) (bytes int64) {
	for _, b := range s.batches {
		if b.next > start {
			bytes += b.bytes
		}
	}
	return bytes
}

// place reads the new index, and finds the offsets that follow ids.
func (c *conversion) place(ctx context.Context, places placed) (*summary, error) {
	ids := make([]entryID, 0, len(places))
	for id := range places {
		ids = append(ids, id)
	}
	sort.Slice(ids, func(i, j int) bool {
		return cmp.Or(cmp.Compare(ids[i].ms, ids[j].ms), cmp.Compare(ids[i].seq, ids[j].seq)) < 0
	})
	s := &summary{maxTimestamp: -1}
	for at := int64(0); at < c.last.next; {
		cmd := c.store.client.B().Xrange().Key(c.keys.conversion).Start(decimal(at + 1)).End("+").Count(loadEntries).Build()
		entries, err := decodeEntries(c.store.do(ctx, cmd), c.keys)
		if err != nil {
			return nil, err
		}
		if len(entries) == 0 {
			return nil, fmt.Errorf("%w: convert %s: the new index ends at offset %d, not %d", store.ErrStorage, c.keys.stream, at, c.last.next)
		}
		for i := range entries {
			e := &entries[i]
			last := e.runs[len(e.runs)-1].last()
			for len(ids) > 0 && !last.less(ids[0]) {
				places[ids[0]] = e.offsetAfter(ids[0])
				ids = ids[1:]
			}
			for _, b := range e.batches {
				s.batches = append(s.batches, sized{b.next(), b.bytes})
			}
			s.maxTimestamp, at = e.maxTimestamp, e.next
		}
	}
	for _, id := range ids {
		places[id] = c.last.next
	}
	return s, nil
}

// Layout implements store.Laid.
func (l *log) Layout() store.Layout { return l.layout.name() }

// Until implements store.Converted.
func (l indexLog) Until() (epoch int32, converted bool) { return l.until, l.until != noEpoch }

// noEpoch is that of records of which no one knows the leader epoch any more.
const noEpoch = -1

// Places implements store.Converter.
func (s *Store) Places(ctx context.Context, places []store.Place) ([]int64, error) {
	out := make([]int64, len(places))
	var asked []int
	var cmds rueidis.Commands
	for i, p := range places {
		if out[i] = p.Offset; p.Offset >= minConverted {
			asked = append(asked, i)
			cmds = append(cmds, s.client.B().Hmget().Key(logKeys(s.prefix, p.TopicPartition).meta).Field("converted", "bits").Build())
		}
	}
	if len(cmds) == 0 {
		return out, nil
	}
	for k, r := range s.doMulti(ctx, cmds...) {
		p := places[asked[k]]
		from, ids, err := conversionOf(r)
		if err != nil {
			return nil, attempt("look at "+logKeys(s.prefix, p.TopicPartition).meta, err)
		}
		if from == 0 || p.Offset < from {
			continue
		}
		if out[asked[k]], _, err = OffsetAfter(ctx, s.client, s.prefix, p.TopicPartition, ids.id(p.Offset-1).String()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// conversionOf reads where a log began before it was converted, 0 if it was not, and how its ids were numbered.
func conversionOf(r rueidis.RedisResult) (from int64, ids numbering, err error) {
	fields, err := r.AsStrSlice()
	if err != nil || len(fields) != 2 || fields[0] == "" {
		return 0, ids, err
	}
	meta := map[string]string{"converted": fields[0], "bits": fields[1]}
	from, err = number(meta, "converted")
	bits, err2 := number(meta, "bits")
	if err := errors.Join(err, err2); err != nil || bits < 1 || bits > maxBits {
		return 0, ids, fmt.Errorf("%w: %q bits: %w", store.ErrCorrupt, fields[1], err)
	}
	return from, numbering{uint(bits)}, nil
}

// Layouts implements store.Converter.
func (s *Store) Layouts(ctx context.Context, tps []store.TopicPartition) ([]store.LogLayout, error) {
	cmds := make(rueidis.Commands, 0, len(tps))
	for _, tp := range tps {
		cmds = append(cmds, s.client.B().Hmget().Key(logKeys(s.prefix, tp).meta).Field("layout", "converted").Build())
	}
	out := make([]store.LogLayout, len(tps))
	if len(cmds) == 0 {
		return out, nil
	}
	for i, r := range s.doMulti(ctx, cmds...) {
		fields, err := r.AsStrSlice()
		if err != nil || len(fields) != 2 {
			return nil, attempt("look at "+logKeys(s.prefix, tps[i]).meta, err)
		}
		out[i] = store.LogLayout{Layout: store.Layout(fields[0]), Renumbered: fields[1] != ""}
	}
	return out, nil
}
