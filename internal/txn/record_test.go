package txn

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
	"muster/internal/machine"
)

// unhex reads bytes that are written in hexadecimal, with spaces, and text in quotes.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	var out []byte
	for f := range strings.FieldsSeq(s) {
		if text, ok := strings.CutPrefix(f, "'"); ok {
			out = append(out, strings.TrimSuffix(text, "'")...)
			continue
		}
		b, err := hex.DecodeString(f)
		assert.Must(t, err)
		out = append(out, b...)
	}
	return out
}

// wireRecords are records and their bytes, written by hand from Kafka's schema.
var wireRecords = []struct {
	what, value string
	record      Value
}{
	{
		"Empty has no partitions at all", "0001 0000000000000005 0003 0000ea60 00 00 0000000000000007 ffffffffffffffff 00",
		Value{Producer: pair{5, 3}, Timeout: 60_000, Updated: 7, Start: none, Previous: none, Next: noPair, Last: none},
	},
	{
		"Ongoing", "0001 0000000000000005 0003 0000ea60 01 03 02 't' 03 00000000 00000002 00 03 'uu' 02 00000001 00 0000000000000007 0000000000000006 00",
		Value{
			Producer: pair{5, 3}, Timeout: 60_000, State: Ongoing, Updated: 7, Start: 6, Previous: none, Next: noPair, Last: none,
			Topics: []topic{{"t", []int32{0, 2}}, {"uu", []int32{1}}},
		},
	},
	{
		"Complete has a list without partitions", "0001 0000000000000005 0003 0000ea60 04 01 0000000000000007 0000000000000006 00",
		Value{Producer: pair{5, 3}, Timeout: 60_000, State: CompleteCommit, Updated: 7, Start: 6, Previous: none, Next: noPair, Last: none},
	},
	{
		"with all tagged fields", "0001 0000000000000005 7fff 0000ea60 03 02 02 't' 02 00000000 00 0000000000000007 0000000000000006" +
			" 05 00 08 0000000000000004 01 08 0000000000000009 02 02 0002 03 02 0000 904e 02 7ffe",
		Value{
			Producer: pair{5, 32767}, Timeout: 60_000, State: PrepareAbort, Updated: 7, Start: 6, Previous: 4, Next: pair{9, 0}, Last: 32766, Version: 2,
			Topics: []topic{{"t", []int32{0}}},
		},
	},
}

// Tools that know Kafka's format read our records, and Kafka's own must be readable
// here.
func TestRecordsAreInKafkasFormat(t *testing.T) {
	for _, c := range wireRecords {
		t.Run(c.what, func(t *testing.T) {
			r := &Record{"id", &c.record}
			key, value := r.Encode()
			if want := unhex(t, "0000 0002 'id'"); !bytes.Equal(key, want) {
				t.Errorf("key % x, should be % x", key, want)
			}
			if want := unhex(t, c.value); !bytes.Equal(value, want) {
				t.Errorf("value\n% x, should be\n% x", value, want)
			}
			if len(key)+len(value) > r.Size() {
				t.Errorf("%d bytes, said to be %d at most", len(key)+len(value), r.Size())
			}
			again, err := DecodeRecord(unhex(t, "0000 0002 'id'"), unhex(t, c.value))
			assert.True(t, err == nil && reflect.DeepEqual(again, r), "read as %+v, %v", again, err)
		})
	}
	key, value := (&Record{TransactionalID: "id"}).Encode()
	if again, err := DecodeRecord(key, value); value != nil || err != nil || again.(*Record).Value != nil {
		t.Errorf("tombstone % x is read as %+v, %v", value, again, err)
	}
}

// What others may have written is taken as far as it makes sense.
func TestOddRecordsAreReadAsFarAsTheyMakeSense(t *testing.T) {
	plain := Value{Producer: pair{5, 3}, Timeout: 60_000, Updated: 7, Start: none, Previous: none, Next: noPair, Last: none}
	ongoing := plain
	ongoing.State, ongoing.Start, ongoing.Topics = Ongoing, 6, []topic{{"t", []int32{0, 2}}}
	rotates := plain
	rotates.State, rotates.Next = PrepareCommit, pair{9, 0}
	for _, c := range []struct {
		what, value string
		want        Value
	}{
		{"version 0", "0000 0000000000000005 0003 0000ea60 01 00000001 0001 't' 00000002 00000000 00000002 0000000000000007 0000000000000006", ongoing},
		{"version 0 without partitions", "0000 0000000000000005 0003 0000ea60 00 ffffffff 0000000000000007 ffffffffffffffff", plain},
		{"partitions in another order and again", "0001 0000000000000005 0003 0000ea60 01 03 02 't' 03 00000002 00000000 00 02 't' 02 00000002 00 0000000000000007 0000000000000006 00", ongoing},
		{"a topic without partitions", "0001 0000000000000005 0003 0000ea60 01 03 02 't' 03 00000000 00000002 00 02 'u' 01 00 0000000000000007 0000000000000006 00", ongoing},
		{"partitions in Empty", "0001 0000000000000005 0003 0000ea60 00 02 02 't' 02 00000002 00 0000000000000007 ffffffffffffffff 00", plain},
		{"unknown tags, of a topic too", "0001 0000000000000005 0003 0000ea60 01 02 02 't' 03 00000000 00000002 01 09 01 ff 0000000000000007 0000000000000006 01 09 02 0102", ongoing},
		{"our tag in another size", "0001 0000000000000005 0003 0000ea60 00 00 0000000000000007 ffffffffffffffff 01 904e 01 07", plain},
		{"a next producer without its epoch", "0001 0000000000000005 0003 0000ea60 02 01 0000000000000007 ffffffffffffffff 01 01 08 0000000000000009", rotates},
		{"a next producer of what is over", "0001 0000000000000005 0003 0000ea60 00 00 0000000000000007 ffffffffffffffff 02 01 08 0000000000000009 03 02 0000", plain},
	} {
		t.Run(c.what, func(t *testing.T) {
			r, err := DecodeRecord(unhex(t, "0000 0002 'id'"), unhex(t, c.value))
			assert.True(t, err == nil && reflect.DeepEqual(r.(*Record).Value, &c.want), "read as %+v, %v, should be %+v", r, err, c.want)
		})
	}
}

func TestRecordsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, c := range []struct {
		what, key, value string
		unknown          bool
	}{
		{"no key", "", "", false},
		{"a key of another kind", "0001 0002 'id'", "", true},
		{"a key cut short", "0000 0003 'id'", "", false},
		{"a value cut short", "0000 0002 'id'", "00", false},
		{"a newer value", "0000 0002 'id'", "0002 0000000000000005 0003", true},
		{"state 6", "0000 0002 'id'", "0001 0000000000000005 0003 0000ea60 06 00 0000000000000007 ffffffffffffffff 00", false},
		{"state -1", "0000 0002 'id'", "0001 0000000000000005 0003 0000ea60 ff 00 0000000000000007 ffffffffffffffff 00", false},
		{"no producer id", "0000 0002 'id'", "0001 ffffffffffffffff 0003 0000ea60 00 00 0000000000000007 ffffffffffffffff 00", false},
		{"no epoch", "0000 0002 'id'", "0001 0000000000000005 ffff 0000ea60 00 00 0000000000000007 ffffffffffffffff 00", false},
		{"very many topics", "0000 0002 'id'", "0001 0000000000000005 0003 0000ea60 01 ffffffff07 00", false},
		{"very many topics, version 0", "0000 0002 'id'", "0000 0000000000000005 0003 0000ea60 01 7fffffff 00", false},
		{"very many partitions", "0000 0002 'id'", "0001 0000000000000005 0003 0000ea60 01 02 02 't' ffffffff07 00", false},
		{"very many tags", "0000 0002 'id'", "0001 0000000000000005 0003 0000ea60 00 00 0000000000000007 ffffffffffffffff ffffffff07", false},
		{"very many tags of a topic", "0000 0002 'id'", "0001 0000000000000005 0003 0000ea60 01 02 02 't' 02 00000000 ffffffff07", false},
	} {
		t.Run(c.what, func(t *testing.T) {
			r, err := DecodeRecord(unhex(t, c.key), unhex(t, c.value))
			assert.MustFalse(t, c.value == "" && c.what != "a key of another kind" && err == nil, "read as %+v", r)
			assert.True(t, err != nil && errors.Is(err, machine.ErrUnknownRecord) == c.unknown, "read as %+v, %v", r, err)
		})
	}
}

// FuzzDecodeRecord: what can be read can be lived with. A shard that loads it keeps
// its invariants, and its digest is that of its own record.
func FuzzDecodeRecord(f *testing.F) {
	for _, c := range wireRecords {
		key, value := (&Record{"id", &c.record}).Encode()
		f.Add(key, value)
		old := kmsg.NewTxnMetadataValue()
		assert.Must(f, old.ReadFrom(value))
		old.Version = 0
		f.Add(key, old.AppendTo(nil))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		r, err := DecodeRecord(key, value)
		if err != nil {
			return
		}
		key, value = r.Encode()
		if len(key)+len(value) > r.Size() {
			t.Errorf("%d bytes, said to be %d at most", len(key)+len(value), r.Size())
		}
		again, err := DecodeRecord(key, value)
		assert.MustTrue(t, err == nil && reflect.DeepEqual(again, r), "%+v is read again as %+v, %v", r, again, err)
		s := newScenario(t)
		s.log = []machine.Record{r}
		s.nextID = 1 << 40
		s.load()
		s.check("after the load")
		id := r.(*Record).TransactionalID
		for range 3 {
			s.wait(s.args(words("wait 15s")))
			for _, cmd := range []string{"init a", "add a t:0", "commit a", "abort a v=4"} {
				a := s.args(words(cmd))
				a.D.CmdArgs = append(a.D.CmdArgs, arg("id", id))
				s.command(a.D)
				s.check(cmd)
			}
			if len(s.open) > 0 {
				s.answer(s.args(words("answer")))
			}
		}
	})
}

// The tag of our own is written as Kafka's are.
func TestTheTagOfTheLastEpochIsOneThatKafkaDoesNotUse(t *testing.T) {
	if got := binary.AppendUvarint(nil, lastTag); !bytes.Equal(got, []byte{0x90, 0x4e}) {
		t.Errorf("% x", got)
	}
}
