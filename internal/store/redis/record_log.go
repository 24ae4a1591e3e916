package redis

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// recordLog is a log of the stream layout: an entry is a record, and its id stands for
// the offset. Others append to it too.
type recordLog struct {
	*log
	numbering
}

func newRecordLog(l *log, meta map[string]string) (layout, error) {
	bits, err := number(meta, "bits")
	if err != nil || bits < 1 || bits > maxBits {
		return nil, fmt.Errorf("%w: %q bits", store.ErrCorrupt, meta["bits"])
	}
	return recordLog{l, numbering{uint(bits)}}, nil
}

func (recordLog) name() store.Layout { return store.LayoutStream }

// position is an id, which scripts can compute with.
func (l recordLog) position(offset int64) string { return l.id(offset).String() }

func (l recordLog) offsetAt(position entryID) int64 { return l.atOrAfter(position) }

func (l recordLog) span(offset, next int64) (from, to entryID) { return l.id(offset), l.id(next - 1) }

func (l recordLog) lastBefore(next int64) entryID { return l.id(next).before() }

func (l recordLog) loadBounds(ctx context.Context, f *found, start, end entryID) error {
	l.start, l.tail.next = l.offsetAt(start), l.offsetAt(end)
	if f.lastID != (entryID{}) && !f.lastID.less(end) {
		l.tail.next = l.atOrAfter(f.lastID.after())
	}
	if l.start == 0 {
		return l.begin(ctx, f)
	}
	return nil
}

// begin finds where a log begins that once began at zero: at the first record that was
// ever appended, or that is there.
func (l recordLog) begin(ctx context.Context, f *found) error {
	l.start = l.tail.next
	if len(l.tail.epochs) > 0 {
		l.start = min(l.start, l.tail.epochs[0].Start)
	}
	if f.first != "" {
		first, err := parseID(f.first)
		if err != nil {
			return err
		}
		l.start = min(l.start, l.atOrAfter(first))
	}
	_, err := l.own(ctx, "open", setScript, "start", l.position(l.start))
	return err
}

func (l recordLog) adopt(_ context.Context, f *found) error {
	l.tail.next = l.atOrAfter(f.lastID.after())
	l.start = l.tail.next
	if f.first == "" {
		return nil
	}
	first, err := parseID(f.first)
	l.start = l.atOrAfter(first)
	return err
}

// check leaves it to encode to look at the records.
func (recordLog) check(p *pending) error {
	switch {
	case p.batch.Control() || p.batch.Transactional():
		return fmt.Errorf("%w: %w", store.ErrInvalidBatch, errNotForStreams)
	case p.batch.Count() <= 0:
		return fmt.Errorf("%w: %w", store.ErrInvalidBatch, errNoRecords)
	}
	return nil
}

func (recordLog) entriesOf(b record.Batch) int { return int(b.Count()) }

func (l recordLog) encode(p *pending, wait bool) bool { return p.memory > 0 || l.split(p, wait) }

// base is the server's time, or what follows the last offset if that is later. The last
// of the records gets no sequence near the end of its millisecond, since the server goes
// on from there when others append in the same millisecond, and ids with a larger
// sequence have no offset.
func (l recordLog) base(next, records int64) int64 {
	per := int64(l.perMilli())
	now := l.clock.now(l.store.now()) + l.pace.margin()
	base := max(now<<l.bits, next+l.pace.gap())
	if last := (base + records - 1) & (per - 1); last >= per-per/4 {
		base += per - last
	}
	return base
}

func (l recordLog) adds(tx *transaction) []add {
	list := make([]add, 0, tx.entries)
	ids := make([]byte, 0, tx.entries*idLength)
	for _, p := range tx.group {
		start := 0
		for i, end := range p.ends {
			n := len(ids)
			ids = l.id(p.base + int64(i)).append(ids)
			list = append(list, add{rueidis.BinaryString(ids[n:]), p.words[start:end]})
			start = end
		}
	}
	return list
}

func (l recordLog) ahead(p *pending) int64 { return p.latest - int64(l.id(p.base).ms) }

// maxScriptWords is how many words a script passes on in one call; Lua has room
// for some thousands.
const maxScriptWords = 2000

func (recordLog) inScript(adds []add) (list []string, words string) {
	first := adds[0]
	if len(first.words) >= maxScriptWords {
		return nil, "0"
	}
	list = append([]string{first.id}, first.words...)
	return list, strconv.Itoa(len(list))
}

func (recordLog) usesClock() bool { return true }

// overtaken goes on after the entry, a little farther than the last time.
func (l recordLog) overtaken(_ string, last entryID) error {
	l.pace.conflict()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail.next = max(l.tail.next, l.atOrAfter(last.after()))
	return errTryAgain
}

func (l recordLog) newSink(req store.ReadRequest, epochs []store.EpochStart) sink {
	return &recordSink{req: req, log: l, epochs: epochs}
}

func (recordLog) scanScript() string { return statsScript }

// itemOf reads the timestamp field of an entry.
func (l recordLog) itemOf(id entryID, size int64, told string) (item, bool, error) {
	it := item{id: id, size: size}
	offset, ok := l.offset(id)
	if !ok {
		l.warnUnnamed(id)
		return it, false, nil
	}
	it.base, it.last = offset, offset
	if it.timestamp, ok = parseTimestamp(told); !ok {
		it.timestamp = int64(min(id.ms, maxTimestamp))
	}
	return it, true, nil
}

// warnUnnamed says once that there are entries which no offset names.
func (l recordLog) warnUnnamed(id entryID) {
	l.warned.Do(func() {
		l.store.logger.Warn("entries of a stream cannot be shown to Kafka clients: their ids have no offset",
			"key", l.keys.stream, "id", id.String(), "sequence bits", l.bits)
	})
}

func (l recordLog) trim(ctx context.Context, newStart int64) error { return l.trimTo(ctx, newStart, 0) }

func (l recordLog) trimTo(ctx context.Context, newStart, _ int64) error {
	if err := l.writeStart(ctx, newStart); err != nil {
		return err
	}
	for mode := "~"; ; {
		r, err := l.own(ctx, "trim", trimScript, l.id(newStart).String(), mode)
		if err != nil {
			return err
		}
		gone, freed := r[0].int(), int64(0)
		if len(r) > 1 {
			freed, _ = strconv.ParseInt(r[1].text(), 10, 64)
		}
		l.shrink(freed, gone)
		if mode == "=" {
			return l.trimAborted(ctx)
		}
		if gone == 0 {
			mode = "="
		}
	}
}
