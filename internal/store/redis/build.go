package redis

import (
	"math"

	"github.com/redis/rueidis"

	"muster/internal/buffer"
	"muster/internal/record"
	"muster/internal/store"
)

// batchSink takes batches as they are.
type batchSink struct {
	req     store.ReadRequest
	batches []record.Batch
	size    int
}

func (s *batchSink) take(m *rueidis.RedisMessage) (int, bool, error) {
	e, err := decodeBatch(m)
	if err != nil {
		return 0, false, err
	}
	if e.batch.LastOffset() >= s.req.NextOffset || s.size+len(e.batch) > s.req.MaxBytes && (s.size > 0 || !s.req.MinOne) {
		return 0, false, nil
	}
	s.batches = append(s.batches, e.batch)
	s.size += len(e.batch)
	return len(e.batch), true, nil
}

func (s *batchSink) bytes() ([]byte, bool) {
	if len(s.batches) == 1 {
		return s.batches[0], false
	}
	out := buffer.Empty(s.size)
	for _, b := range s.batches {
		out = append(out, b...)
	}
	return out, true
}

func (s *batchSink) room() int { return s.req.MaxBytes - s.size }

// recordSink makes record batches of the entries of the stream layout. A batch
// goes on until offsets, timestamps or the leader epoch demand a new one.
type recordSink struct {
	req    store.ReadRequest
	log    recordLog
	epochs []store.EpochStart
	out    []byte
	size   int // of all batches

	writer *record.Writer // of the batch that is being made
	base   int64
	epoch  int32
	first  int64 // timestamp
	words  entry
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
	epoch := epochAt(s.epochs, offset)
	opens := s.opens(offset, r.Timestamp, epoch)
	size, first := 0, s.first
	if opens {
		size, first = record.HeaderSize, r.Timestamp
	} else {
		r.OffsetDelta = int32(offset - s.base)
	}
	size += record.Size(&r, first)
	if s.size+size > s.req.MaxBytes && (s.size > 0 || !s.req.MinOne) {
		return 0, false, nil
	}
	if opens {
		s.open(offset, first, epoch)
	}
	s.writer.Add(&r)
	s.size += size
	return size, true, nil
}

// opens says whether a record begins a new batch.
func (s *recordSink) opens(offset, timestamp int64, epoch int32) bool {
	apart := timestamp - s.first
	return s.writer == nil || offset-s.base > math.MaxInt32 || epoch != s.epoch || apart > maxTimestamp || apart < -maxTimestamp
}

func (s *recordSink) open(offset, timestamp int64, epoch int32) {
	out := s.finished()
	if out == nil {
		out = buffer.Empty(min(max(s.req.MaxBytes, 1<<10), 1<<20))
	}
	t := record.PlainTemplate()
	t.BaseOffset, t.LeaderEpoch = offset, epoch
	s.writer, s.base, s.first, s.epoch = record.NewWriter(out, t), offset, timestamp, epoch
}

func (s *recordSink) bytes() ([]byte, bool) { return s.finished(), true }

func (s *recordSink) finished() []byte {
	if s.writer != nil {
		s.out, s.writer = s.writer.Finish(), nil
	}
	return s.out
}

func (s *recordSink) room() int { return s.req.MaxBytes - s.size }
