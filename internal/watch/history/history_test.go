package history

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// fataler is a test, or a rapid one.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func sorted[T cmp.Ordered](s []T) []T {
	slices.Sort(s)
	return s
}

// merge puts the parts of groups and topics together that were split.
func merge(t fataler, encoded [][]byte) *Record {
	t.Helper()
	var out *Record
	for _, b := range encoded {
		if len(b) > MaxBytes {
			t.Fatalf("a record of %d bytes", len(b))
		}
		r, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		if out == nil {
			out = r
			continue
		}
		if r.Time != out.Time || r.Whole != out.Whole {
			t.Fatalf("the parts differ: %d %t and %d %t", r.Time, r.Whole, out.Time, out.Whole)
		}
		for _, g := range r.Groups {
			last := &out.Groups[len(out.Groups)-1]
			if last.Name != g.Name {
				out.Groups = append(out.Groups, g)
				continue
			}
			if end := &last.Topics[len(last.Topics)-1]; end.Name == g.Topics[0].Name {
				end.Positions = append(end.Positions, g.Topics[0].Positions...)
				g.Topics = g.Topics[1:]
			}
			last.Topics = append(last.Topics, g.Topics...)
		}
	}
	return out
}

func draw(t *rapid.T) *Record {
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{0,6}`), 1, 8, rapid.ID[string])
	r := &Record{Time: rapid.Int64().Draw(t, "time"), Whole: rapid.Bool().Draw(t, "whole")}
	for _, name := range sorted(names.Draw(t, "groups")) {
		g := Group{Name: name, Lag: rapid.Int64Range(0, math.MaxInt64).Draw(t, "lag"), Age: rapid.Int64Range(0, math.MaxInt64).Draw(t, "age")}
		topics := names.Draw(t, "topics")
		if rapid.IntRange(0, 3).Draw(t, "moved") == 0 {
			topics = nil
		}
		for _, topic := range sorted(topics) {
			positions := rapid.SliceOfNDistinct(rapid.Int32Range(0, math.MaxInt32), 1, 5, rapid.ID[int32]).Draw(t, "partitions")
			of := Topic{Name: topic}
			for _, p := range sorted(positions) {
				of.Positions = append(of.Positions, Position{p, rapid.Int64Range(Gone, math.MaxInt64).Draw(t, "committed")})
			}
			g.Topics = append(g.Topics, of)
		}
		r.Groups = append(r.Groups, g)
	}
	return r
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := draw(t)
		got := merge(t, Encode(r))
		if !reflect.DeepEqual(got, r) {
			t.Fatalf("wrote\n%+v\nand read\n%+v", r, got)
		}
	})
}

// busy is what a shard writes: groups whose positions have all moved.
func busy(groups, partitions int) *Record {
	r := &Record{Time: 1_700_000_000_000}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range groups {
		g := Group{Name: fmt.Sprintf("payments-service-%05d", i), Lag: random.Int64N(100_000), Age: random.Int64N(1_000_000)}
		topic := Topic{Name: fmt.Sprintf("payments.events.%03d", i%100)}
		for p := range partitions {
			topic.Positions = append(topic.Positions, Position{int32(p), 1_000_000_000 + random.Int64N(200_000_000)})
		}
		g.Topics = []Topic{topic}
		r.Groups = append(r.Groups, g)
	}
	return r
}

func TestPositionTakesAboutSixBytes(t *testing.T) {
	r := busy(10_000, 10) // More than a record holds.
	size := 0
	for _, b := range Encode(r) {
		size += len(b)
	}
	if each := float64(size) / 100_000; each > 7 {
		t.Errorf("%.1f bytes", each)
	}
	if got := merge(t, Encode(r)); !reflect.DeepEqual(got, r) {
		t.Error("what was read is not what was written")
	}
}

func TestLongRecordsAreSplit(t *testing.T) {
	long := strings.Repeat("g", 30_000)
	r := &Record{Time: 5, Whole: true}
	for i := range 300 { // Names of nine megabytes that share nearly all.
		r.Groups = append(r.Groups, Group{Name: fmt.Sprintf("%s%03d", long, i), Topics: []Topic{{"t", []Position{{0, Gone}}}}})
	}
	huge := Group{Name: "h", Lag: 3}
	for i := range 3 {
		topic := Topic{Name: fmt.Sprint("t", i)}
		for p := range int32(100_000) {
			topic.Positions = append(topic.Positions, Position{p, math.MaxInt64 * int64(p%2) * int64(i%2)})
		}
		huge.Topics = append(huge.Topics, topic)
	}
	r.Groups = append(r.Groups, huge)
	encoded := Encode(r)
	if len(encoded) < 5 {
		t.Errorf("%d records", len(encoded))
	}
	if got := merge(t, encoded); !reflect.DeepEqual(got, r) {
		t.Error("what was read is not what was written")
	}
	if Encode(&Record{Time: 5}) != nil {
		t.Error("nothing is a record")
	}
}

func TestBadRecordsAreRefused(t *testing.T) {
	good := Encode(&Record{Time: 0, Groups: []Group{{Name: "g", Topics: []Topic{{"t", []Position{{0, 5}}}}}}})[0]
	if want := []byte{0, 0, 0, 0, 1, 'g', 0, 0, 1, 0, 1, 't', 1, 0, 10}; !bytes.Equal(good, want) {
		t.Fatalf("version 0 has become %v", good)
	}
	change := func(at int, to byte) []byte {
		b := bytes.Clone(good)
		b[at] = to
		return b
	}
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"nothing":                         {nil, ErrInvalid},
		"another version":                 {change(0, 1), ErrVersion},
		"a flag nobody knows":             {change(1, 2), ErrInvalid},
		"more shared than there was":      {change(3, 1), ErrInvalid},
		"a name beyond the end":           {change(4, 200), ErrInvalid},
		"topics of nobody":                {change(8, 0), ErrInvalid},
		"more topics than bytes":          {change(8, 2), ErrInvalid},
		"no positions":                    {change(12, 0), ErrInvalid},
		"more positions than bytes":       {change(12, 2), ErrInvalid},
		"an offset before none":           {change(14, 3), ErrInvalid},
		"bytes after the last position":   {append(bytes.Clone(good), 0), ErrInvalid},
		"a group twice":                   {append(bytes.Clone(good), good[3:]...), ErrInvalid},
		"a partition beyond all":          {append(bytes.Clone(good[:13]), 0xff, 0xff, 0xff, 0xff, 8, 0), ErrInvalid},
		"a partition beyond all, later":   {append(append(change(12, 2)[:15:15], 0xff, 0xff, 0xff, 0xff, 7), 0), ErrInvalid},
		"a topic without positions":       {append(bytes.Clone(good[:12]), 0), ErrInvalid},
		"a number without end":            {append(bytes.Clone(good[:3]), bytes.Repeat([]byte{0xff}, 20)...), ErrInvalid},
		"a topic twice":                   {append(append(change(8, 2), 1, 0), 1, 0, 10), ErrInvalid},
		"names that come to too much":     {bomb(), ErrTooLong},
		"more bytes than a record may be": {make([]byte, MaxBytes+1), ErrTooLong},
	} {
		if r, err := Decode(c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v %v, want %v", name, r, err, c.want)
		}
	}
	for n := range good {
		if n != 3 { // After the time it is a record without groups.
			if _, err := Decode(good[:n]); err == nil {
				t.Errorf("the first %d bytes are a record", n)
			}
		}
	}
}

// bomb is a short record whose names come to much: each group is called like the one
// before, and one letter more.
func bomb() []byte {
	e := &encoder{}
	e.begin(&Record{})
	name := strings.Repeat("a", 20_000)
	for range 1000 {
		name += "a"
		e.groupOf(&Group{Name: name, Topics: []Topic{{"t", []Position{{0, 0}}}}})
	}
	return e.buf
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Add(Encode(busy(3, 4))[0])
	f.Add(bomb())
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			return
		}
		if len(r.Groups) == 0 {
			return
		}
		if got := merge(t, Encode(r)); !reflect.DeepEqual(got, r) {
			t.Fatalf("read\n%+v\nand after writing that\n%+v", r, got)
		}
	})
}

func TestADeletedGroupIsTold(t *testing.T) {
	deleted, live := DeletedGroup("a"), Group{Name: "b", Topics: []Topic{{Name: "t", Positions: []Position{{Committed: Gone}}}}}
	encoded := Encode(&Record{Time: 1, Groups: []Group{deleted, live}})
	r, err := Decode(encoded[0])
	if err != nil {
		t.Fatal(err)
	}
	if !r.Groups[0].Deleted() || r.Groups[1].Deleted() || (&Group{}).Deleted() {
		t.Errorf("%+v", r.Groups)
	}
}
