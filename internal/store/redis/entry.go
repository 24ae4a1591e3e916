package redis

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/redis/rueidis"

	"muster/internal/record"
	"muster/internal/store"
)

// The fields of an entry of the stream layout. A record without key or value
// has no such field; timestamp is always there, in ms. Headers follow in their
// order, each as a field of its own, so that a name may come twice.
const (
	fieldKey        = "key"
	fieldValue      = "value"
	fieldTimestamp  = "timestamp"
	fieldHeader     = "header:"
	fieldNullHeader = "header-null:"
)

// The fields of an entry of the log layout: the batch as it came, and the
// largest timestamp of this and all earlier batches. The latter grows from
// entry to entry, which makes a search by timestamp a binary one.
const (
	fieldBatch      = "b"
	fieldRunningMax = "t"
)

// entryOverhead is what an entry is counted for beyond its fields.
const entryOverhead = 16

// entry is what one XADD adds: fields and values in turn.
type entry []string

// size returns what an entry is counted for, and how long its longest word is.
func (e entry) size() (n, longest int64) {
	n = entryOverhead
	for _, s := range e {
		n += int64(len(s))
		longest = max(longest, int64(len(s)))
	}
	return n, longest
}

// encoder makes entries of records, all in one list.
type encoder struct {
	words     []string
	timestamp int64 // of the last record, and its text
	text      string
}

// add adds the entry of a record, which points to the record's bytes.
func (c *encoder) add(r *record.Record) entry {
	start := len(c.words)
	if r.Key != nil {
		c.words = append(c.words, fieldKey, rueidis.BinaryString(r.Key))
	}
	if r.Value != nil {
		c.words = append(c.words, fieldValue, rueidis.BinaryString(r.Value))
	}
	if c.text == "" || r.Timestamp != c.timestamp {
		c.timestamp, c.text = r.Timestamp, strconv.FormatInt(r.Timestamp, 10)
	}
	c.words = append(c.words, fieldTimestamp, c.text)
	for _, h := range r.Headers {
		if h.Value == nil {
			c.words = append(c.words, fieldNullHeader+h.Key, "")
			continue
		}
		c.words = append(c.words, fieldHeader+h.Key, rueidis.BinaryString(h.Value))
	}
	return c.words[start:]
}

// decodeRecord makes a record of an entry, whoever wrote it. An entry of a
// Redis application that has fields named key or value is a record with these,
// and its other fields are headers; any other is a record whose value is a JSON
// object of the fields. Such records are as old as their ids. The record points
// to the entry's bytes.
func decodeRecord(id entryID, e entry) record.Record {
	var r record.Record
	var hasTimestamp, other bool
	for i := 0; i+1 < len(e); i += 2 {
		name, value := e[i], bytesOf(e[i+1])
		switch {
		case name == fieldKey && r.Key == nil:
			r.Key = value
		case name == fieldValue && r.Value == nil:
			r.Value = value
		case name == fieldTimestamp && !hasTimestamp:
			r.Timestamp, hasTimestamp = parseTimestamp(e[i+1])
			other = other || !hasTimestamp
		case strings.HasPrefix(name, fieldHeader):
			r.Headers = append(r.Headers, record.Header{Key: name[len(fieldHeader):], Value: value})
		case strings.HasPrefix(name, fieldNullHeader) && len(value) == 0:
			r.Headers = append(r.Headers, record.Header{Key: name[len(fieldNullHeader):]})
		default:
			other = true
			r.Headers = append(r.Headers, record.Header{Key: name, Value: value})
		}
	}
	if !hasTimestamp {
		r.Timestamp = int64(min(id.ms, maxTimestamp))
	}
	if r.Key == nil && r.Value == nil && (other || !hasTimestamp) {
		r.Headers, r.Value = nil, fieldsAsJSON(e)
	}
	return r
}

// bytesOf returns the bytes of a string itself, which no one may change. Those
// of an empty one are not null.
func bytesOf(text string) []byte {
	if text == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(text), len(text))
}

// maxTimestamp bounds the timestamps of records, so that the difference of two
// can be written.
const maxTimestamp = 1 << 60

func parseTimestamp(text string) (int64, bool) {
	ts, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ts > maxTimestamp || ts < -maxTimestamp {
		return 0, false
	}
	return ts, true
}

// fieldsAsJSON makes a JSON object with the fields in their order.
func fieldsAsJSON(e entry) []byte {
	b := []byte{'{'}
	for i := 0; i+1 < len(e); i += 2 {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendJSON(b, e[i])
		b = append(b, ':')
		b = appendJSON(b, e[i+1])
	}
	return append(b, '}')
}

func appendJSON(dst []byte, text string) []byte {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		return append(dst, `""`...) // A string always encodes.
	}
	return append(dst, bytes.TrimSuffix(out.Bytes(), []byte{'\n'})...)
}

// entryParts reads an entry of a reply of XRANGE: its id, and its fields and
// values in turn.
func entryParts(m *rueidis.RedisMessage) (entryID, []rueidis.RedisMessage, error) {
	parts, err := m.ToArray()
	if err != nil || len(parts) != 2 {
		return entryID{}, nil, fmt.Errorf("%w: entry of %d parts", store.ErrCorrupt, len(parts))
	}
	text, err := parts[0].ToString()
	if err != nil {
		return entryID{}, nil, fmt.Errorf("%w: entry without id", store.ErrCorrupt)
	}
	id, err := parseID(text)
	if err != nil {
		return id, nil, err
	}
	fields, err := parts[1].ToArray()
	if err != nil {
		return id, nil, fmt.Errorf("%w: entry %s has no fields", store.ErrCorrupt, id)
	}
	return id, fields, nil
}

// stored is an entry of the log layout.
type stored struct {
	id         entryID
	batch      record.Batch
	runningMax int64
}

// decodeBatch reads an entry of the log layout and demands that it is what
// this package wrote. The batch is that of the reply itself.
func decodeBatch(m *rueidis.RedisMessage) (stored, error) {
	id, fields, err := entryParts(m)
	if err != nil {
		return stored{}, err
	}
	s := stored{id: id, runningMax: record.NoTimestamp}
	for i := 0; i+1 < len(fields); i += 2 {
		name, _ := fields[i].ToString()
		switch name {
		case fieldBatch:
			if s.batch, err = fields[i+1].AsBytes(); err != nil {
				return s, fmt.Errorf("%w: entry %s: %w", store.ErrCorrupt, id, err)
			}
		case fieldRunningMax:
			if s.runningMax, err = fields[i+1].AsInt64(); err != nil {
				return s, fmt.Errorf("%w: entry %s: largest timestamp: %w", store.ErrCorrupt, id, err)
			}
		}
	}
	if err := checkHeader(s.batch); err != nil {
		return s, fmt.Errorf("%w: entry %s: %w", store.ErrCorrupt, id, err)
	}
	if id.seq != 0 || s.batch.BaseOffset() < 0 || uint64(s.batch.LastOffset())+1 != id.ms {
		return s, fmt.Errorf("%w: entry %s holds offsets %d to %d", store.ErrCorrupt, id, s.batch.BaseOffset(), s.batch.LastOffset())
	}
	return s, nil
}

// checkHeader says whether b is one whole batch. The checksum is left to the
// reader of the records.
func checkHeader(b record.Batch) error {
	n, err := record.Peek(b)
	if err != nil {
		return err
	}
	if n != len(b) || b.LastOffsetDelta() < 0 || b.Count() < 0 {
		return record.ErrCorrupt
	}
	return nil
}
