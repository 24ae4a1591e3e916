package redis

import (
	"context"
	"fmt"

	"muster/internal/store"
)

// Check looks whether a log of the indexed layout is what it should be, as of a moment in which nothing is
// appended to it, and returns what it found wrong:
//
//  1. the last id of the index is the log end offset;
//  2. ids grow over the whole index, none above the last that it covers;
//  3. every entry of the data up to that one, from the log start offset on, is in the index once;
//  4. each entry of the index begins where the one before ended, or later;
//  5. what the index says of the entries so far is their number;
//  6. what is in the data is what the index says was acknowledged, or was deleted: nothing
//     is in a batch that it has no place in.
func (s *Store) Check(ctx context.Context, tp store.TopicPartition) ([]string, error) {
	k := logKeys(s.prefix, tp)
	meta, err := s.do(ctx, s.client.B().Hgetall().Key(k.meta).Build()).AsStrMap()
	if err != nil {
		return nil, attempt("check "+k.stream, err)
	}
	if meta["layout"] != string(store.LayoutIndexed) {
		return nil, fmt.Errorf("%w: %s has layout %q", store.ErrStorage, k.stream, meta["layout"])
	}
	c := &indexCheck{store: s, keys: k}
	if c.start, err = number(meta, "start"); err != nil {
		return nil, err
	}
	if c.end, err = number(meta, "end"); err != nil {
		return nil, err
	}
	if c.top, c.state, err = parseIndexState(meta["s"]); err != nil {
		return nil, err
	}
	if err := c.index(ctx); err != nil {
		return nil, err
	}
	return c.wrong, c.data(ctx)
}

// indexCheck is a check under way.
type indexCheck struct {
	store      *Store
	keys       keys
	start, end int64
	top        entryID
	state      indexState
	entries    []indexEntry
	wrong      []string
}

// maxWrong is how many things a check tells of.
const maxWrong = 100

func (c *indexCheck) found(format string, args ...any) {
	if len(c.wrong) < maxWrong {
		c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
	}
}

// index looks at the entries of the index.
func (c *indexCheck) index(ctx context.Context) error {
	b := c.store.client.B()
	var last entryID // of the data
	for from, before := "-", c.start; ; {
		found, err := c.store.do(ctx, b.Xrange().Key(c.keys.index).Start(from).End("+").Count(loadEntries).Build()).ToArray()
		if err != nil {
			return attempt("check "+c.keys.index, err)
		}
		for i := range found {
			e, err := decodeIndex(&found[i])
			if err != nil {
				c.found("%v", err)
				continue
			}
			if e.base < before && before != c.start {
				c.found("the entry of the index that ends at offset %d begins at %d, and the one before it ends at %d", e.next, e.base, before)
			}
			for _, r := range e.runs {
				if !last.less(r.first) || c.top.less(r.last()) {
					c.found("ids %s to %s of the offsets %d to %d follow %s, and the last that the index covers is %s", r.first, r.last(), e.base, e.next-1, last, c.top)
				}
				last = r.last()
			}
			before = e.next
			c.entries = append(c.entries, e)
			from = "(" + decimal(e.next) + "-0"
		}
		if len(found) < loadEntries {
			break
		}
	}
	if n := len(c.entries); n > 0 {
		if e := &c.entries[n-1]; e.next > c.end || e.added > c.state.added {
			c.found("the index ends at offset %d after %d entries, the log at %d after %d", e.next, e.added, c.end, c.state.added)
		}
	}
	info, err := c.store.do(ctx, b.XinfoStream().Key(c.keys.index).Build()).AsMap()
	if err != nil {
		return attempt("check "+c.keys.index, err)
	}
	m := info["last-generated-id"]
	if text, _ := m.ToString(); text != decimal(c.end)+"-0" {
		c.found("the last id of the index is %s, and the log ends at %d", text, c.end)
	}
	return nil
}

// data looks at the entries of the data.
func (c *indexCheck) data(ctx context.Context) error {
	b, w := c.store.client.B(), walker{entries: c.entries}
	for from := "-"; ; {
		found, err := c.store.do(ctx, b.Xrange().Key(c.keys.stream).Start(from).End(c.top.String()).Count(loadEntries).Build()).ToArray()
		if err != nil {
			return attempt("check "+c.keys.stream, err)
		}
		for i := range found {
			id, _, err := entryParts(&found[i])
			if err != nil {
				return err
			}
			if _, ok := w.at(id); !ok {
				c.found("entry %s is not in the index", id)
			}
			from = "(" + id.String()
		}
		if len(found) < loadEntries {
			return nil
		}
	}
}
