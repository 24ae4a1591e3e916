package store

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Cleaned is how far compaction has come through a log, and when: the passes
// that went further than those before them, oldest first. An engine keeps it
// with the log. If it is lost, the log is compacted again and tombstones stay
// for longer, which does no harm.
//
// delete.retention.ms counts from the pass that first left a tombstone in the
// clean part of the log (KIP-534), since readers that were behind until then
// must get the chance to see it. Kafka writes that moment into the header of
// the batch; it is kept here instead, so that batches stay byte for byte what
// producers sent, and so that layouts without batches can have it too.
type Cleaned []CleanedPass

// CleanedPass is one pass of compaction.
type CleanedPass struct {
	NextOffset int64 // all below has been compacted
	At         int64 // when, in milliseconds
}

// maxCleanedPasses is about how many passes are kept within one
// delete.retention.ms.
const maxCleanedPasses = 32

// NextOffset returns the offset below which the log has been compacted.
func (c Cleaned) NextOffset() int64 {
	if len(c) == 0 {
		return 0
	}
	return c[len(c)-1].NextOffset
}

// seen returns when an offset became part of the clean log, false if it is not.
func (c Cleaned) seen(offset int64) (at int64, ok bool) {
	for _, p := range c {
		if offset < p.NextOffset {
			return p.At, true
		}
	}
	return 0, false
}

// After returns c after a pass that compacted all below an offset. What need
// not be told apart any more is merged; a tombstone then stays a little longer.
func (c Cleaned) After(nextOffset int64, pass Compaction) Cleaned {
	if nextOffset <= c.NextOffset() {
		return c
	}
	now, n := pass.Now.UnixMilli(), len(c)
	if n > 0 {
		now = max(now, c[n-1].At)
	}
	out := make(Cleaned, 0, n+1)
	for i, p := range c {
		// All below a pass that is old enough may go, so those before it say
		// nothing more.
		if i+1 < n && c[i+1].At <= now-pass.DeleteRetention.Milliseconds() {
			continue
		}
		out = append(out, p)
	}
	apart := (pass.DeleteRetention / maxCleanedPasses).Milliseconds()
	if n := len(out); n > 1 && now-out[n-2].At < apart {
		out = out[:n-1]
	}
	return append(out, CleanedPass{NextOffset: nextOffset, At: now})
}

// Before returns c for a log of which only what is below an offset is certain
// to have been compacted.
func (c Cleaned) Before(nextOffset int64) Cleaned {
	for i, p := range c {
		if p.NextOffset <= nextOffset {
			continue
		}
		if c = c[:i:i]; nextOffset > c.NextOffset() {
			c = append(c, CleanedPass{NextOffset: nextOffset, At: p.At})
		}
		break
	}
	return c
}

// String returns c in the form that ParseCleaned reads.
func (c Cleaned) String() string {
	var b []byte
	for i, p := range c {
		if i > 0 {
			b = append(b, ' ')
		}
		b = fmt.Appendf(b, "%d@%d", p.NextOffset, p.At)
	}
	return string(b)
}

var errCleaned = errors.New("not a list of compaction passes")

// ParseCleaned reads what String returned.
func ParseCleaned(text string) (Cleaned, error) {
	var out Cleaned
	last := CleanedPass{}
	for _, field := range strings.Fields(text) {
		offset, at, _ := strings.Cut(field, "@")
		next, err := strconv.ParseInt(offset, 10, 64)
		if err != nil || next <= last.NextOffset {
			return nil, errCleaned
		}
		ms, err := strconv.ParseInt(at, 10, 64)
		if err != nil || ms < last.At {
			return nil, errCleaned
		}
		last = CleanedPass{NextOffset: next, At: ms}
		out = append(out, last)
	}
	return out, nil
}
