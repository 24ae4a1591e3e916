package redis

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/rueidis"

	"muster/internal/store"
)

// Standing is where a reader of a stream stands: after an entry, which may be gone, with so
// many entries read.
type Standing struct {
	ID   string
	Read int64
	OK   bool // false if the log has no index
}

// indexLook is how many entries of an index are looked at for one with data.
const indexLook = 16

// StandingsBefore says, of logs of the indexed layout, where readers stand that have read all
// before an offset.
func StandingsBefore(ctx context.Context, client rueidis.Client, prefix string, places []Place) ([]Standing, error) {
	cmds := make(rueidis.Commands, 0, 3*len(places))
	for _, p := range places {
		k := logKeys(prefix, p.TopicPartition)
		cmds = append(cmds,
			client.B().Hget().Key(k.meta).Field("s").Build(),
			client.B().Xrange().Key(k.index).Start(decimal(max(p.Offset, 0)+1)).End("+").Count(1).Build(),
			indexBack(client, k, p.Offset))
	}
	out := make([]Standing, len(places))
	replies := client.DoMulti(ctx, cmds...)
	for i, p := range places {
		k := logKeys(prefix, p.TopicPartition)
		text, err := replies[3*i].ToString()
		if rueidis.IsRedisNil(err) {
			continue
		}
		if err != nil {
			return nil, attempt("look at "+k.meta, err)
		}
		top, state, err := parseIndexState(text)
		if err != nil {
			return nil, err
		}
		out[i] = Standing{top.String(), state.added, true}
		after, err := decodeEntries(replies[3*i+1], k)
		if err != nil {
			return nil, err
		}
		if len(after) == 0 {
			continue
		}
		e := &after[0] // It holds the offset, or what follows it.
		out[i] = Standing{entryID{}.String(), e.added - e.records() + e.recordsBefore(p.Offset), true}
		if id, ok := e.idBefore(p.Offset); ok {
			out[i].ID = id.String()
			continue
		}
		for r := replies[3*i+2]; ; {
			before, err := decodeEntries(r, k)
			if err != nil {
				return nil, err
			}
			if last := slices.IndexFunc(before, func(e indexEntry) bool { return len(e.runs) > 0 }); last >= 0 {
				runs := before[last].runs
				out[i].ID = runs[len(runs)-1].last().String()
				break
			}
			if len(before) < indexLook {
				break
			}
			r = client.Do(ctx, indexBack(client, k, before[len(before)-1].next-1))
		}
	}
	return out, nil
}

// indexBack makes a command that reads some entries of an index, the last first, which end at an
// offset or before it.
func indexBack(client rueidis.Client, k keys, offset int64) rueidis.Completed {
	return client.B().Xrevrange().Key(k.index).End(decimal(max(offset, 0))).Start("-").Count(indexLook).Build()
}

// offsetScript finds what a log has up to an id.
//
// Keys: index, meta, stream. Arguments: the id. It returns the start and the end of the log, the
// last entry of the index that begins with this id or one before it, as its id and its field,
// and how many entries up to the id have no offset yet. It returns nothing if the log has no
// index.
var offsetScript = rueidis.NewLuaScript(stateFunction + `
local m = redis.call('HMGET', KEYS[2], 'start', 'end', 's')
local s = state(m[3])
if not s then return false end

-- The first entry with data from an offset on: its id as a number, its first id, its field.
local function with_data(from)
  while true do
    local found = redis.call('XRANGE', KEYS[1], text(from), '+', 'COUNT', 16)
    for _, e in ipairs(found) do
      local first = string.match(e[2][2] or '', '^%S+ %S+ (%d+%-%d+)\n')
      from = tonumber(string.match(e[1], '^%d+'))
      if first then return from, first, e[2][2] end
    end
    if #found < 16 then return nil end
    from = from + 1
  end
end
local lo, hi, id, field = 0, tonumber(m[2]) + 1, '', ''
while lo < hi do
  local mid = math.floor((lo + hi) / 2)
  local at, first, body = with_data(mid)
  if at and upto(first, ARGV[1]) then
    lo, id, field = at + 1, text(at), body
  else
    hi = mid
  end
end
local more = 0
if not upto(ARGV[1], s.top) then more = #redis.call('XRANGE', KEYS[3], '(' .. s.top, ARGV[1], 'COUNT', 10000) end
return {m[1], m[2], id, field, more}
`)

// OffsetAfter returns, of a log of the indexed layout, the offset that follows what a reader at an id
// has read.
func OffsetAfter(ctx context.Context, client rueidis.Client, prefix string, tp store.TopicPartition, id string) (offset int64, ok bool, err error) {
	at, err := parseID(id)
	if err != nil {
		return 0, false, err
	}
	k := logKeys(prefix, tp)
	r, err := replies(offsetScript.Exec(ctx, client, []string{k.index, k.meta, k.stream}, []string{at.String()}))
	if rueidis.IsRedisNil(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, attempt("look at "+k.index, err)
	}
	if len(r) != 5 {
		return 0, false, fmt.Errorf("%w: look at %s: %d values", store.ErrStorage, k.index, len(r))
	}
	if more := r[4].int(); more > 0 {
		return r[1].int() + more, true, nil
	}
	offset = r[0].int()
	if r[2].text() != "" {
		e, err := parseIndex(entryID{ms: uint64(r[2].int())}, r[3].text())
		if err != nil {
			return 0, false, err
		}
		offset = max(offset, e.offsetAfter(at))
	}
	return offset, true, nil
}

// offsetAfter is the offset that follows its last record up to an id.
func (e *indexEntry) offsetAfter(id entryID) int64 {
	var n int64
	for _, r := range e.runs {
		switch {
		case !id.less(r.last()):
			n += r.count
		case !id.less(r.first):
			n += int64(id.seq-r.first.seq) + 1
		}
	}
	if n == 0 {
		return e.base
	}
	if n == e.records() {
		return e.next
	}
	at, _ := (&walker{}).place(e, n-1)
	return at.offset + 1
}
