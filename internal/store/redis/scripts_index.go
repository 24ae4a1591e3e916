package redis

import "strconv"

// stateFunction is the part of scripts that read and write the state of an indexed log. The
// numbers are below 2^53.
const stateFunction = `
local function text(n) return string.format('%.0f', n) end
local function state(s)
  local top, added, maxts, size = string.match(s or '', '^(%d+%-%d+) (%d+) (%-?%d+) (%-?%d+)$')
  if not top then return nil end
  return {top = top, added = tonumber(added), maxts = maxts, size = tonumber(size)}
end
local function state_text(s)
  return s.top .. ' ' .. text(s.added) .. ' ' .. s.maxts .. ' ' .. text(s.size)
end
-- Whether an id is another one or below it. Numbers would not be exact.
local function upto(a, b)
  local am, as = string.match(a, '^(%d+)-(%d+)$')
  local bm, bs = string.match(b, '^(%d+)-(%d+)$')
  if am == bm then am, bm = as, bs end
  if #am ~= #bm then return #am < #bm end
  return am <= bm
end
local function later(a, b)
  if tonumber(b) > tonumber(a) then return b end
  return a
end
-- Adds an entry to the index; false if there is none.
local function index(key, e, s, first, body)
  local r = redis.pcall('XADD', key, 'NOMKSTREAM', text(e) .. '-0', 'b', s.maxts .. ' ' .. text(s.added) .. ' ' .. first .. '\n' .. body)
  if type(r) == 'table' then return key .. ': ' .. r.err end
  if not r then return 'the index is gone' end
end
`

// adoptFunction is the part that adopts entries of others: it makes the body of the index
// entry, which is a run for each series of ids that follow each other, and one batch.
const adoptFunction = `
local function varint(n)
  local s = ''
  while n >= 128 do
    s = s .. string.char(n % 128 + 128)
    n = math.floor(n / 128)
  end
  return s .. string.char(n)
end
local function zigzag(n)
  if n >= 0 then return varint(2 * n) end
  return varint(-2 * n - 1)
end
local limit = 2 ^ 52
local function adopt(entries, s, epoch)
  local runs, first, count, ms, seq = {}, nil, 0, nil, nil
  local base, largest, bytes, size
  bytes, size = 0, 0
  local function close()
    if first then runs[#runs + 1] = varint(count) .. varint(#first) .. first end
  end
  for _, e in ipairs(entries) do
    local m, q = string.match(e[1], '^(%d+)-(%d+)$')
    local n = tonumber(q)
    if m == ms and n < limit and n == seq + 1 then
      count = count + 1
    else
      close()
      first, count = e[1], 1
    end
    ms, seq = m, n
    local ts
    local own = 16
    for k = 1, #e[2], 2 do
      local name, v = e[2][k], e[2][k + 1]
      own = own + #name + #v
      if name == 'timestamp' and not ts and string.match(v, '^[+-]?%d+$') and math.abs(tonumber(v)) <= limit then ts = tonumber(v) end
    end
    bytes, size = bytes + own, math.max(size, own)
    ts = ts or math.min(tonumber(m), limit)
    base = base or ts
    largest = math.max(largest or ts, ts)
  end
  close()
  s.top, s.added, s.size, s.maxts = entries[#entries][1], s.added + #entries, s.size + bytes, later(s.maxts, text(largest))
  return varint(#runs) .. table.concat(runs) .. varint(1) .. varint(#entries) .. string.char(8) .. varint(epoch + 1) .. zigzag(base) .. zigzag(largest) .. varint(bytes), size
end
`

// enlargeFunction is the part that notes the size of the largest entry.
const enlargeFunction = `
local function enlarge(n)
  if n > (tonumber(redis.call('HGET', KEYS[2], 'largest')) or 0) then redis.call('HSET', KEYS[2], 'largest', text(n)) end
end
`

// maxAdopted is how many entries of others an append adopts by the way, adoptedAtOnce how many it reads at once, since
// no one knows how large they are, and adoptedBytes after how many bytes it reads no more. adoptFirst is the reason why one
// is refused that has more of them below its ids.
const (
	maxAdopted    = 64
	adoptedAtOnce = 8
	adoptedBytes  = 1 << 20
	adoptFirst    = "there are more entries of others"
)

