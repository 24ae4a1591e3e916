package redis

// The scripts. Each names its keys and arguments; all keys of a log share a
// slot. The fields of the meta hash:
//
//	n       the token of the last append: <leader epoch>.<incarnation>.<counter>
//	i       the last incarnation: every Open is one. The first is the time in
//	        microseconds, so that a log which was deleted and made anew does not
//	        go back
//	layout  log or stream
//	bits    the bits of the sequence in offsets (stream)
//	start   the log start offset; in the stream layout as an id
//	end     the log end offset; in the stream layout as an id
//	epochs  the leader epochs that appended: [[epoch, start offset], …]
//	size    the bytes of all records, count: the entries
//	cleaned the offset up to which the log was compacted, clean: the bytes there
//	maxts   the largest timestamp that was ever appended (log)
//	ahead   how far, in ms, a record's timestamp was ahead of its id (stream)
//	l, x    what one part of a transaction leaves for the next, see guardScript

// infoFunction is the part of scripts that looks at the stream itself.
const infoFunction = `
local function info()
  local r, f = redis.call('XINFO', 'STREAM', KEYS[1]), {}
  for k = 1, #r, 2 do f[r[k]] = r[k + 1] end
  return f
end
`

// openScript takes a log over: from now on the token is ours.
//
// Keys: stream, meta. Arguments: epoch, layout, bits.
const openScript = infoFunction + `
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'stream' then return {'type', kind} end
local n = redis.call('HGET', KEYS[2], 'n')
if n then
  local epoch = tonumber(string.match(n, '^(-?%d+)%.'))
  if not epoch then return {'token', n} end
  if epoch > tonumber(ARGV[1]) then return {'fenced', n} end
end
local lost = 0
if kind == 'none' then
  redis.call('XGROUP', 'CREATE', KEYS[1], 'm', '0', 'MKSTREAM')
  redis.call('XGROUP', 'DESTROY', KEYS[1], 'm')
  local e = redis.call('HGET', KEYS[2], 'end')
  if e then
    if not string.find(e, '-', 1, true) then e = e .. '-0' end
    if e ~= '0-0' then
      redis.call('XSETID', KEYS[1], e)
      redis.call('HSET', KEYS[2], 'start', redis.call('HGET', KEYS[2], 'end'), 'size', 0, 'count', 0)
      lost = 1
    end
  else
    redis.call('HSET', KEYS[2], 'start', 0, 'end', 0)
  end
end
if redis.call('HSETNX', KEYS[2], 'layout', ARGV[2]) == 1 then
  redis.call('HSET', KEYS[2], 'bits', ARGV[3])
end
local f, t = info(), redis.call('TIME')
redis.call('HSETNX', KEYS[2], 'i', string.format('%.0f', t[1] * 1000000 + t[2]))
local i = redis.call('HINCRBY', KEYS[2], 'i', 1)
redis.call('HSET', KEYS[2], 'n', ARGV[1] .. '.' .. string.format('%.0f', i) .. '.0')
local first = f['first-entry'] and f['first-entry'][1] or ''
local last = f['last-entry'] and f['last-entry'][1] or ''
return {'ok', i, lost, f['length'], f['last-generated-id'], first, last, t[1], t[2], redis.call('HGETALL', KEYS[2])}
`

// guardScript is the first command of an append's transaction. If the token is
// not the one that the append builds upon, or the stream already has an entry
// at or above the first one to come, it puts the stream's last id at the very
// top, so that the XADDs which follow are all refused.
//
// Keys: stream, meta. Arguments: token, the id before the first.
const guardScript = `
if redis.pcall('HGET', KEYS[2], 'n') == ARGV[1] and not redis.call('XREAD', 'COUNT', 1, 'STREAMS', KEYS[1], ARGV[2]) then
  redis.call('HSET', KEYS[2], 'l', redis.call('XLEN', KEYS[1]))
  return 1
end
if redis.call('EXISTS', KEYS[1]) == 1 then
  local r = redis.call('XINFO', 'STREAM', KEYS[1])
  for k = 1, #r, 2 do
    if r[k] == 'last-generated-id' then redis.pcall('HSET', KEYS[2], 'x', r[k + 1]) end
  end
  redis.call('XSETID', KEYS[1], '18446744073709551615-18446744073709551615')
end
return 0
`

