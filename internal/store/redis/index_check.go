package redis

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"muster/internal/store"
)

// checkLimits bound what one call of Check looks at.
type checkLimits struct {
	windows int   // of the index
	entries int64 // of the data
	bytes   int64
}

var checkPart = checkLimits{128, 20_000, 16 << 20}

// Check implements store.Checker. It looks whether a log of the indexed layout is what it should be:
//
//  1. the last id of the index is the log end offset, and so is that of its last entry;
//  2. ids grow over the whole index, none above the last that it covers;
//  3. every entry of the data up to that one is in the index;
//  4. each entry of the index begins where the one before ended, or later;
//  5. what the log's state says of the last id, and how many entries there were so far, is what the
//     index and the data say;
//  6. what is in the index is in the data, or was deleted: Redis keeps the largest id that was.
//
// The log may be written meanwhile. State, index and data are read one after the other: what is appended
// after the state was read is left out, and what is removed goes from the data first, or from all at once, so that
// it is not missed. A leader that opens the log may do more. What seems wrong is therefore looked
// at again, and told if it is so both times.
func (s *Store) Check(ctx context.Context, tp store.TopicPartition, from int64) (store.Checked, error) {
	return s.checkWithin(ctx, tp, from, checkPart)
}

func (s *Store) checkWithin(ctx context.Context, tp store.TopicPartition, from int64, limits checkLimits) (store.Checked, error) {
	if err := s.check(); err != nil {
		return store.Checked{}, err
	}
	first, err := s.checkOnce(ctx, tp, from, limits)
	if err != nil || len(first.wrong) == 0 {
		return first.Checked, err
	}
	again, err := s.checkOnce(ctx, tp, from, limits)
	if err != nil {
		return again.Checked, err
	}
	again.Wrong = inBoth(first.wrong, again.wrong)
	return again.Checked, nil
}

// inBoth returns what was wrong at a first look and is at a second, as the second has it.
func inBoth(first, second []oddity) (texts []string) {
	for _, w := range second {
		if slices.ContainsFunc(first, func(f oddity) bool { return f.place == w.place }) {
			texts = append(texts, w.text)
		}
	}
	return texts
}

// indexCheck is a check under way.
type indexCheck struct {
	store.Checked
	store   *Store
	keys    keys
	limits  checkLimits
	from    int64
	top     entryID
	state   indexState
	lastID  entryID // of the data, as far as the index was looked at
	before  *indexEntry
	missing []missing
	wrong   []oddity
	bytes   int64
	average int64 // bytes of an entry of the data
}

// oddity is something wrong. Its place is the same when it is found again.
type oddity struct{ place, text string }

// missing is records that the index has and the data does not: ids that follow each other.
type missing struct {
	idRun
	offset int64
}

// maxWrong is how many things a check of a part tells of.
const maxWrong = 20

func (c *indexCheck) found(place any, format string, args ...any) {
	if len(c.wrong) < maxWrong {
		c.wrong = append(c.wrong, oddity{fmt.Sprint(format, place), fmt.Sprintf(format, args...)})
	}
}

func (s *Store) checkOnce(ctx context.Context, tp store.TopicPartition, from int64, limits checkLimits) (*indexCheck, error) {
	c := &indexCheck{store: s, keys: logKeys(s.prefix, tp), limits: limits, from: from, average: 1 << 10}
	told, err := c.look(ctx)
	if err != nil {
		return c, err
	}
	c.Layout = store.Layout(told.meta["layout"])
	if c.Layout != store.LayoutIndexed {
		c.Unable = whyUnable(c.Layout)
		return c, nil
	}
	if !c.readState(told) {
		c.Next = c.End
		return c, nil
	}
	if from <= c.Start {
		c.bounds(told)
	}
	if err := c.standBefore(ctx); err != nil {
		return c, err
	}
	if err := c.index(ctx); err != nil {
		return c, err
	}
	return c, c.account(ctx)
}

// whyUnable says what stands for a check in other layouts.
func whyUnable(layout store.Layout) string {
	switch layout {
	case "":
		return "it has no log yet; the broker makes one when it opens the partition"
	case store.LayoutStream:
		return "in layout stream the offset of a record is the id of its entry, and there is no index that could say otherwise"
	case store.LayoutLog:
		return "in layout log an entry is a batch as the producer sent it, with its offsets and a checksum that consumers verify, and there is no index"
	}
	return fmt.Sprintf("it has layout %s", layout)
}

// looked is what the keys of a log hold at a moment.
type looked struct {
	meta        map[string]string
	data, index map[string]string // what XINFO STREAM says, nil if there is no stream
}

