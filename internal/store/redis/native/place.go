package native

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"muster/internal/store/redis"
	"muster/internal/store/redis/conn"
)

// Redis computes a group's lag as the number of entries ever added to the
// stream, minus entries-read of the group. Whoever moves a group must say what
// entries-read is at its new place, and Redis has no command that counts
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
// exact again.

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
// group, id, placeNew or placeAny, how many entries and bytes it may count, how
// many ids a millisecond has room for, layout and bits. It returns entries-read,
// or nothing if there is no stream or nothing to do, or the layout and bits that
// the stream has if they are others.
const placeScriptText = `
local key, group, id = KEYS[1], ARGV[1], ARGV[2]
local budget, budget_bytes, width = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])

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

-- Counts the entries after one id and up to another, about so many, or returns
-- nothing if they are too many.
local function count(after, last, about)
  if about > 2 * budget then return nil end
  local n, chunk, bytes, from = 0, 4, 0, '(' .. after
  while true do
    local entries = redis.call('XRANGE', key, from, last, 'COUNT', chunk)
    n = n + #entries
    if #entries < chunk then return n end
    local size = 1
    for _, text in ipairs(entries[#entries][2]) do size = size + #text end
    bytes = bytes + size * #entries
    if n >= budget or bytes >= budget_bytes then return nil end
    from = '(' .. entries[#entries][1]
    chunk = math.max(1, math.min(128, math.floor(65536 / size)))
  end
end

if redis.call('EXISTS', key) == 0 then return false end
local meta = redis.call('HMGET', KEYS[3], 'layout', 'bits')
if meta[1] and (meta[1] ~= ARGV[7] or meta[1] == 'stream' and meta[2] ~= ARGV[8]) then return meta end
local stream = map(redis.call('XINFO', 'STREAM', key))
local added, length = stream['entries-added'], stream['length']
local known
for _, g in ipairs(redis.call('XINFO', 'GROUPS', key)) do
  local m = map(g)
  if m['name'] == group then known = m end
end
if known and ARGV[3] == 'new' then return false end

local function entries_read()
  local at, high = place(id), place(stream['last-generated-id'], added)
  if length == 0 or upto(high, at) then return added end
  local low = place(stream['first-entry'][1], added - length + 1)
  if not upto(low, at) then return added - length end
  if known and known['entries-read'] then
    local there = place(known['last-delivered-id'], known['entries-read'])
    if upto(low, there) and upto(there, at) then low = there
    elseif upto(at, there) and upto(there, high) then high = there end
  end
  local guess = low.read
  if high.x > low.x then
    guess = low.read + (high.read - low.read) * (at.x - low.x) / (high.x - low.x)
  end
  local n = count(id, '+', added - guess) -- From the end it is right whatever was deleted.
  if n then return added - n end
  if guess - low.read <= high.read - guess then
    n = count(low.id, id, guess - low.read)
    return n and low.read + n or guess
  end
  n = count(id, high.id, high.read - guess)
  return n and high.read - n or guess
end

local read = string.format('%.0f', math.floor(entries_read()))
if not known then
  redis.call('XGROUP', 'CREATE', key, group, id, 'ENTRIESREAD', read)
  redis.call('SADD', KEYS[2], group)
elseif known['last-delivered-id'] ~= id or tostring(known['entries-read']) ~= read then
  redis.call('XGROUP', 'SETID', key, group, id, 'ENTRIESREAD', read)
end
return read`

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

// placeOnce also returns the placements, and where they are in the list, whose
// streams are not what they were taken for.
func (n *Groups) placeOnce(ctx context.Context, list []placement, mode string, counted int) (errs []error, others []placement, at []int) {
	calls := make([]scriptCall, len(list))
	for i, p := range list {
		stream, meta, ours := redis.StreamKeys(n.prefix, p.stream.TopicPartition)
		layout, bits := p.stream.Kept()
		calls[i] = scriptCall{
			keys: []string{stream, ours, meta},
			args: []string{
				p.group, p.stream.IDBefore(p.offset), mode,
				strconv.Itoa(counted), strconv.Itoa(maxCountedBytes),
				strconv.Itoa(1 << bits), string(layout), strconv.Itoa(bits),
			},
		}
	}
	errs = make([]error, len(list))
	for i, reply := range placeScript.each(ctx, n.client, calls) {
		p := list[i]
		if meta, err := reply.AsStrSlice(); err == nil && len(meta) == 2 {
			p.stream = p.stream.As(meta[0], meta[1])
			others, at = append(others, p), append(at, i)
		} else if err := reply.Error(); err != nil && !rueidis.IsRedisNil(err) {
			errs[i] = conn.Attempt(fmt.Sprintf("moving redis group %s of %s-%d to offset %d", p.group, p.stream.Topic, p.stream.Partition, p.offset), err)
		}
	}
	return errs, others, at
}
