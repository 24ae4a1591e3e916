package redis

// The scripts that look at entries without moving the records themselves over
// the network.

// headersScript returns id, size and header of batches (log layout).
//
// Keys: stream. Arguments: first id, last id, how many.
const headersScript = `
local out = {}
for _, e in ipairs(redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[2], 'COUNT', ARGV[3])) do
  local b = ''
  for k = 1, #e[2], 2 do
    if e[2][k] == 'b' then b = e[2][k + 1] end
  end
  out[#out + 1] = e[1]
  out[#out + 1] = #b
  out[#out + 1] = string.sub(b, 1, 61)
end
return out
`

// statsFunction is the part that looks at one entry of the stream layout.
const statsFunction = `
local function stats(fields)
  local size, ts, key, value = 16, '', false, 0
  for k = 1, #fields, 2 do
    local name, v = fields[k], fields[k + 1]
    size = size + #name + #v
    if name == 'timestamp' and ts == '' then ts = v
    elseif name == 'key' and not key then key = v
    elseif name == 'value' then value = 1 end
  end
  return size, ts, key, value
end
`

// statsScript returns id, size and timestamp of entries (stream layout),
// backwards if asked to.
//
// Keys: stream. Arguments: first id, last id, how many, XRANGE or XREVRANGE.
const statsScript = statsFunction + `
local out = {}
for _, e in ipairs(redis.call(ARGV[4], KEYS[1], ARGV[1], ARGV[2], 'COUNT', ARGV[3])) do
  local size, ts = stats(e[2])
  out[#out + 1] = e[1]
  out[#out + 1] = size
  out[#out + 1] = ts
end
return out
`

// keysScript returns id, size, timestamp, key and whether there is a value
// (stream layout).
//
// Keys: stream. Arguments: first id, last id, how many.
const keysScript = statsFunction + `
local out = {}
for _, e in ipairs(redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[2], 'COUNT', ARGV[3])) do
  local size, ts, key, value = stats(e[2])
  out[#out + 1] = e[1]
  out[#out + 1] = size
  out[#out + 1] = ts
  out[#out + 1] = key
  out[#out + 1] = value
end
return out
`

// searchScript returns the first id, without its sequence, whose entry may
// have a timestamp of at least what is asked for (log layout): the largest
// timestamp so far grows from entry to entry.
//
// Keys: stream. Arguments: first id, last id, timestamp.
const searchScript = `
local lo, hi, ts = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
while lo < hi do
  local mid = math.floor((lo + hi) / 2)
  local e = redis.call('XRANGE', KEYS[1], string.format('%.0f', mid), '+', 'COUNT', 1)[1]
  local t
  if e then
    for k = 1, #e[2], 2 do
      if e[2][k] == 't' then t = tonumber(e[2][k + 1]) end
    end
  end
  if not e or not t or t >= ts then hi = mid else lo = tonumber(string.match(e[1], '^%d+')) + 1 end
end
return string.format('%.0f', lo)
`

// startScript moves the log start offset.
//
// Keys: stream, meta. Arguments: owner, start, epochs.
const startScript = evenWhenFull + ownFunction + `
redis.call('HSET', KEYS[2], 'start', ARGV[2], 'epochs', ARGV[3])
return {'ok', 0}
`

// cutScript moves the log start offset, and removes the entries below an id, of which
// the bytes are known. It returns how many went.
//
// Keys: stream, meta. Arguments: owner, start, epochs, id, bytes.
const cutScript = evenWhenFull + ownFunction + `
local gone = redis.call('XTRIM', KEYS[1], 'MINID', ARGV[4])
local m = redis.call('HMGET', KEYS[2], 'size', 'count')
local size, count = (tonumber(m[1]) or 0) - ARGV[5], (tonumber(m[2]) or 0) - gone
redis.call('HSET', KEYS[2], 'start', ARGV[2], 'epochs', ARGV[3],
  'size', string.format('%.0f', math.max(size, 0)), 'count', string.format('%.0f', math.max(count, 0)))
return {'ok', gone}
`

// trimScript removes entries of the stream layout below an id: with ~ a bounded number
// of them, in whole nodes of the stream, else all. It returns how many went, and an
// estimate of their bytes.
//
// Keys: stream, meta. Arguments: owner, id, ~ or =.
const trimScript = ownFunction + `
local gone
if ARGV[3] == '~' then gone = redis.call('XTRIM', KEYS[1], 'MINID', '~', ARGV[2], 'LIMIT', 5000)
else gone = redis.call('XTRIM', KEYS[1], 'MINID', ARGV[2]) end
local m = redis.call('HMGET', KEYS[2], 'size', 'count')
local size, count = tonumber(m[1]) or 0, tonumber(m[2]) or 0
local bytes = 0
if count > 0 then bytes = math.floor(size * math.min(gone / count, 1)) end
redis.call('HSET', KEYS[2], 'size', string.format('%.0f', math.max(size - bytes, 0)), 'count', string.format('%.0f', math.max(count - gone, 0)))
return {'ok', gone, string.format('%.0f', bytes)}
`