// lookScript reads what is known of a log at one moment.
//
// Keys: stream, meta, index.
const lookScript = `
local function info(key)
  local r, f = redis.pcall('XINFO', 'STREAM', key), {}
  if r.err then return false end
  for k = 1, #r, 2 do
    local v = r[k + 1]
    if type(v) == 'table' then v = v[1] or '' end
    f[k], f[k + 1] = r[k], v or ''
  end
  return f
end
return {redis.call('HGETALL', KEYS[2]), info(KEYS[1]), info(KEYS[3])}
`

func (c *indexCheck) look(ctx context.Context) (looked, error) {
	k := c.keys
	r, err := replies(c.store.do(ctx, c.store.eval(lookScript, []string{k.stream, k.meta, k.index}, nil)))
	if err != nil {
		return looked{}, attempt("check "+k.stream, err)
	}
	if len(r) != 3 {
		return looked{}, fmt.Errorf("%w: check %s: %d values", store.ErrStorage, k.stream, len(r))
	}
	told := looked{meta: hash(r[0].list())}
	for i, to := range []*map[string]string{&told.data, &told.index} {
		if list := r[i+1].list(); len(list) > 0 {
			*to = hash(list)
		}
	}
	return told, nil
}

// readState reads the state of the log. Without it nothing else can be looked at.
func (c *indexCheck) readState(told looked) bool {
	var err error
	for field, to := range map[string]*int64{"start": &c.Start, "end": &c.End} {
		if _, ok := told.meta[field]; !ok {
			err = fmt.Errorf("%w: field %s is missing", store.ErrCorrupt, field)
		} else if *to, err = number(told.meta, field); err == nil && *to < 0 {
			err = fmt.Errorf("%w: field %s is %d", store.ErrCorrupt, field, *to)
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		c.top, c.state, err = parseIndexState(told.meta["s"])
	}
	if err != nil {
		c.found("", "what %s says of the log cannot be read: %v", c.keys.meta, err)
	}
	return err == nil
}

// bounds looks whether the ends of index and data are where the state says.
func (c *indexCheck) bounds(told looked) {
	if c.Start > c.End {
		c.found("", "the log starts at offset %d, and ends at %d", c.Start, c.End)
	}
	if _, err := parseToken(told.meta["n"]); err != nil {
		c.found("", "who may append is %q in %s, which no broker has written", told.meta["n"], c.keys.meta)
	}
	if told.index == nil {
		c.found("", "%s is gone: the offsets of the records are lost, and their leader gives them new ones when it opens the log again", c.keys.index)
	} else if last := told.index["last-generated-id"]; last != decimal(c.End)+"-0" {
		c.found("", "the last id of %s is %s, and the log ends at offset %d", c.keys.index, last, c.End)
	}
	if told.data == nil {
		c.found("", "%s is gone, and the records with it", c.keys.stream)
	} else if last, err := parseID(told.data["last-generated-id"]); err != nil || last.less(c.top) {
		c.found("", "the last id of %s is %s, and the index covers ids up to %s", c.keys.stream, last, c.top)
	}
}

// standBefore finds the entry of the index before those that are to be looked at, and the last id before them.
func (c *indexCheck) standBefore(ctx context.Context) error {
	for at := c.from; at > c.Start; {
		found, err := c.store.do(ctx, indexBack(c.store.client, c.keys, at)).ToArray()
		if err != nil {
			return attempt("check "+c.keys.index, err)
		}
		at = 0
		for i := range found {
			id, _, _ := entryParts(&found[i])
			at = int64(id.ms) - 1
			e, err := decodeIndex(&found[i])
			if err != nil {
				continue // Who looked at that part was told.
			}
			if c.before == nil {
				c.before = &e
			}
			if n := len(e.runs); n > 0 {
				c.lastID = e.runs[n-1].last()
				return nil
			}
		}
	}
	return nil
}

// index looks at entries of the index, window by window, and at their data.
func (c *indexCheck) index(ctx context.Context) error {
	c.Next = max(c.from, c.Start)
	for windows := 0; windows < c.limits.windows && c.Records < c.limits.entries && c.bytes < c.limits.bytes; windows++ {
		cmd := c.store.client.B().Xrange().Key(c.keys.index).Start(decimal(c.Next + 1)).End(decimal(c.End)).Count(window).Build()
		found, err := c.store.do(ctx, cmd).ToArray()
		if err != nil {
			return attempt("check "+c.keys.index, err)
		}
		after := c.lastID
		entries, used := c.decode(found)
		to, last := c.top, used < window && used == len(found)
		if !last && c.lastID.less(to) {
			to = c.lastID
		}
		if err := c.data(ctx, entries, after, to); err != nil {
			return err
		}
		if last {
			c.last()
			c.Next = c.End
			return nil
		}
		id, _, _ := entryParts(&found[used-1])
		c.Next = int64(id.ms)
	}
	return nil
}

// decode reads entries of the index, and looks whether each goes on where the one before ended. It
// stops when they have as many records as a part may have, and returns how many it has used.
func (c *indexCheck) decode(found []rueidis.RedisMessage) (entries []indexEntry, used int) {
	records := c.Records
	for i := range found {
		if i > 0 && records >= c.limits.entries {
			break
		}
		used++
		e, err := decodeIndex(&found[i])
		if err != nil {
			c.found(err, "%v", err)
			continue
		}
		if p := c.before; p != nil {
			switch {
			case e.base < p.next:
				c.found(e.next, "the entry of the index that ends at offset %d begins at %d, and the one before it ends at %d", e.next, e.base, p.next)
			case e.added-e.records() < p.added || e.base == p.next && e.added-e.records() != p.added:
				c.found(e.next, "the entry of the index that ends at offset %d has %d records and is said to be the last of %d; the one before it of %d", e.next, e.records(), e.added, p.added)
			case e.maxTimestamp < p.maxTimestamp:
				c.found(e.next, "the largest timestamp up to offset %d is %d in the index, and before that it was %d", e.next, e.maxTimestamp, p.maxTimestamp)
			}
		}
		c.before = &e
		c.ids(&e, &found[i])
		entries, records = append(entries, e), records+e.records()
	}
	return entries, used
}

// ids looks whether the ids of an entry of the index follow those of the entries before.
func (c *indexCheck) ids(e *indexEntry, m *rueidis.RedisMessage) {
	for _, r := range e.runs {
		if !c.lastID.less(r.first) || c.top.less(r.last()) {
			c.found(r.first, "ids %s to %s of offsets %d to %d follow %s in the index, which covers ids up to %s", r.first, r.last(), e.base, e.next-1, c.lastID, c.top)
		}
		if c.lastID.less(r.last()) {
			c.lastID = r.last()
		}
	}
	first := "-"
	if len(e.runs) > 0 {
		first = e.runs[0].first.String()
	}
	_, fields, _ := entryParts(m)
	text, _ := fields[1].ToString() // It was read before.
	if head, _, _ := strings.Cut(text, "\n"); !strings.HasSuffix(head, " "+first) {
		c.found(e.next, "the entry of the index that ends at offset %d begins with id %s, and says %q", e.next, first, head)
	}
}

// last looks at the last entry of the index. It goes only with all before it.
func (c *indexCheck) last() {
	switch e := c.before; {
	case c.Start >= c.End:
	case e == nil || e.next != c.End:
		c.found("", "%s has no entry that ends at offset %d, where the log does", c.keys.index, c.End)
	case e.added != c.state.added:
		c.found("", "the index has covered %d records so far, and %s says %d", e.added, c.keys.meta, c.state.added)
	}
}

// data looks at the entries of the data that some entries of the index stand for, and at all others
// after an id and up to another.
func (c *indexCheck) data(ctx context.Context, entries []indexEntry, after, to entryID) error {
	m := newMerge(c, entries)
	for {
		count := entriesIn(1<<20, c.average)
		cmd := c.store.client.B().Xrange().Key(c.keys.stream).Start("(" + after.String()).End(to.String()).Count(count).Build()
		found, err := c.store.do(ctx, cmd).ToArray()
		if err != nil {
			return attempt("check "+c.keys.stream, err)
		}
		bytes := int64(0)
		for i := range found {
			id, fields, err := entryParts(&found[i])
			if err != nil {
				return err
			}
			for j := range fields {
				text, _ := fields[j].ToString()
				bytes += int64(len(text))
			}
			m.take(id)
			after = id
		}
		c.bytes += bytes
		if int64(len(found)) < count {
			m.end()
			return nil
		}
		c.average = max(bytes/int64(len(found)), 1)
	}
}

// account says of records that are missing whether they were deleted: an entry that is not the first
// goes by XDEL, of which Redis keeps the largest id.
func (c *indexCheck) account(ctx context.Context) error {
	if len(c.missing) == 0 {
		return nil
	}
	told, err := c.look(ctx)
	if err != nil {
		return err
	}
	first, err := parseID(told.data["first-entry"])
	known := err == nil
	deleted, err := parseID(told.data["max-deleted-entry-id"])
	known = known && err == nil
	for _, m := range c.missing {
		from := m.first
		if !deleted.less(from) {
			from = deleted.after()
		}
		if known && first.less(from) && !m.last().less(from) {
			n := int64(m.last().seq-from.seq) + 1
			at := m.offset + m.count - n
			c.found(m.last(), "records %d to %d are gone: ids %s to %s are in the index, not in %s, and no entry above %s was deleted", at, at+n-1, from, m.last(), c.keys.stream, deleted)
			m.count -= n
		}
		c.Deleted += m.count
	}
	return nil
}
