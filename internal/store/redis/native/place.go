package native

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"muster/internal/store"
	"muster/internal/store/redis"
	"muster/internal/store/redis/conn"
)

// Redis computes a group's lag as the number of entries ever added to the
// stream, minus entries-read of the group. A command that moves a group must
// say what entries-read is at its new place, and Redis has no command that counts
// entries: they have to be read, inside Redis, which holds up all others
// meanwhile. placeScript therefore counts only a limited number of them, from
// the nearest place where the number is known:
//
//   - before the first entry and after the last one it is known;
//   - where the group stood before it was computed then, and stays right unless
//     entries that the group had not reached were deleted since.
//
// If the way is too long, it is estimated: ids grow with time (layout stream)
// or with offsets (layout log), and between two known places the entries are
// taken to be spread evenly. A group that reaches the end of the stream is
// exact again. In layout indexed nothing is counted: the index says it.

// maxCounted is how many entries one move may count, at 2 to 5 µs each, and
// maxCountedBytes how many bytes they may have.
const (
	maxCounted      = 1000
	maxCountedBytes = 1 << 20
)

// What placeScript does with a group that exists.
const (
	placeNew = "new" // leaves it where it is
	placeAny = "any" // moves it
)

// placement is where a group is to stand.
type placement struct {
	stream redis.Stream
	group  string
	offset int64
}

// placeScript takes the stream, the set of our groups and the meta hash, and:
// placeNew or placeAny, how many entries and bytes it may count for each group,
// how many ids a millisecond has room for, layout and bits; then groups, ids, and
// what entries-read is, if that is known, in turn. It returns nothing if there is no stream, the layout and bits that the
// stream has if they are others, or else an empty list.
//
// To look at one group is to look at all groups of the stream. So it does that
// only if it must, which is when a group is far from both ends of the stream,
// and then once for all groups that it moves.
const placeScriptText = `
local key, mode = KEYS[1], ARGV[1]
local budget, budget_bytes, width = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local function map(list)
  local m = {}
  for i = 1, #list, 2 do m[list[i]] = list[i + 1] end
  return m
end

-- A place is an id, as the numbers it is made of and as one number.
local function place(text, read)
  local ms, seq = string.match(text, '^(%d+)-(%d+)$')
  ms, seq = tonumber(ms), tonumber(seq)
  return {id = text, ms = ms, seq = seq, x = ms + math.min(seq, width - 1) / width, read = read}
end

local function upto(a, b)
  return a.ms < b.ms or a.ms == b.ms and a.seq <= b.seq
end

-- Counts the entries after one id and up to another, about so many. If they are
-- too many it returns nothing, and whether it tried.
local function count(after, last, about)
  if about > 2 * budget then return nil, false end
  local n, chunk, bytes, from = 0, 4, 0, '(' .. after
  while true do
    local entries = redis.call('XRANGE', key, from, last, 'COUNT', chunk)
    n = n + #entries
    if #entries < chunk then return n end
    local size = 1
    for _, text in ipairs(entries[#entries][2]) do size = size + #text end
    bytes = bytes + size * #entries
    if n >= budget or bytes >= budget_bytes then return nil, true end
    from = '(' .. entries[#entries][1]
    chunk = math.max(1, math.min(128, math.floor(65536 / size)))
  end
end

if redis.call('EXISTS', key) == 0 then return false end
local meta = redis.call('HMGET', KEYS[3], 'layout', 'bits')
if meta[1] and (meta[1] ~= ARGV[5] or meta[1] == 'stream' and meta[2] ~= ARGV[6]) then return meta end
local stream = map(redis.call('XINFO', 'STREAM', key))
local added, length = stream['entries-added'], stream['length']

-- Where a group stands, or nothing if it is not known how many entries it read.
local groups
local function stands(group)
  if not groups then
    groups = {}
    for _, g in ipairs(redis.call('XINFO', 'GROUPS', key)) do
      local m = map(g)
      if m['entries-read'] then groups[m['name']] = place(m['last-delivered-id'], m['entries-read']) end
    end
  end
  return groups[group]
end

local function guess(low, high, at)
  if high.x <= low.x then return low.read end
  return low.read + (high.read - low.read) * (at.x - low.x) / (high.x - low.x)
end

local function entries_read(group, id)
  local at, high = place(id), place(stream['last-generated-id'], added)
  if length == 0 or upto(high, at) then return added end
  local low = place(stream['first-entry'][1], added - length + 1)
  if not upto(low, at) then return added - length end
  -- From the end it is right whatever was deleted.
  local n, tried = count(id, '+', added - guess(low, high, at))
  if n then return added - n end
  local there = mode == 'any' and stands(group)
  if there then
    if upto(low, there) and upto(there, at) then low = there
    elseif upto(at, there) and upto(there, high) then high = there end
  end
  local about = guess(low, high, at)
  if not tried then
    n = count(id, '+', added - about)
    if n then return added - n end
  end
  if about - low.read <= high.read - about then
    n = count(low.id, id, about - low.read)
    return n and low.read + n or about
  end
  n = count(id, high.id, high.read - about)
  return n and high.read - n or about
end

for i = 7, #ARGV, 3 do
  local group, id, known = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if mode == 'new' then
    local made = redis.pcall('XGROUP', 'CREATE', key, group, id)
    if not made.err then
      redis.call('SADD', KEYS[2], group)
    elseif string.sub(made.err, 1, 9) ~= 'BUSYGROUP' then
      return made
    end
    if made.err then id = nil end
  end
  if id then
    local read = known
    if read == '' then read = string.format('%.0f', math.floor(entries_read(group, id))) end
    local moved = redis.pcall('XGROUP', 'SETID', key, group, id, 'ENTRIESREAD', read)
    if moved.err and string.sub(moved.err, 1, 7) == 'NOGROUP' then
      redis.call('XGROUP', 'CREATE', key, group, id, 'ENTRIESREAD', read)
      redis.call('SADD', KEYS[2], group)
    elseif moved.err then
      return moved
    end
  end
end
return {}`

