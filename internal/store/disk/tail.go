package disk

const (
	// tailMost is how much is remembered of a log. More is read again from its segment,
	// which then costs little beside the rest.
	tailMost = 4 << 10
	// tailKept is how large a buffer may be to be kept for the next batches.
	tailKept = 512
)

// tail is a copy of what was last appended to a log that the journal has had before, so
// that the next round need not read it from the segment. The log's mu guards it.
type tail struct {
	on    bool
	seg   *segment
	from  int64 // where in the segment the bytes begin
	bytes []byte
}

// add remembers a batch at a position of a segment.
func (t *tail) add(seg *segment, at int64, b []byte) {
	if !t.on {
		return
	}
	if t.seg != seg || t.end() != at {
		t.reset(seg, at)
	}
	if len(t.bytes)+len(b) > tailMost {
		t.reset(seg, at) // The next one is not there, so that nothing is known of this.
		return
	}
	t.bytes = append(t.bytes, b...)
}

// forget forgets what no round needs any more, if that is everything: so much of the segment
// is durable.
func (t *tail) forget(durable int64) {
	if t.end() <= durable {
		t.reset(t.seg, durable)
	}
}

func (t *tail) end() int64 { return t.from + int64(len(t.bytes)) }

// reset forgets everything. What comes next is at a position.
func (t *tail) reset(seg *segment, at int64) {
	if cap(t.bytes) > tailKept {
		t.bytes = nil
	}
	t.seg, t.from, t.bytes = seg, at, t.bytes[:0]
}

// part returns a part of a segment, nil if it is not remembered.
func (t *tail) part(seg *segment, from, to int64) []byte {
	if t.seg != seg || from < t.from || to > t.end() || from >= to {
		return nil
	}
	return t.bytes[from-t.from : to-t.from]
}
