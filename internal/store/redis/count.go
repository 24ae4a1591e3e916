package redis

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"github.com/redis/rueidis"

	"muster/internal/store"
)

// In layout stream offsets have gaps, since they stand for ids of entries, so
// that the difference of two offsets says nothing about how many records lie
// between them. Redis has no command that counts entries of a range: they have to
// be read, inside Redis, which holds up all others meanwhile. It is therefore
// done in slices, and only up to a limit.

// How many entries are read for a count.
const (
	countFirst = 64      // in a first look, which is the only one at a group that keeps up
	countSlice = 1000    // in one further look, at 2 to 5 µs each
	countBytes = 1 << 18 // in any look: large entries end it early

	// CountLimit is how many records of a partition are counted.
	CountLimit = 100_000
	// countTotal is how many entries are read for all counts of one call, beyond
	// the first looks.
	countTotal = 2 * CountLimit
	// countParallel is how many first looks are under way at a time.
	countParallel = 16
)

// Count is a number of records, or at least so many.
type Count struct {
	Records int64
	AtLeast bool
	Known   bool // false if the log is in layout log, whose offsets have no gaps
}

// Place is an offset in a partition that is in layout stream, as far as the
// topic's settings say.
type Place struct {
	store.TopicPartition
	Offset       int64
	SequenceBits int
}

// countScript takes the stream and the meta hash, and: the id to count after, the
// bits of a sequence, how many entries and bytes it may read. It returns how many
// entries there are, and the id that it got to if there may be more. It returns
// nothing if the log is in another layout, and the bits if they are others.
var countScript = rueidis.NewLuaScript(`
local key, after = KEYS[1], ARGV[1]
local budget, bytes = tonumber(ARGV[3]), tonumber(ARGV[4])
local meta = redis.call('HMGET', KEYS[2], 'layout', 'bits')
if meta[1] and meta[1] ~= 'stream' then return false end
if meta[2] and meta[2] ~= ARGV[2] then return {'bits', meta[2]} end

-- Whoever stands before the first entry has them all to read.
local first = redis.call('XRANGE', key, '-', '+', 'COUNT', 1)
if #first == 0 then return {'0', ''} end
local function numbers(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end
local ms, seq = numbers(after)
local first_ms, first_seq = numbers(first[1][1])
if ms < first_ms or ms == first_ms and seq < first_seq then
  return {tostring(redis.call('XLEN', key)), ''}
end

-- An entry whose sequence does not fit into the bits has no offset, and Kafka
-- clients do not get to see it.
local n, read, chunk, width = 0, 0, 8, 2 ^ tonumber(ARGV[2])
while true do
  local want = math.min(chunk, budget - read)
  local entries = redis.call('XRANGE', key, '(' .. after, '+', 'COUNT', want)
  read = read + #entries
  for _, entry in ipairs(entries) do
    if tonumber(string.match(entry[1], '%d+$')) < width then n = n + 1 end
  end
  if #entries < want then return {tostring(n), ''} end
  after = entries[#entries][1]
  local size = 1
  for _, text in ipairs(entries[#entries][2]) do size = size + #text end
  bytes = bytes - size * #entries
  if read >= budget or bytes <= 0 then return {tostring(n), after} end
  chunk = math.max(1, math.min(128, math.floor(65536 / size)))
end`)

// counting is a count that is under way.
type counting struct {
	Place
	keys  []string
	bits  int
	after string // the id that it has got to, nothing if it is done
	count Count
}

// CountFrom counts the records at or after places. What cannot be counted in the
// time that ctx leaves is counted in part; the error says that Redis could not
// be asked at all.
func CountFrom(ctx context.Context, client rueidis.Client, prefix string, places []Place) ([]Count, error) {
	all := make([]counting, len(places))
	for i, p := range places {
		k := logKeys(prefix, p.TopicPartition)
		all[i] = counting{Place: p, keys: []string{k.stream, k.meta}, bits: p.SequenceBits}
		if all[i].bits == 0 {
			all[i].bits = defaultBits
		}
		all[i].start()
	}
	errs := make([]error, len(all))
	var running sync.WaitGroup
	next := make(chan int)
	for range min(countParallel, len(all)) {
		running.Go(func() {
			for i := range next {
				errs[i] = all[i].look(ctx, client, countFirst)
			}
		})
	}
	for i := range all {
		next <- i
	}
	close(next)
	running.Wait()
	for i, err := range errs {
		if err != nil {
			p := all[i].Place
			return nil, attempt(fmt.Sprintf("counting the records of %s-%d", p.Topic, p.Partition), err)
		}
	}
	countOn(ctx, client, all)
	counts := make([]Count, len(all))
	for i := range all {
		counts[i] = all[i].count
		counts[i].AtLeast = all[i].after != ""
	}
	return counts, nil
}

// countOn goes on with what the first looks did not finish, one slice after the
// other, lest Redis do nothing else.
func countOn(ctx context.Context, client rueidis.Client, all []counting) {
	left := int64(countTotal)
	for i := range all {
		c := &all[i]
		for c.after != "" && c.count.Records < CountLimit && left > 0 {
			slice := min(countSlice, CountLimit-c.count.Records, left)
			if c.look(ctx, client, slice) != nil {
				return // What is known is true, as far as it goes.
			}
			left -= slice
		}
	}
}

// start goes to the place: to the id before the offset.
func (c *counting) start() {
	c.count = Count{}
	c.after = "0-0"
	if c.Offset > 0 {
		c.after = numbering{bits: uint(c.bits)}.id(c.Offset - 1).String()
	}
}

// look counts some entries more.
func (c *counting) look(ctx context.Context, client rueidis.Client, budget int64) error {
	reply, err := countScript.Exec(ctx, client, c.keys,
		[]string{c.after, strconv.Itoa(c.bits), strconv.FormatInt(budget, 10), strconv.Itoa(countBytes)}).AsStrSlice()
	switch {
	case rueidis.IsRedisNil(err):
		c.after = ""
		return nil
	case err != nil:
		return err
	}
	if bits, err := strconv.Atoi(reply[1]); reply[0] == "bits" && err == nil && bits > 0 && bits <= maxBits && bits != c.bits {
		c.bits = bits
		c.start()
		return c.look(ctx, client, budget)
	}
	n, err := strconv.ParseInt(reply[0], 10, 64)
	if err != nil {
		return err
	}
	c.count.Records, c.count.Known, c.after = c.count.Records+n, true, reply[1]
	return nil
}