// sealScript is the last command of an append's transaction. It undoes what
// guardScript did, or counts the entries that arrived and writes down that the
// append is done.
//
// Keys: stream, meta, producers. Arguments: token, next token, entries, first
// id, last id, bytes, number of meta arguments, meta fields and values,
// producer ids and states.
const sealScript = infoFunction + `
local m = redis.pcall('HMGET', KEYS[2], 'n', 'x', 'l', 'size', 'count')
local function refused(why, extra)
  local t, last = redis.call('TIME'), ''
  if redis.call('EXISTS', KEYS[1]) == 1 then last = info()['last-generated-id'] end
  return {why, t[1], t[2], m[1] or '', last, extra or ''}
end
local function undo(why, extra)
  for _, e in ipairs(redis.call('XRANGE', KEYS[1], ARGV[4], ARGV[5])) do redis.call('XDEL', KEYS[1], e[1]) end
  return refused(why, extra)
end
if m.err or m[2] or m[1] ~= ARGV[1] then
  if redis.call('EXISTS', KEYS[1]) == 1 then
    local f = info()
    if f['last-generated-id'] == '18446744073709551615-18446744073709551615' then
      local x = m[2]
      if not x then
        x = f['last-entry'] and f['last-entry'][1] or '0-0'
        if redis.pcall('XSETID', KEYS[1], x).err then x = f['max-deleted-entry-id'] end
      end
      redis.call('XSETID', KEYS[1], x)
    end
  end
  redis.pcall('HDEL', KEYS[2], 'x')
  return refused('refused')
end
if redis.call('XLEN', KEYS[1]) - m[3] ~= tonumber(ARGV[3]) then return undo('short') end
local meta = tonumber(ARGV[7])
if #ARGV > 7 + meta then
  local r = redis.pcall('HSET', KEYS[3], unpack(ARGV, 8 + meta))
  if type(r) == 'table' then return undo('producers', r.err) end
end
redis.call('HSET', KEYS[2], 'n', ARGV[2],
  'size', string.format('%.0f', (tonumber(m[4]) or 0) + ARGV[6]), 'count', string.format('%.0f', (tonumber(m[5]) or 0) + ARGV[3]),
  unpack(ARGV, 8, 7 + meta))
local t = redis.call('TIME')
return {'ok', t[1], t[2]}
`

// ownFunction is the part of scripts that only the owner of the log may run.
// The first argument is the token without the counter.
const ownFunction = `
local n = redis.call('HGET', KEYS[2], 'n') or ''
if string.sub(n, 1, #ARGV[1]) ~= ARGV[1] then return {'refused', n} end
`

// checkScript says whether the log is still ours.
//
// Keys: stream, meta. Arguments: owner.
const checkScript = ownFunction + `return {'ok', n}`

// setScript writes into the meta hash.
//
// Keys: stream, meta. Arguments: owner, meta fields and values.
const setScript = ownFunction + `
redis.call('HSET', KEYS[2], unpack(ARGV, 2))
return {'ok', n}
`

// forgetScript removes producers.
//
// Keys: stream, meta, producers. Arguments: owner, producer ids.
const forgetScript = ownFunction + `
redis.call('HDEL', KEYS[3], unpack(ARGV, 2))
return {'ok', n}
`

// lastScript returns the last id that the stream gave.
//
// Keys: stream, meta.
const lastScript = infoFunction + `
if redis.call('EXISTS', KEYS[2]) == 0 then return '' end
return info()['last-generated-id']
`

// markScript writes something, so that WAIT has something to wait for, and
// returns the counter of the last append.
//
// Keys: stream, meta, mark. Arguments: owner.
const markScript = ownFunction + `
redis.call('SET', KEYS[3], n, 'EX', 60)
return {'ok', string.sub(n, #ARGV[1] + 1)}
`