var placeScript = newScript(placeScriptText)

// place puts groups where they are to stand, and returns an error for each.
func (n *Groups) place(ctx context.Context, list []placement, mode string, counted int) []error {
	errs, others, at := n.placeOnce(ctx, list, mode, counted)
	if len(others) > 0 {
		again, _, _ := n.placeOnce(ctx, others, mode, counted)
		for i, err := range again {
			errs[at[i]] = err
		}
	}
	return errs
}

// callCounted is how many entries one call of placeScript may count, which holds
// up all others for some milliseconds.
const callCounted = 2 * maxCounted

// byStream groups the placements, by where they are in the list, that one call
// of placeScript does: of one stream, and not too many.
func byStream(list []placement, counted int) [][]int {
	most := callCounted / max(counted, 1)
	var parts [][]int
	open := make(map[redis.Stream]int, len(list)) // the part of each stream that has room
	for i, p := range list {
		at, ok := open[p.stream]
		if !ok || len(parts[at]) >= most {
			at = len(parts)
			open[p.stream], parts = at, append(parts, nil)
		}
		parts[at] = append(parts[at], i)
	}
	return parts
}

// placeOnce also returns the placements, and where they are in the list, whose
// streams are not what they were taken for.
func (n *Groups) placeOnce(ctx context.Context, list []placement, mode string, counted int) (errs []error, others []placement, at []int) {
	errs = make([]error, len(list))
	stand, err := n.standings(ctx, list)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs, nil, nil
	}
	parts := byStream(list, counted)
	calls := make([]scriptCall, len(parts))
	for i, part := range parts {
		s := list[part[0]].stream
		k := redis.KeysOf(n.prefix, s.TopicPartition)
		layout, bits := s.Kept()
		args := []string{mode, strconv.Itoa(counted), strconv.Itoa(maxCountedBytes), strconv.Itoa(1 << bits), string(layout), strconv.Itoa(bits)}
		for _, j := range part {
			args = append(args, list[j].group, stand[j].id, stand[j].read)
		}
		calls[i] = scriptCall{keys: []string{k.Stream, k.Groups, k.Meta}, args: args}
	}
	for i, reply := range placeScript.each(ctx, n.client, calls) {
		meta, err := reply.AsStrSlice()
		for _, j := range parts[i] {
			p := list[j]
			if err == nil && len(meta) == 2 {
				p.stream = p.stream.As(meta[0], meta[1])
				others, at = append(others, p), append(at, j)
			} else if err != nil && !rueidis.IsRedisNil(err) {
				errs[j] = conn.Attempt(fmt.Sprintf("moving redis group %s of %s-%d to offset %d", p.group, p.stream.Topic, p.stream.Partition, p.offset), err)
			}
		}
	}
	return errs, others, at
}

// standing is where a group is to stand, as Redis says it.
type standing struct{ id, read string }

// standings looks up where groups are to stand.
func (n *Groups) standings(ctx context.Context, list []placement) ([]standing, error) {
	out := make([]standing, len(list))
	var ask []redis.Place
	var at []int
	for i, p := range list {
		if p.stream.Layout == store.LayoutIndexed {
			ask, at = append(ask, redis.Place{TopicPartition: p.stream.TopicPartition, Offset: p.offset}), append(at, i)
			continue
		}
		out[i].id = p.stream.IDBefore(p.offset)
	}
	if len(ask) == 0 {
		return out, nil
	}
	found, err := redis.StandingsBefore(ctx, n.client, n.prefix, ask)
	if err != nil {
		return nil, err
	}
	for i, s := range found {
		out[at[i]] = standing{"0-0", ""}
		if s.OK {
			out[at[i]] = standing{s.ID, strconv.FormatInt(s.Read, 10)}
		}
	}
	return out, nil
}
