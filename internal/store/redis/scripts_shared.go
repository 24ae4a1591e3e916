package redis

// openSharedScript makes a shared log if there is none. Its meta hash has no
// token, since nobody owns it.
//
// Keys: stream, meta, rewrite.
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

// appendSharedScript appends a batch where the log ends.
//
// Keys: stream, meta, rewrite. Arguments: the log end offset expected, id, the
// log end offset after it, batch, largest timestamp.
const appendSharedScript = `
local m = redis.call('HMGET', KEYS[2], 'end', 'maxts')
if not m[1] then return {'gone', ''} end
if m[1] ~= ARGV[1] then return {'moved', m[1]} end
local t = ARGV[5]
if tonumber(m[2]) > tonumber(t) then t = m[2] end
local r = redis.pcall('XADD', KEYS[1], 'NOMKSTREAM', ARGV[2], 'b', ARGV[4], 't', t)
if not r then return {'gone', ''} end
if type(r) == 'table' then return {'error', r.err} end
redis.call('HSET', KEYS[2], 'end', ARGV[3], 'maxts', t)
return {'ok', r}
`
