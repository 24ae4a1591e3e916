package redis

// The scripts. Each names its keys and arguments; all keys of a log share a
// slot. The fields of the meta hash:
//
//	n       the token of the last append: <leader epoch>.<incarnation>.<counter>
//	i       the last incarnation: every Open is one. It is the time in
//	        microseconds, so that a log which was deleted and made anew, or which
//	        Redis has forgotten the end of, does not go back
//	layout  log, stream or indexed
//	bits    the bits of the sequence in offsets (stream)
//	start   the log start offset; in the stream layout as an id
//	end     the log end offset; in the stream layout as an id
//	epochs  the leader epochs that appended: [[epoch, start offset], …]
//	size    the bytes of all records, count: the entries, largest: the bytes of
//	        the largest entry ever appended
//	cleaned the offset up to which the log was compacted, clean: the bytes there,
//	        passes: how far each pass went, and when (store.Cleaned)
//	maxts   the largest timestamp that was ever appended (log)
//	run     the run of the server in which the log was opened last, began: where it
//	        ended when it was first opened in that one, lost: where it ended when its end
//	        was last found missing, or nobody could tell (log; store.Run)
//	ahead   how far, in ms, a record's timestamp was ahead of its id (stream)
//	converted  where the log began when it was converted: offsets from there on are of before (indexed)
//	until   the last leader epoch of before (indexed)
//	was     the layout from which it was converted (indexed)
//	s       the last id that the index covers, the data entries that it has covered so far,
//	        the largest timestamp ever appended, the bytes of all records (indexed)

// evenWhenFull is the first line of scripts that may write when Redis has as much
// as its maxmemory allows. Those are the ones that free memory, and what must
// happen first: a broker registers, takes logs over, and notes in the metadata
// that a topic is deleted. What they write is small. A script whose first write
// is one that frees memory may go on in any case.
const evenWhenFull = "#!lua flags=allow-oom\n"

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
// A stream that never had an entry begins now, where its first entry will be, and
// refuses ids below, which no one would see.
//
// It is also the first look at a log in a run of the server: who opens it says where it
// ended as far as he knows, and whether it does still is written down, since it must be
// known to whoever opens it next as well.
//
// In the indexed layout, a data stream or an index that is gone is made again where it ended. If
// the index is gone, the data is adopted anew, above all offsets so far; if the meta hash is,
// everything is, from 0.
//
// Keys: stream, meta, index, producers, aborted. Arguments: epoch, layout, bits, the log end offset as far as it is
// known or 0, and where it is known to have lost its end or 0.
const openScript = evenWhenFull + infoFunction + `
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and kind ~= 'stream' then return {'type', kind, KEYS[1]} end
for i, want in ipairs({'hash', 'stream', 'hash', 'zset'}) do
  local is = redis.call('TYPE', KEYS[i + 1]).ok
  if is ~= 'none' and is ~= want then return {'type', is, KEYS[i + 1]} end
end
local m = redis.call('HMGET', KEYS[2], 'n', 'layout')
local n = m[1]
if m[2] == 'shared' then return {'type', 'log that brokers share', KEYS[1]} end
if n then
  local epoch = tonumber(string.match(n, '^(-?%d+)%.'))
  if not epoch then return {'token', n} end
  if epoch > tonumber(ARGV[1]) then return {'fenced', n} end
end
local lost = 0
if (m[2] or ARGV[2]) == 'indexed' then
  local ikind = redis.call('TYPE', KEYS[3]).ok
  local function create(key, last)
    redis.call('XGROUP', 'CREATE', key, 'm', '0', 'MKSTREAM')
    redis.call('XGROUP', 'DESTROY', key, 'm')
    if last ~= '0-0' then redis.call('XSETID', key, last) end
  end
  local r = redis.call('HMGET', KEYS[2], 'end', 's')
  local e, s = r[1], r[2]
  if not e or not s then
    redis.call('UNLINK', KEYS[3], KEYS[4], KEYS[5])
    e, s, ikind = '0', '0-0 0 -1 0', 'none'
    redis.call('HSET', KEYS[2], 'start', '0', 'end', e, 's', s)
  end
  local top, rest = string.match(s, '^(%S+) (.*)$')
  if ikind == 'none' then
    create(KEYS[3], e .. '-0')
    if e ~= '0' then top, lost = '0-0', 1 end
  end
  if kind == 'none' then
    create(KEYS[1], top)
    if e ~= '0' then lost = 1 end
  end
  if lost == 1 then
    local added, maxts = string.match(rest, '^(%d+) (%S+)')
    redis.call('HSET', KEYS[2], 'start', e, 's', top .. ' ' .. added .. ' ' .. maxts .. ' 0')
  end
elseif kind == 'none' then
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
if f['last-generated-id'] == '0-0' and redis.call('HGET', KEYS[2], 'layout') == 'stream' then
  local e = redis.call('HGET', KEYS[2], 'end')
  if not e or e == '0' or e == '0-0' then
    local ms = string.format('%.0f', t[1] * 1000 + math.floor(t[2] / 1000))
    f['last-generated-id'] = ms .. '-0'
    redis.call('XSETID', KEYS[1], ms .. '-0')
    redis.call('HSET', KEYS[2], 'start', ms .. '-1', 'end', ms .. '-1')
  end
end
local before = tonumber(redis.call('HGET', KEYS[2], 'i')) or 0
local i = math.max(before + 1, t[1] * 1000000 + t[2])
local text = string.format('%.0f', i)
redis.call('HSET', KEYS[2], 'i', text, 'n', ARGV[1] .. '.' .. text .. '.0')
local info_text = redis.pcall('INFO', 'server')
local run = type(info_text) == 'string' and string.match(info_text, 'run_id:(%x+)') or ''
local r = redis.call('HMGET', KEYS[2], 'run', 'end', 'layout', 'lost')
local known, other = tonumber(ARGV[4]), r[1] and r[1] ~= run
if r[3] == 'log' or r[3] == 'indexed' then
  local e = tonumber(r[2]) or 0
  redis.call('HSET', KEYS[2], 'run', run)
  if other then redis.call('HSET', KEYS[2], 'began', r[2]) end
  if known > e or other and known == 0 or tonumber(ARGV[5]) > (tonumber(r[4]) or 0) then redis.call('HSET', KEYS[2], 'lost', r[2]) end
end
local first = f['first-entry'] and f['first-entry'][1] or ''
local last = f['last-entry'] and f['last-entry'][1] or ''
return {'ok', i, lost, f['length'], f['last-generated-id'], first, last, t[1], t[2], redis.call('HGETALL', KEYS[2])}
`