// shortenScript removes a bounded number of entries from the start, in whole
// nodes of the stream, as long as so many remain. Which was the last of them
// no one tells, so one more goes, and the log starts after that one: if it started at
// the first that remains, whoever has read all that went would be outside of it. It
// returns how many went, an estimate of their bytes, and where the log starts.
//
// Keys: stream, meta. Arguments: owner, how many remain before one more goes.
const shortenScript = ownFunction + `
local gone = redis.call('XTRIM', KEYS[1], 'MAXLEN', '~', ARGV[2], 'LIMIT', 5000)
local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
if gone == 0 or not first then return {'ok', 0, '0', ''} end
local start = first[1]
local ms, seq = string.match(start, '^(%d+)-(%d+)$')
if #seq < 16 then -- Otherwise it has no offset, and Lua cannot count so far.
  start = ms .. '-' .. string.format('%.0f', seq + 1)
  gone = gone + redis.call('XTRIM', KEYS[1], 'MINID', start)
end
local m = redis.call('HMGET', KEYS[2], 'size', 'count')
local size, count = tonumber(m[1]) or 0, tonumber(m[2]) or 0
local bytes = 0
if count > 0 then bytes = math.floor(size * math.min(gone / count, 1)) end
redis.call('HSET', KEYS[2], 'start', start, 'size', string.format('%.0f', size - bytes), 'count', string.format('%.0f', math.max(count - gone, 0)))
return {'ok', gone, string.format('%.0f', bytes), start}
`

// deleteScript removes entries.
//
// Keys: stream, meta. Arguments: owner, their bytes, ids.
const deleteScript = ownFunction + `
local gone = redis.call('XDEL', KEYS[1], unpack(ARGV, 3))
redis.call('HINCRBY', KEYS[2], 'size', 0 - tonumber(ARGV[2]))
redis.call('HINCRBY', KEYS[2], 'count', 0 - gone)
return {'ok', gone}
`

// copyScript copies some entries to another stream and returns the id of the
// last one, and how many they were.
//
// Keys: stream, the other. Arguments: first id, last id, how many, expiry of
// the other in seconds.
const copyScript = `
local last, n = '', 0
for _, e in ipairs(redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[2], 'COUNT', ARGV[3])) do
  redis.call('XADD', KEYS[2], e[1], unpack(e[2]))
  last, n = e[1], n + 1
end
if n > 0 then redis.call('EXPIRE', KEYS[2], ARGV[4]) end
return {last, n}
`

// swapScript puts a rewritten stream in the place of the log's, if it has all
// entries that were written to it: one that expired or was evicted
// meanwhile has only those that were written since. The consumer groups keep their
// positions and consumers, but not what those have pending.
//
// Keys: stream, meta, the new stream, a name for the old one. Arguments: field
// and its expected value, bytes and entries that went, the offset up to which
// the log is compacted, the bytes there, up to which it was when that was
// looked at, how many entries were written to the new stream, and the passes of
// compaction.
const swapScript = evenWhenFull + infoFunction + `
if redis.call('HGET', KEYS[2], ARGV[1]) ~= ARGV[2] then return {'refused', redis.call('HGET', KEYS[2], 'n') or ''} end
if (redis.call('HGET', KEYS[2], 'cleaned') or '0') ~= ARGV[7] then return {'compacted', ''} end
local written = redis.call('XLEN', KEYS[3])
if written ~= tonumber(ARGV[8]) then
  redis.call('UNLINK', KEYS[3])
  return {'partial', written}
end
local f = info()
if written == 0 then
  redis.call('XGROUP', 'CREATE', KEYS[3], 'm', '0', 'MKSTREAM')
  redis.call('XGROUP', 'DESTROY', KEYS[3], 'm')
end
redis.call('XSETID', KEYS[3], f['last-generated-id'], 'ENTRIESADDED', f['entries-added'], 'MAXDELETEDID', f['last-generated-id'])
for _, g in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
  local h = {}
  for k = 1, #g, 2 do h[g[k]] = g[k + 1] end
  local create = {'XGROUP', 'CREATE', KEYS[3], h['name'], h['last-delivered-id']}
  if h['entries-read'] then
    create[#create + 1] = 'ENTRIESREAD'
    create[#create + 1] = h['entries-read']
  end
  redis.call(unpack(create))
  for _, c in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], h['name'])) do
    for k = 1, #c, 2 do
      if c[k] == 'name' then redis.call('XGROUP', 'CREATECONSUMER', KEYS[3], h['name'], c[k + 1]) end
    end
  end
end
redis.call('PERSIST', KEYS[3])
redis.call('RENAME', KEYS[1], KEYS[4])
redis.call('RENAME', KEYS[3], KEYS[1])
redis.call('UNLINK', KEYS[4])
redis.call('HINCRBY', KEYS[2], 'size', 0 - tonumber(ARGV[3]))
redis.call('HINCRBY', KEYS[2], 'count', 0 - tonumber(ARGV[4]))
redis.call('HSET', KEYS[2], 'cleaned', ARGV[5], 'clean', ARGV[6], 'passes', ARGV[9])
return {'ok', ''}
`
