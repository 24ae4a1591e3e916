package redis

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"muster/internal/store"
)

// checked checks a log part by part.
func (b *bed) checked(limits checkLimits) (all store.Checked, parts int) {
	b.Helper()
	for {
		c, err := b.store.checkWithin(b.ctx, b.at, all.Next, limits)
		must(b.T, err)
		if c.Unable != "" {
			b.Fatalf("a log of layout %q is not checked", c.Layout)
		}
		parts++
		all.Wrong = append(all.Wrong, c.Wrong...)
		all.Records, all.Deleted = all.Records+c.Records, all.Deleted+c.Deleted
		all.Start, all.End, all.Next = c.Start, c.End, c.Next
		if c.Next >= c.End {
			return all, parts
		}
	}
}

// wantSound checks a log.
func (b *bed) wantSound() {
	b.Helper()
	for _, limits := range []checkLimits{checkPart, {1, 1, 1}} {
		if c, _ := b.checked(limits); len(c.Wrong) > 0 {
			b.Errorf("the log is not sound:\n%s", strings.Join(c.Wrong, "\n"))
		}
	}
}

// indexed makes a log with records of its leader, of Redis clients, and a deleted one: 10 appends of two
// records, three entries of others, 20 appends of one.
func (b *bed) indexed() {
	b.Helper()
	l := b.open(1)
	for i := range 10 {
		b.append(l, b.valued(fmt.Sprint(i), "second"))
	}
	for range 3 {
		b.do("XADD", b.keys().stream, "*", "value", "of others")
	}
	for range 20 {
		b.append(l, b.valued("v"))
	}
	b.do("XDEL", b.keys().stream, b.ids()[4])
}

// ids lists the ids of the data.
func (b *bed) ids() (out []string) { return b.idsOf(b.keys().stream) }

func (b *bed) idsOf(key string) (out []string) {
	b.Helper()
	found, err := b.client.Do(b.ctx, b.client.B().Xrange().Key(key).Start("-").End("+").Build()).AsXRange()
	must(b.T, err)
	for _, e := range found {
		out = append(out, e.ID)
	}
	return out
}

func TestCheckCountsWhatIsThereAndWhatWasDeleted(t *testing.T) {
	b := newBed(t, inIndex)
	b.indexed()
	for _, limits := range []checkLimits{checkPart, {1, 1, 1}} {
		c, _ := b.checked(limits)
		if c.Records != 42 || c.Deleted != 1 || c.End != 43 || len(c.Wrong) > 0 {
			t.Errorf("%+v", c)
		}
	}
	b.do("XTRIM", b.keys().stream, "MAXLEN", "30")
	if c, _ := b.checked(checkPart); c.Records != 30 || c.Deleted != 13 || len(c.Wrong) > 0 {
		t.Errorf("after XTRIM: %+v", c)
	}
	must(t, b.log.Trim(b.ctx, 21)) // Between records that were adopted together.
	if c, _ := b.checked(checkPart); c.Start != 21 || c.Records != 22 || c.Deleted != 0 || len(c.Wrong) > 0 {
		t.Errorf("after DeleteRecords: %+v", c)
	}
	must(t, b.log.Trim(b.ctx, 25))
	if c, _ := b.checked(checkPart); c.Start != 25 || c.Records != 18 || len(c.Wrong) > 0 {
		t.Errorf("after DeleteRecords: %+v", c)
	}
	must(t, b.log.Trim(b.ctx, 43))
	if c, _ := b.checked(checkPart); c.Records != 0 || c.Deleted != 0 || len(c.Wrong) > 0 {
		t.Errorf("emptied: %+v", c)
	}
}

func TestCheckTellsWhatIsWrongAtBothLooks(t *testing.T) {
	got := inBoth([]oddity{{"a", "at first"}, {"b", "b"}}, []oddity{{"c", "c"}, {"a", "at last"}})
	if len(got) != 1 || got[0] != "at last" {
		t.Errorf("%q", got)
	}
}

// A log of more than a window is checked in parts that hang together.
func TestCheckGoesOnWhereThePartBeforeEnded(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	for range 3*window + 5 {
		b.append(l, b.valued("a", "b"))
	}
	c, parts := b.checked(checkLimits{1, math.MaxInt64, math.MaxInt64})
	if parts != 4 || c.Records != 2*(3*window+5) || len(c.Wrong) > 0 {
		t.Errorf("%d parts: %+v", parts, c)
	}
}

