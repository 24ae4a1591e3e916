package redis

import (
	"encoding/binary"
	"math"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// recordSink makes record batches of the entries of the stream layout. A batch
// goes on until offsets, timestamps or the leader epoch demand a new one.
type recordSink struct {
	req    store.ReadRequest
	log    *log
	epochs []store.EpochStart
	out    []byte
	taken  int // records

	recs  []record.Record // of the batch that is being made
	size  int             // of that batch
	base  int64
	epoch int32
	err   error
	words entry
}

func (s *recordSink) take(m *rueidis.RedisMessage) (int, bool, error) {
	id, fields, err := entryParts(m)
	if err != nil {
		return 0, false, err
	}
	offset, ok := s.log.offset(id)
	if !ok {
		s.log.warnUnnamed(id)
		return 0, true, nil
	}
	s.words = s.words[:0]
	for i := range fields {
		text, _ := fields[i].ToString()
		s.words = append(s.words, text)
	}
	r := decodeRecord(id, s.words)
	r.Offset = offset
	epoch := epochAt(s.epochs, offset)
	size := 0
	if s.opens(&r, epoch) {
		size = record.HeaderSize
	}
	first := r.Timestamp
	if size == 0 {
		first = s.recs[0].Timestamp
		r.OffsetDelta = int32(offset - s.base)
	}
	size += recordSize(&r, first)
	if len(s.out)+s.size+size > s.req.MaxBytes && (s.taken > 0 || !s.req.MinOne) {
		return 0, false, nil
	}
	if size > record.HeaderSize && s.opens(&r, epoch) {
		if err := s.finish(); err != nil {
			return 0, false, err
		}
		s.base, s.epoch = offset, epoch
	}
	s.recs = append(s.recs, r)
	s.size += size
	s.taken++
	return size, true, nil
}

// opens says whether a record begins a new batch.
func (s *recordSink) opens(r *record.Record, epoch int32) bool {
	if len(s.recs) == 0 {
		return true
	}
	apart := r.Timestamp - s.recs[0].Timestamp
	return r.Offset-s.base > math.MaxInt32 || epoch != s.epoch || apart > maxTimestamp || apart < -maxTimestamp
}

// finish completes a batch.
func (s *recordSink) finish() error {
	if len(s.recs) == 0 {
		return nil
	}
	t := record.PlainTemplate()
	t.BaseOffset, t.LeaderEpoch = s.base, s.epoch
	b, err := record.Build(t, s.recs)
	if err != nil {
		return err
	}
	if s.out == nil {
		s.out = b
	} else {
		s.out = append(s.out, b...)
	}
	s.recs, s.size = s.recs[:0], 0
	return nil
}

func (s *recordSink) bytes() ([]byte, error) {
	err := s.finish()
	return s.out, err
}

func (s *recordSink) room() int { return s.req.MaxBytes - len(s.out) - s.size }

// warnUnnamed says once that there are entries which no offset names.
func (l *log) warnUnnamed(id entryID) {
	l.warned.Do(func() {
		l.store.logger.Warn("entries of a stream cannot be shown to Kafka clients: their ids have no offset",
			"key", l.keys.stream, "id", id.String(), "sequence bits", l.bits)
	})
}

// recordSize is how many bytes a record takes in a batch.
func recordSize(r *record.Record, firstTimestamp int64) int {
	n := 1 + varintSize(r.Timestamp-firstTimestamp) + varintSize(int64(r.OffsetDelta)) +
		nullableSize(r.Key) + nullableSize(r.Value) + varintSize(int64(len(r.Headers)))
	for _, h := range r.Headers {
		n += varintSize(int64(len(h.Key))) + len(h.Key) + nullableSize(h.Value)
	}
	return varintSize(int64(n)) + n
}

func nullableSize(b []byte) int {
	if b == nil {
		return 1
	}
	return varintSize(int64(len(b))) + len(b)
}

func varintSize(n int64) int {
	var b [binary.MaxVarintLen64]byte
	return binary.PutVarint(b[:], n)
}