// appendScript is the second command of an append's transaction; the XADDs
// follow it. The first, a RENAME, has moved the stream away, so that the XADDs find nothing
// to add to, and the last, a RENAMENX, brings it back. So nothing is added unless the script
// runs and agrees: the transaction may name it by its hash, and the server may not have it.
//
// If the token is the one that the append builds upon, and the
// stream has given no id above the one before the first to come, it writes
// down that the append is done, which it is at the end of the transaction, and moves the
// stream back.
//
// How it finds out about the last id depends. A call from a script costs as much
// as an XADD or two, so that there are as few as can be.
//
//   - In the stream layout the script adds the first entry itself: XADD refuses
//     what is not above the last id, whether the entry that had it was deleted or not.
//   - If that entry has more fields than a script can pass on, it looks, which
//     makes Redis copy whole entries.
//   - In the log layout, where entries are large and no one else adds any, it
//     sets the last id. XSETID refuses to go below the last entry. Below one that
//     was deleted it does go, if XTRIM did that, or on Redis 7.0.
//
// Keys: stream, meta, producers, held, aborted. Arguments: token, the id before
// the first, whether to return the time, number of meta arguments, number of
// words of the first entry or nothing in the log layout, number of arguments
// about aborted transactions, meta fields and values, id, fields and values of
// the first entry, scores and members of aborted transactions, producer ids and
// states.
var appendScript = newScript(`
local n, why, last = redis.pcall('HGET', KEYS[2], 'n'), nil, nil
local words = tonumber(ARGV[5])
local meta = 6 + ARGV[4]
local first = meta + (words or 0)
local aborted = first + ARGV[6]

local function last_id()
  local r = redis.pcall('XINFO', 'STREAM', KEYS[4])
  for k = 1, #r, 2 do
    if r[k] == 'last-generated-id' then return r[k + 1] end
  end
  return ''
end

-- Text that sorts as ids do.
local function sortable(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  if not ms then return 'none' end
  return string.rep('0', 20 - #ms) .. ms .. string.rep('0', 20 - #seq) .. seq
end

if n == ARGV[1] then
  if not words then
    why = redis.pcall('XSETID', KEYS[4], ARGV[2]).err
  elseif words == 0 then
    if sortable(last_id()) > sortable(ARGV[2]) then why = 'the stream is ahead' end
  else
    local r = redis.pcall('XADD', KEYS[4], 'NOMKSTREAM', unpack(ARGV, meta + 1, first))
    if not r then why = 'the stream is gone' elseif type(r) == 'table' then why = r.err end
  end
  local at
  if not why and aborted > first then
    local r = redis.pcall('ZADD', KEYS[5], unpack(ARGV, first + 1, aborted))
    if type(r) == 'table' then why, at = r.err, KEYS[5] end
  end
  if not why and #ARGV > aborted then
    local r = redis.pcall('HSET', KEYS[3], unpack(ARGV, aborted + 1))
    if type(r) == 'table' then
      why, at = r.err, KEYS[3]
      for k = first + 2, aborted, 2 do redis.call('ZREM', KEYS[5], ARGV[k]) end
    end
  end
  if at then
    why, last = at .. ': ' .. why, ARGV[2]
    if first > meta then redis.call('XDEL', KEYS[4], ARGV[meta + 1]) end
  end
  if not why then
    redis.call('HSET', KEYS[2], unpack(ARGV, 7, meta))
    redis.call('RENAME', KEYS[4], KEYS[1])
    if ARGV[3] == '' then return 1 end
    local t = redis.call('TIME')
    return {'ok', t[1], t[2]}
  end
end
local t = redis.call('TIME')
last = last or last_id()
if type(n) == 'table' then n, why = ARGV[1], KEYS[2] .. ': ' .. n.err end
return {'refused', t[1], t[2], n or '', last, why or ''}
`)

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
const setScript = evenWhenFull + ownFunction + `
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

// trimAbortedScript removes the aborted transactions whose markers are below an
// offset.
//
// Keys: stream, meta, aborted. Arguments: owner, up to which score they go, and from
// which on.
const trimAbortedScript = ownFunction + `
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', ARGV[2])
return {'ok', redis.call('ZREMRANGEBYSCORE', KEYS[3], ARGV[3], '+inf')}
`

// removeAbortedScript removes aborted transactions.
//
// Keys: stream, meta, aborted. Arguments: owner, members.
const removeAbortedScript = ownFunction + `
return {'ok', redis.call('ZREM', KEYS[3], unpack(ARGV, 2))}
`

// lastScript returns the last id that the stream gave. If its sequence is large
// and the clock behind it, the stream goes on in the next millisecond.
//
// Keys: stream, meta. Arguments: owner, which sequence is large.
const lastScript = evenWhenFull + infoFunction + `
local n = redis.call('HGET', KEYS[2], 'n')
if not n then return '' end
local last = info()['last-generated-id']
local ms, seq = string.match(last, '^(%d+)-(%d+)$')
if tonumber(seq) >= tonumber(ARGV[2]) and string.sub(n, 1, #ARGV[1]) == ARGV[1] then
  local t = redis.call('TIME')
  if tonumber(ms) >= t[1] * 1000 + math.floor(t[2] / 1000) and tonumber(ms) < 2 ^ 53 then
    redis.call('XSETID', KEYS[1], string.format('%.0f-0', ms + 1))
  end
end
return last
`

// markScript writes something, so that WAIT has something to wait for, and
// returns the counter of the last append.
//
// Keys: stream, meta, mark. Arguments: owner.
const markScript = ownFunction + `
redis.call('SET', KEYS[3], n, 'EX', 60)
return {'ok', string.sub(n, #ARGV[1] + 1)}
`