// What someone may do to the keys of a log, for each of the invariants.
func TestCheckFindsWhatIsBroken(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(b *bed, k keys)
		want string
	}{
		"1: the index ends elsewhere":      {func(b *bed, k keys) { b.do("XSETID", k.index, "44-0") }, "the last id of"},
		"1: the end of the log is another": {func(b *bed, k keys) { b.do("HSET", k.meta, "end", "41") }, "and the log ends at offset 41"},
		"1: the last entry is gone":        {func(b *bed, k keys) { b.do("XDEL", k.index, "43-0") }, "has no entry that ends at offset 43"},
		"1: the index is gone":             {func(b *bed, k keys) { b.do("DEL", k.index) }, "is gone: the offsets"},
		"2: an entry is not readable":      {func(b *bed, k keys) { b.rewriteIndex(k, 20, func(string) string { return "nonsense" }) }, "entry 20-0 of the index"},
		"2: ids do not grow": {func(b *bed, k keys) {
			other := b.indexBody(k, 18)
			b.rewriteIndex(k, 20, func(string) string { return other })
		}, "follow"},
		"2: an id is above the last": {func(b *bed, k keys) {
			_, rest, _ := strings.Cut(b.do("HGET", k.meta, "s"), " ")
			b.do("HSET", k.meta, "s", "5-0 "+rest)
		}, "which covers ids up to 5-0"},
		"2: what scripts read is another id": {func(b *bed, k keys) {
			b.rewriteIndex(k, 20, func(s string) string { return strings.Replace(s, "\n", "1\n", 1) })
		}, "and says"},
		"3: an entry of the index is gone": {func(b *bed, k keys) { b.do("XDEL", k.index, "20-0") }, "are not in the index, and Kafka clients do not see them: 2,"},
		"3: the index covers what no one adopted": {func(b *bed, k keys) {
			id := b.do("XADD", k.stream, "*", "value", "v")
			_, rest, _ := strings.Cut(b.do("HGET", k.meta, "s"), " ")
			b.do("HSET", k.meta, "s", id+" "+rest)
		}, "are not in the index, and Kafka clients do not see them: 1,"},
		"4: entries overlap": {func(b *bed, k keys) {
			body := b.indexBody(k, 20) // It has two records.
			b.rewriteIndex(k, 30, func(string) string { return body })
		}, "the entry of the index that ends at offset 30 begins at 28"},
		"5: another number of entries": {func(b *bed, k keys) {
			b.do("HSET", k.meta, "s", strings.Replace(b.do("HGET", k.meta, "s"), " 43 ", " 44 ", 1))
		}, "covered 43 records so far"},
		"5: an entry counts wrongly": {func(b *bed, k keys) {
			b.rewriteIndex(k, 20, func(s string) string { return strings.Replace(s, " 20 ", " 19 ", 1) })
		}, "is said to be the last of 19"},
		"5: an entry counts too much": {func(b *bed, k keys) {
			b.rewriteIndex(k, 20, func(s string) string { return strings.Replace(s, " 20 ", " 21 ", 1) })
		}, "is said to be the last of 21"},
		"5: the largest timestamp goes back": {func(b *bed, k keys) {
			b.rewriteIndex(k, 20, func(s string) string { return "1" + s[strings.IndexByte(s, ' '):] })
		}, "up to offset 20 is 1"},
		"5: the stream went back": {func(b *bed, k keys) {
			b.do("DEL", k.stream)
			b.do("XADD", k.stream, "5-0", "value", "v")
		}, "covers ids up to"},
		"5: the state is not readable":        {func(b *bed, k keys) { b.do("HSET", k.meta, "s", "none") }, "cannot be read"},
		"5: the start is above the end":       {func(b *bed, k keys) { b.do("HSET", k.meta, "start", "44") }, "starts at offset 44"},
		"5: a token of no one":                {func(b *bed, k keys) { b.do("HSET", k.meta, "n", "me") }, "who may append is"},
		"6: data is gone that no one deleted": {func(b *bed, k keys) { b.lose(k, 30) }, "records 30 to 30 are gone"},
		"6: the data is gone":                 {func(b *bed, k keys) { b.do("DEL", k.stream) }, "and the records with it"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, inIndex)
			b.indexed()
			b.wantSound()
			c.do(b, b.keys())
			for _, limits := range []checkLimits{checkPart, {1, 1, 1}} {
				got, _ := b.checked(limits)
				if !strings.Contains(strings.Join(got.Wrong, "\n"), c.want) {
					t.Errorf("%q is not in %q", c.want, got.Wrong)
				}
			}
		})
	}
}

// indexBody reads an entry of the index.
func (b *bed) indexBody(k keys, next int) string {
	b.Helper()
	found, err := b.client.Do(b.ctx, b.client.B().Xrange().Key(k.index).Start(fmt.Sprint(next)).End(fmt.Sprint(next)).Build()).AsXRange()
	must(b.T, err)
	return found[0].FieldValues["b"]
}