// appendIndexScript is the first command of an append's transaction in the indexed layout;
// the XADDs of the data follow it. If the token is the one that the append builds upon,
// and no entry of others is above the last id that the index covers, it adds to the index what
// the transaction is going to add, and writes that down. A few entries of others are adopted
// first, which moves the offsets of the transaction. As with appendScript, the stream has been
// moved away if there is data, and it moves it back.
//
// If the log ends elsewhere than the transaction builds upon, ids may have been adopted that it
// does not know of: an adoption whose reply was lost. Then its own must be above those.
// It never ends before that, unless Redis has forgotten something.
//
// XSETID tells whether there is an entry above an id, since it refuses to go below the last
// one. Below one that was deleted it does go on some servers, which does no harm: such an entry
// has no offset, and ids are chosen by the clock.
//
// It returns 1, or the time as well, if the log ended where the transaction builds upon, and
// otherwise also where it ended, with what state, as of before the transaction.
//
// Keys: stream, meta, index, held. Arguments: token, the id before the first, whether to return
// the time, the log end offset that it builds upon, how many offsets and data
// entries it has, its last id or nothing, its first id or -, its largest timestamp, its bytes, the body of
// its index entry, meta fields and values, of which the first is the token.
var appendIndexScript = newScript(stateFunction + adoptFunction + enlargeFunction + `
local m, why, last = redis.pcall('HMGET', KEYS[2], 'n', 'end', 's'), nil, nil
local n = m[1]
if not m.err and n == ARGV[1] then
  local e, s = tonumber(m[2]), state(m[3])
  local exact, large = m[2] == ARGV[4], 0
  local function store(...)
    redis.call('HSET', KEYS[2], 'end', text(e), 's', state_text(s), ...)
    if large > 0 then enlarge(large) end
  end
  if not s or not e or e < tonumber(ARGV[4]) then
    why, last = 'it ends at ' .. tostring(m[2]) .. ', and its state is ' .. tostring(m[3]), ARGV[2]
  elseif ARGV[7] ~= '' and redis.pcall('XSETID', KEYS[4], s.top).err then
    local found, bytes, some = {}, 0, nil
    repeat
      some = redis.pcall('XRANGE', KEYS[4], '(' .. (#found > 0 and found[#found][1] or s.top), '+', 'COUNT', ` + strconv.Itoa(adoptedAtOnce) + `)
      for _, x in ipairs(some) do
        found[#found + 1] = x
        for _, v in ipairs(x[2]) do bytes = bytes + #v end
      end
    until #some < ` + strconv.Itoa(adoptedAtOnce) + ` or #found >= ` + strconv.Itoa(maxAdopted) + ` or bytes >= ` + strconv.Itoa(adoptedBytes) + `
    if #found > 0 then
      local first, body = found[1][1], nil
      body, large = adopt(found, s, tonumber(string.match(n, '^-?%d+')))
      e, exact = e + #found, false
      why = index(KEYS[3], e, s, first, body)
      if why then last = ARGV[2] else store(unpack(ARGV, 14)) end
      if not why and #some == ` + strconv.Itoa(adoptedAtOnce) + ` and redis.pcall('XSETID', KEYS[4], s.top).err then why = '` + adoptFirst + `' end
    end
    if not why then
      local r = redis.pcall('XSETID', KEYS[4], ARGV[2])
      why = r.err
    end
  elseif ARGV[7] ~= '' and not exact and not upto(s.top, ARGV[2]) then
    why, last = 'its ids are not above ' .. s.top, s.top
  end
  if not why then
    local before = state_text(s)
    local from = e
    e = e + tonumber(ARGV[5])
    s.added, s.size, s.maxts = s.added + tonumber(ARGV[6]), s.size + tonumber(ARGV[10]), later(s.maxts, ARGV[9])
    if ARGV[7] ~= '' then s.top = ARGV[7] end
    why = index(KEYS[3], e, s, ARGV[8], ARGV[11])
    if not why then
      store(unpack(ARGV, 12))
      if ARGV[7] ~= '' then redis.call('RENAME', KEYS[4], KEYS[1]) end
      if exact and ARGV[3] == '' then return 1 end
      local t = redis.call('TIME')
      if exact then return {'ok', t[1], t[2]} end
      return {'ok', t[1], t[2], text(from), before}
    end
    last = ARGV[2]
  end
end
local t = redis.call('TIME')
if not last then
  last = ''
  local r = redis.pcall('XINFO', 'STREAM', KEYS[4])
  for k = 1, #r, 2 do
    if r[k] == 'last-generated-id' then last = r[k + 1] end
  end
end
if m.err then n, why = ARGV[1], KEYS[2] .. ': ' .. m.err end
return {'refused', t[1], t[2], n or '', last, why or ''}
`)

// knownFunction is ownFunction for scripts that go by what the handle knows of the log: where
// Redis has forgotten something of it, which is what a failover does when the new primary is
// behind, that is wrong. The second argument is where the log ends as far as the handle knows: since
// then no one but the handle has moved that.
const knownFunction = ownFunction + `
if tonumber(redis.call('HGET', KEYS[2], 'end')) < tonumber(ARGV[2]) then return {'refused', n} end
`

