package history

import (
	"encoding/binary"
	"math"
)

// decoder reads a record. After the first mistake it reads nothing.
type decoder struct {
	buf   []byte
	names int
	err   error
}

// Decode reads a record. What it takes is bounded by the length of the bytes and by
// MaxNames, whoever wrote them.
func Decode(b []byte) (*Record, error) {
	if len(b) > MaxBytes {
		return nil, ErrTooLong
	}
	if len(b) < 2 {
		return nil, ErrInvalid
	}
	if b[0] != version {
		return nil, ErrVersion
	}
	d := &decoder{buf: b[2:]}
	r := &Record{Whole: b[1]&whole != 0, Time: d.signed()}
	if b[1]&^whole != 0 {
		return nil, ErrInvalid
	}
	group, topic := "", ""
	for d.err == nil && len(d.buf) > 0 {
		g := d.groupOf(&group, &topic)
		// A group that was split is in several records, and in each of them once.
		if n := len(r.Groups); n > 0 && r.Groups[n-1].Name >= g.Name {
			d.fail(ErrInvalid)
		}
		r.Groups = append(r.Groups, g)
	}
	if d.err != nil {
		return nil, d.err
	}
	return r, nil
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err, d.buf = err, nil
	}
}

// number reads a number up to a limit.
func (d *decoder) number(limit int64) int64 {
	n, size := binary.Uvarint(d.buf)
	if size <= 0 || n > uint64(limit) {
		d.fail(ErrInvalid)
		return 0
	}
	d.buf = d.buf[size:]
	return int64(n)
}

func (d *decoder) signed() int64 {
	n, size := binary.Varint(d.buf)
	if size <= 0 {
		d.fail(ErrInvalid)
		return 0
	}
	d.buf = d.buf[size:]
	return n
}

// positions reads how many positions a topic has. Each takes two bytes at least.
func (d *decoder) positions() int {
	n := int(d.number(int64(len(d.buf) / 2)))
	if n == 0 {
		d.fail(ErrInvalid)
	}
	return n
}

func (d *decoder) name(before *string) string {
	shared := int(d.number(int64(len(*before))))
	rest := int(d.number(int64(len(d.buf))))
	if d.err != nil || rest > len(d.buf) {
		d.fail(ErrInvalid)
		return ""
	}
	if d.names += shared + rest; d.names > MaxNames {
		d.fail(ErrTooLong)
		return ""
	}
	name := (*before)[:shared] + string(d.buf[:rest])
	d.buf = d.buf[rest:]
	*before = name
	return name
}

func (d *decoder) groupOf(group, topic *string) Group {
	g := Group{Name: d.name(group), Lag: d.number(math.MaxInt64), Age: d.number(math.MaxInt64)}
	topics := d.number(int64(len(d.buf) / 5)) // Two of a name, a count, and a position of two.
	for range topics {
		t := d.topicOf(topic)
		if d.err != nil {
			return g
		}
		if n := len(g.Topics); n > 0 && g.Topics[n-1].Name >= t.Name {
			d.fail(ErrInvalid)
		}
		g.Topics = append(g.Topics, t)
	}
	return g
}

func (d *decoder) topicOf(before *string) Topic {
	t := Topic{Name: d.name(before)}
	positions := d.positions()
	if d.err != nil {
		return t
	}
	t.Positions = make([]Position, 0, positions)
	partition, committed := int64(-1), int64(0)
	for range positions {
		partition += 1 + d.number(math.MaxInt32)
		committed += d.signed() // It may wrap; then it is negative, or what was written.
		if partition > math.MaxInt32 || committed < Gone {
			d.fail(ErrInvalid)
		}
		if d.err != nil {
			return t
		}
		t.Positions = append(t.Positions, Position{int32(partition), committed})
	}
	return t
}
