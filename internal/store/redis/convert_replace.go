package redis

import (
	"context"
	"fmt"
	"math"
	"slices"

	"muster/internal/store"
)

// take gives ids to a batch. They grow, and are of the time of its last record, as far as that goes together
// and is not to come.
func (to *copied) take(e *indexEntry, x indexBatch, now int64) entryID {
	id := entryID{ms: uint64(max(min(x.maxTimestamp, now), 0))}
	if !to.top.less(id) {
		id = to.top.after()
	}
	if id.seq > math.MaxUint64-uint64(x.count) {
		id = entryID{ms: id.ms + 1}
	}
	if n := len(e.runs); n > 0 && e.runs[n-1].last().after() == id && e.runs[n-1].first.ms == id.ms {
		e.runs[n-1].count += x.count
	} else {
		e.runs = append(e.runs, idRun{id, x.count})
	}
	to.top = entryID{id.ms, id.seq + uint64(x.count) - 1}
	to.added, to.maxTimestamp = to.added+x.count, max(to.maxTimestamp, x.maxTimestamp)
	return id
}

// lastGap returns the last offset delta of a batch that no record has.
func (p *pending) lastGap() (int32, bool) {
	at := p.batch.LastOffsetDelta()
	for _, d := range slices.Backward(p.deltas) {
		if d != at {
			break
		}
		at--
	}
	return at, at >= 0
}

// standing is where readers are that have read all before an offset: at which id, and how many entries that is.
type standing struct {
	id   entryID
	read int64
}

// standings reads the new index, and finds where readers are in the copy that have read all before some offsets, and
// what the batches from an offset on take.
func (c *copying) standings(ctx context.Context, offsets []int64, start int64) (found map[int64]standing, bytes int64, err error) {
	slices.Sort(offsets)
	found = map[int64]standing{}
	at := standing{}
	for next := int64(0); next < c.indexed; {
		cmd := c.store.client.B().Xrange().Key(c.keys.conversion).Start(decimal(next + 1)).End("+").Count(loadEntries).Build()
		entries, err := decodeEntries(c.store.do(ctx, cmd), c.keys)
		if err != nil {
			return nil, 0, err
		}
		if len(entries) == 0 {
			return nil, 0, fmt.Errorf("%w: convert %s: the new index ends at offset %d, not %d", store.ErrStorage, c.keys.stream, next, c.indexed)
		}
		for i := range entries {
			e := &entries[i]
			for ; len(offsets) > 0 && offsets[0] <= e.next; offsets = offsets[1:] {
				s := at
				if id, ok := e.idBefore(offsets[0]); ok {
					s = standing{id, e.added - e.records() + e.recordsBefore(offsets[0])}
				}
				found[offsets[0]] = s
			}
			for _, b := range e.batches {
				if b.next() > start {
					bytes += b.bytes
				}
			}
			if n := len(e.runs); n > 0 {
				at = standing{e.runs[n-1].last(), e.added}
			}
			next = e.next
		}
	}
	for _, o := range offsets {
		found[o] = at
	}
	return found, bytes, nil
}