// adoptScript adds entries of others to the index that the owner has read, unless it did so
// before.
//
// Keys: stream, meta, index. Arguments: owner, end, the last id that the index covers, the last of
// the entries, how many they are, their largest timestamp, their bytes, the first of them, the
// body, the leader epochs, and the size of the largest.
const adoptScript = evenWhenFull + stateFunction + enlargeFunction + knownFunction + `
local m = redis.call('HMGET', KEYS[2], 'end', 's')
local e, s = tonumber(m[1]), state(m[2])
if not s or not e then return {'state', tostring(m[2])} end
if s.top ~= ARGV[3] then return {'ok', text(e), state_text(s)} end
local count = tonumber(ARGV[5])
e = e + count
s.top, s.added, s.size, s.maxts = ARGV[4], s.added + count, s.size + tonumber(ARGV[7]), later(s.maxts, ARGV[6])
local why = index(KEYS[3], e, s, ARGV[8], ARGV[9])
if why then return {'index', why} end
redis.call('HSET', KEYS[2], 'end', text(e), 's', state_text(s), 'epochs', ARGV[10])
enlarge(tonumber(ARGV[11]))
return {'ok', text(e), state_text(s)}
`

// cutIndexScript moves the log start offset, and removes what is below it: entries of the
// index below an id, and data below another, if that is given. XTRIM ends at the first id that is
// not below, even of an entry that was deleted, and where appendIndexScript has gone below one, smaller
// ones follow.
//
// Keys: stream, meta, index. Arguments: owner, end, start, epochs, id of the index, id of the data or
// nothing, bytes.
const cutIndexScript = evenWhenFull + stateFunction + knownFunction + `
redis.call('XTRIM', KEYS[3], 'MINID', ARGV[5])
local gone = 0
if ARGV[6] ~= '' then
  gone = redis.call('XTRIM', KEYS[1], 'MINID', ARGV[6])
  repeat
    local rest = redis.call('XRANGE', KEYS[1], '-', '(' .. ARGV[6], 'COUNT', 100)
    for _, e in ipairs(rest) do gone = gone + redis.call('XDEL', KEYS[1], e[1]) end
  until #rest == 0
end
local s = state(redis.call('HGET', KEYS[2], 's'))
if s then
  s.size = math.max(s.size - tonumber(ARGV[7]), 0)
  redis.call('HSET', KEYS[2], 's', state_text(s))
end
redis.call('HSET', KEYS[2], 'start', ARGV[3], 'epochs', ARGV[4])
return {'ok', gone}
`

// deleteIndexedScript removes data.
//
// Keys: stream, meta. Arguments: owner, end, their bytes, ids.
const deleteIndexedScript = stateFunction + knownFunction + `
local gone = redis.call('XDEL', KEYS[1], unpack(ARGV, 4))
local s = state(redis.call('HGET', KEYS[2], 's'))
if s then
  s.size = math.max(s.size - tonumber(ARGV[3]), 0)
  redis.call('HSET', KEYS[2], 's', state_text(s))
end
return {'ok', gone}
`

// deleteEntriesScript removes entries of the index.
//
// Keys: stream, meta, index. Arguments: owner, end, ids.
const deleteEntriesScript = knownFunction + `
return {'ok', redis.call('XDEL', KEYS[3], unpack(ARGV, 3))}
`

// snapshotScript writes what has become of producers since the last time, and the transactions
// that were aborted.
//
// Keys: stream, meta, producers, aborted. Arguments: owner, end, how many arguments are about aborted
// transactions, their scores and members, producer ids and states, and in the end the field that says up to which
// offset all of it goes.
const snapshotScript = evenWhenFull + knownFunction + `
local first = 4 + tonumber(ARGV[3])
for k = 4, first - 1, 1000 do redis.call('ZADD', KEYS[4], unpack(ARGV, k, math.min(k + 999, first - 1))) end
for k = first, #ARGV, 1000 do redis.call('HSET', KEYS[3], unpack(ARGV, k, math.min(k + 999, #ARGV))) end
return {'ok', n}
`

// searchIndexScript is searchScript for an index.
//
// Keys: index. Arguments: first id, last id, timestamp.
const searchIndexScript = `
local lo, hi, ts = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
while lo < hi do
  local mid = math.floor((lo + hi) / 2)
  local e = redis.call('XRANGE', KEYS[1], string.format('%.0f', mid), '+', 'COUNT', 1)[1]
  local t
  if e then t = tonumber(string.match(e[2][2] or '', '^%-?%d+')) end
  if not e or not t or t >= ts then hi = mid else lo = tonumber(string.match(e[1], '^%d+')) + 1 end
end
return string.format('%.0f', lo)
`