// rewriteIndex makes the index anew with one entry changed.
func (b *bed) rewriteIndex(k keys, next int, change func(string) string) {
	b.Helper()
	b.rewrite(k.index, func(id string, fields []string) []string {
		if id == fmt.Sprint(next, "-0") {
			fields[1] = change(fields[1])
		}
		return fields
	})
}

// lose makes the data anew without an entry, as if it had never been deleted.
func (b *bed) lose(k keys, n int) {
	b.Helper()
	gone := b.ids()[n-1] // One was deleted before.
	b.rewrite(k.stream, func(id string, fields []string) []string {
		if id == gone {
			return nil
		}
		return fields
	})
}

// rewrite makes a stream anew.
func (b *bed) rewrite(key string, change func(id string, fields []string) []string) {
	b.Helper()
	info, err := b.client.Do(b.ctx, b.client.B().XinfoStream().Key(key).Build()).AsMap()
	must(b.T, err)
	text := func(field string) string {
		m := info[field]
		s, _ := m.ToString()
		return s
	}
	found, err := b.client.Do(b.ctx, b.client.B().Xrange().Key(key).Start("-").End("+").Build()).ToArray()
	must(b.T, err)
	b.do("DEL", key)
	for i := range found {
		id, fields, err := entryParts(&found[i])
		must(b.T, err)
		var words []string
		for j := range fields {
			word, _ := fields[j].ToString()
			words = append(words, word)
		}
		if words = change(id.String(), words); words != nil {
			b.do(append([]string{"XADD", key, id.String()}, words...)...)
		}
	}
	b.do("XSETID", key, text("last-generated-id"), "ENTRIESADDED", "1000", "MAXDELETEDID", text("max-deleted-entry-id"))
}

// A log that is written, adopted, trimmed, compacted and taken over meanwhile is sound at each look.
func TestCheckOfALogThatIsWritten(t *testing.T) {
	b := newBed(t, inIndex)
	l := b.open(1)
	done := make(chan struct{})
	fails := make(chan error, 1)
	go func() {
		defer close(done)
		fails <- b.busy(l)
	}()
	for looks := 0; ; looks++ {
		if c, _ := b.checked(checkPart); len(c.Wrong) > 0 {
			t.Errorf("look %d: %q", looks, c.Wrong)
		}
		if c, _ := b.checked(checkLimits{1, 1, 1}); len(c.Wrong) > 0 {
			t.Errorf("look %d, in parts: %q", looks, c.Wrong)
		}
		select {
		case <-done:
			must(t, <-fails)
			b.wantSound()
			return
		default:
		}
	}
}

// busy does to a log what happens to one.
func (b *bed) busy(l store.Pipelined) error {
	ctx, key := context.Background(), b.keys().stream
	for i := range 400 {
		if _, err := l.Append(ctx, b.valued(fmt.Sprint(i), "second", "third")); err != nil {
			return err
		}
		if i%3 == 0 {
			if _, err := b.try("XADD", key, "*", "value", "of others"); err != nil {
				return err
			}
		}
		if i%7 == 0 {
			if _, err := l.(store.Refresher).Refresh(ctx); err != nil {
				return err
			}
		}
		_, end := l.Bounds()
		var err error
		switch {
		case i%50 == 10:
			err = l.Trim(ctx, end-40)
		case i%50 == 20:
			err = l.Retain(ctx, store.Retention{MaxAge: -1, MaxBytes: 3000, NextOffset: end, Now: time.Now()})
		case i%50 == 30:
			err = l.Compact(ctx, store.Compaction{NextOffset: end - 3, Now: time.Now()})
		case i%50 == 40:
			var again store.Log
			if again, err = b.store.Open(ctx, b.at, int32(2+i/50), b.cfg); err == nil {
				l = again.(store.Pipelined)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func TestOtherLayoutsAreNotChecked(t *testing.T) {
	for why, cfg := range map[string]store.LogConfig{"the id of its entry": inStreams, "an entry is a batch": inBatches} {
		b := newBed(t, cfg)
		if c, err := b.store.Check(b.ctx, b.at, 0); err != nil || !strings.Contains(c.Unable, "no log yet") || c.Layout != "" {
			t.Errorf("before there is a log: %+v, %v", c, err)
		}
		b.append(b.open(1), b.valued("v"))
		if c, err := b.store.Check(b.ctx, b.at, 0); err != nil || !strings.Contains(c.Unable, why) || c.Layout != cfg.Layout {
			t.Errorf("%+v, %v", c, err)
		}
	}
}