// replaceScript puts a copy and its index in the place of the log. From then on the log is one of layout indexed,
// and whoever had it open has not any more. What is below its start goes. Consumer groups of Redis keep their positions and
// consumers, but not what those have pending, which are whole batches.
//
// Keys: stream, meta, new index, copy, index, producers, a name for the old stream. Arguments: owner, start, end, state, the id before the
// first record, and of each position of a group its id, the one in the copy, and how many entries that is.
const replaceScript = evenWhenFull + ownFunction + `
if redis.call('HGET', KEYS[2], 'end') ~= ARGV[3] or redis.call('EXISTS', KEYS[3], KEYS[4]) < 2 then return {'ok', 'gone'} end
local places = {}
for k = 6, #ARGV, 3 do places[ARGV[k]] = {ARGV[k + 1], ARGV[k + 2]} end
local groups = redis.call('XINFO', 'GROUPS', KEYS[1])
for i, g in ipairs(groups) do
  local h = {}
  for k = 1, #g, 2 do h[g[k]] = g[k + 1] end
  if not places[h['last-delivered-id']] then return {'ok', 'again'} end
  groups[i] = h
end
for _, h in ipairs(groups) do
  local at = places[h['last-delivered-id']]
  redis.call('XGROUP', 'CREATE', KEYS[4], h['name'], at[1], 'ENTRIESREAD', at[2])
  for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], h['name'])) do
    for k = 1, #c, 2 do
      if c[k] == 'name' then redis.call('XGROUP', 'CREATECONSUMER', KEYS[4], h['name'], c[k + 1]) end
    end
  end
end
redis.call('PERSIST', KEYS[3])
redis.call('PERSIST', KEYS[4])
redis.call('RENAME', KEYS[1], KEYS[7])
redis.call('RENAME', KEYS[4], KEYS[1])
redis.call('UNLINK', KEYS[7])
redis.call('RENAME', KEYS[3], KEYS[5])
if ARGV[3] ~= '0' then redis.call('XSETID', KEYS[5], ARGV[3] .. '-0') end
redis.call('XTRIM', KEYS[5], 'MINID', string.format('%.0f', ARGV[2] + 1))
redis.call('XTRIM', KEYS[1], 'MINID', ARGV[5])
local i = string.format('%.0f', redis.call('HGET', KEYS[2], 'i') + 1)
redis.call('HSET', KEYS[2], 'layout', 'indexed', 'was', 'log', 's', ARGV[4], 'i', i, 'n', string.match(n, '^-?%d+') .. '.' .. i .. '.0')
redis.call('HDEL', KEYS[2], 'size', 'count', 'maxts', 'cleaned', 'clean', 'passes')
redis.call('HSET', KEYS[6], 'next', ARGV[3])
return {'ok', i}
`

// change makes the log one of layout indexed, at once. Nothing may be under way.
func (c *copying) change(ctx context.Context) error {
	k := c.keys
	start, end := c.Bounds()
	for range maxConflicts { // Groups may be moved meanwhile.
		groups, err := c.groupIDs(ctx)
		if err != nil {
			return err
		}
		offsets := []int64{start}
		for _, offset := range groups {
			offsets = append(offsets, offset)
		}
		found, bytes, err := c.standings(ctx, offsets, start)
		if err != nil {
			return err
		}
		args := []string{decimal(start), decimal(end), fmt.Sprintf("%s %d %d %d", c.have.top, c.have.added, c.have.maxTimestamp, bytes), found[start].id.after().String()}
		for id, offset := range groups {
			args = append(args, id, found[offset].id.String(), decimal(found[offset].read))
		}
		if err := c.step(); err != nil {
			return err
		}
		c.changing = true
		r, err := c.ownKeys(ctx, "convert", replaceScript, []string{k.stream, k.meta, k.conversion, k.copied, k.index, k.producers, k.replaced}, args)
		switch {
		case err != nil:
			return err
		case r[0].text() == "gone":
			return fmt.Errorf("%w: convert %s: its copy is gone", store.ErrStorage, k.stream)
		case r[0].text() != "again":
			return c.step()
		}
		c.changing = false
	}
	return fmt.Errorf("%w: convert %s: its consumer groups are moved all the time", store.ErrStorage, k.stream)
}

// groupIDs returns the ids at which consumer groups of Redis are, and the offsets that they stand for.
func (c *copying) groupIDs(ctx context.Context) (map[string]int64, error) {
	found, err := c.store.do(ctx, c.store.client.B().XinfoGroups().Key(c.keys.stream).Build()).ToArray()
	if err != nil {
		return nil, attempt("look at the groups of "+c.keys.stream, err)
	}
	ids := map[string]int64{}
	for i := range found {
		fields, err := found[i].AsMap()
		if err != nil {
			return nil, attempt("look at the groups of "+c.keys.stream, err)
		}
		at := fields["last-delivered-id"]
		text, _ := at.ToString()
		id, err := parseID(text)
		if err != nil {
			return nil, err
		}
		ids[text] = int64(min(id.ms, maxTimestamp))
	}
	return ids, nil
}
