package history

import (
	"encoding/binary"
	"slices"
)

// encoder writes a record.
type encoder struct {
	buf   []byte
	group string // The name before.
	topic string
	names int // What the names come to.
}

func (e *encoder) begin(r *Record) {
	flags := byte(0)
	if r.Whole {
		flags = whole
	}
	e.buf = append(e.buf[:0], version, flags)
	e.buf = binary.AppendVarint(e.buf, r.Time)
	e.group, e.topic, e.names = "", "", 0
}

func (e *encoder) number(n int64) { e.buf = binary.AppendUvarint(e.buf, uint64(max(n, 0))) }

// name writes a name, and what it does not share with the one before.
func (e *encoder) name(name string, before *string) {
	shared := 0
	for shared < len(name) && shared < len(*before) && name[shared] == (*before)[shared] {
		shared++
	}
	e.number(int64(shared))
	e.number(int64(len(name) - shared))
	e.buf = append(e.buf, name[shared:]...)
	*before = name
	e.names += len(name)
}

func (e *encoder) topicOf(t *Topic) {
	e.name(t.Name, &e.topic)
	e.number(int64(len(t.Positions)))
	partition, committed := int32(-1), int64(0)
	for _, p := range t.Positions {
		e.number(int64(p.Partition - partition - 1))
		e.buf = binary.AppendVarint(e.buf, p.Committed-committed)
		partition, committed = p.Partition, p.Committed
	}
}

func (e *encoder) groupOf(g *Group) {
	e.name(g.Name, &e.group)
	e.number(g.Lag)
	e.number(g.Age)
	e.number(int64(len(g.Topics)))
	for i := range g.Topics {
		e.topicOf(&g.Topics[i])
	}
}

// Most that things take: a number, a position, a topic and a group besides their names
// and what they have.
const (
	numberBytes   = 10
	positionBytes = 5 + numberBytes
	headBytes     = 2 + numberBytes
	groupBytes    = 5 * numberBytes
	topicBytes    = 3 * numberBytes
)

// Encode returns records with all of r, each within the limits: groups and topics that
// do not fit into one go on in the next. Groups, topics and positions must be in order,
// and topics not empty. A group without topics has not moved; its lag is noted.
func Encode(r *Record) [][]byte {
	if len(r.Groups) == 0 {
		return nil
	}
	var out [][]byte
	e := &encoder{}
	e.begin(r)
	begun := len(e.buf)
	flush := func() {
		if len(e.buf) > begun {
			out = append(out, slices.Clone(e.buf))
			e.begin(r)
		}
	}
	for i := range r.Groups {
		for n, part := range split(&r.Groups[i]) {
			size, names := most(&part)
			// A record has a group once.
			if n > 0 || len(e.buf)+size > MaxBytes || e.names+names > MaxNames {
				flush()
			}
			e.groupOf(&part)
		}
	}
	flush()
	return out
}

// most is what a group takes at most, and what its names come to.
func most(g *Group) (size, names int) {
	size, names = groupBytes+len(g.Name), len(g.Name)
	for i := range g.Topics {
		t := &g.Topics[i]
		size += topicBytes + len(t.Name) + len(t.Positions)*positionBytes
		names += len(t.Name)
	}
	return size, names
}

// split returns the parts of a group that fit into a record each: nearly always itself.
func split(g *Group) []Group {
	if size, names := most(g); headBytes+size <= MaxBytes && names <= MaxNames {
		return []Group{*g}
	}
	var out []Group
	part := Group{Name: g.Name, Lag: g.Lag, Age: g.Age}
	room := MaxBytes - headBytes - groupBytes - len(g.Name)
	left := room
	for _, t := range g.Topics {
		for len(t.Positions) > 0 {
			fit := (left - topicBytes - len(t.Name)) / positionBytes
			if fit <= 0 {
				out = append(out, part)
				part.Topics, left = nil, room
				continue
			}
			n := min(fit, len(t.Positions))
			part.Topics = append(part.Topics, Topic{t.Name, t.Positions[:n]})
			left -= topicBytes + len(t.Name) + n*positionBytes
			t.Positions = t.Positions[n:]
		}
	}
	return append(out, part) // It has the last position.
}
