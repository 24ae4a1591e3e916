package redis

// openSharedScript makes a shared log if there is none. Its meta hash has no
// token, since no one owns it.
//
// Keys: stream, meta.
const openSharedScript = `
local layout = redis.call('HGET', KEYS[2], 'layout')
if layout then
  if layout ~= 'shared' then return {'layout', layout} end
  if redis.call('EXISTS', KEYS[1]) == 0 then return {'layout', 'shared without a stream'} end
  return {'ok', ''}
end
if redis.call('EXISTS', KEYS[1]) == 1 then return {'layout', 'of its own'} end
redis.call('XGROUP', 'CREATE', KEYS[1], 'm', '0', 'MKSTREAM')
redis.call('XGROUP', 'DESTROY', KEYS[1], 'm')
redis.call('HSET', KEYS[2], 'layout', 'shared', 'start', 0, 'end', 0, 'maxts', -1)
return {'ok', ''}
`

// proveFunction is the part of scripts that looks whether the log holds the
// batch that the caller has seen last. The first two arguments are the offset
// after it and its checksum, as the four bytes that the batch has at 17.
const proveFunction = `
local m = redis.call('HMGET', KEYS[2], 'end', 'maxts', 'cleaned')
if not m[1] then return {'gone', ''} end
local function held()
  if ARGV[1] == '0' then return true end
  local id = ARGV[1] .. '-0'
  for _, e in ipairs(redis.call('XRANGE', KEYS[1], id, id)) do
    for k = 1, #e[2], 2 do
      if e[2][k] == 'b' then return string.sub(e[2][k + 1], 18, 21) == ARGV[2] end
    end
  end
end
if not held() then
  if m[3] and tonumber(ARGV[1]) <= tonumber(m[3]) then return {'compacted', m[1]} end
  return {'lost', m[1]}
end
`

// appendSharedScript appends a batch where the log ends.
//
// Keys: stream, meta. Arguments: what was seen (2), id, the log end offset after
// it, batch, largest timestamp.
const appendSharedScript = proveFunction + `
if m[1] ~= ARGV[1] then return {'moved', m[1]} end
local t = ARGV[6]
if tonumber(m[2]) > tonumber(t) then t = m[2] end
local r = redis.pcall('XADD', KEYS[1], 'NOMKSTREAM', ARGV[3], 'b', ARGV[5], 't', t)
if not r then return {'gone', ''} end
if type(r) == 'table' then return {'error', r.err} end
redis.call('HSET', KEYS[2], 'end', ARGV[4], 'maxts', t)
return {'ok', r}
`

// readSharedScript returns the entries that follow.
//
// Keys: stream, meta. Arguments: what was seen (2), how many.
const readSharedScript = proveFunction + `
return {'ok', redis.call('XRANGE', KEYS[1], '(' .. ARGV[1] .. '-0', '+', 'COUNT', ARGV[3])}
`

// markSharedScript writes something, so that WAIT has something to wait for.
//
// Keys: stream, meta, mark. Arguments: what was seen (2).
const markSharedScript = proveFunction + `
redis.call('SET', KEYS[3], m[1], 'EX', 60)
return {'ok', m[1]}
`
