package pump

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"muster/internal/machine"
	"muster/internal/record"
)

func decodeNote(key, _ []byte) (machine.Record, error) {
	switch string(key) {
	case "unknown":
		return nil, fmt.Errorf("%w: a test's", machine.ErrUnknownRecord)
	case "bad":
		return nil, errors.New("cannot be read")
	}
	return note(key), nil
}

func TestBatchesComeBackAsTheyWereWritten(t *testing.T) {
	for what, b := range map[string]machine.Batch{
		"plain":         plain("a", "b"),
		"of a producer": {Records: plain("a").Records, Producer: &machine.Producer{ID: 7, Epoch: 3}},
		"transactional": {Records: plain("a").Records, Producer: &machine.Producer{ID: 7, Epoch: 3, Transactional: true}},
		"commit":        {Producer: &machine.Producer{ID: 7, Epoch: 3, Transactional: true}, Control: &machine.Control{Commit: true, CoordinatorEpoch: 9}},
		"abort":         {Producer: &machine.Producer{ID: 7, Epoch: 3, Transactional: true}, Control: &machine.Control{CoordinatorEpoch: 9}},
	} {
		t.Run(what, func(t *testing.T) {
			encoded, err := Encode(&b, time.UnixMilli(1234))
			if err != nil {
				t.Fatal(err)
			}
			if err := encoded.Check(); err != nil {
				t.Fatal(err)
			}
			if got := len(encoded) - record.HeaderSize; b.Control == nil && got > b.Size() {
				t.Errorf("has %d bytes of records, said to be at most %d", got, b.Size())
			}
			encoded.SetBaseOffset(40)
			got, err := Decode(encoded, decodeNote, func(o int64, err error) { t.Errorf("offset %d: %v", o, err) })
			if err != nil {
				t.Fatal(err)
			}
			want := machine.Stored{BaseOffset: 40, Producer: b.Producer, Control: b.Control}
			for i, r := range b.Records {
				want.Records = append(want.Records, machine.StoredRecord{Offset: 40 + int64(i), Record: r})
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("read as %+v, should be %+v", got, want)
			}
		})
	}
}

// The marker is, byte for byte, what Kafka writes: 78 bytes in all.
func TestAMarkerIsInKafkasFormat(t *testing.T) {
	b, err := Encode(&machine.Batch{Producer: &machine.Producer{ID: 1}, Control: &machine.Control{Commit: true, CoordinatorEpoch: 2}}, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	if len(b) != 78 || b.Attributes() != 0x30 || b.BaseSequence() != -1 || b.Count() != 1 {
		t.Errorf("%d bytes, attributes %#x, sequence %d, %d records", len(b), b.Attributes(), b.BaseSequence(), b.Count())
	}
	if !bytes.Contains(b, []byte{0, 0, 0, 1, 12, 0, 0, 0, 0, 0, 2}) {
		t.Errorf("no key and value of a marker in % x", []byte(b))
	}
}

func TestRecordsThatCannotBeReadAreLeftOut(t *testing.T) {
	p := plain("a", "unknown", "bad", "b")
	encoded, err := Encode(&p, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	var told []int64
	got, err := Decode(encoded, decodeNote, func(o int64, _ error) { told = append(told, o) })
	if err != nil || len(got.Records) != 2 || got.Records[1].Offset != 3 {
		t.Errorf("read as %+v, %v", got, err)
	}
	if !reflect.DeepEqual(told, []int64{2}) {
		t.Errorf("told of %v, should be of offset 2 only", told)
	}
}

func TestMarkersOfOtherKindsAreLeftOutAndShortOnesRefused(t *testing.T) {
	tmpl := record.PlainTemplate()
	tmpl.Control = true
	for _, c := range []struct {
		key, value []byte
		fails      bool
	}{
		{[]byte{0, 0, 0, 5}, nil, false}, // A leader change, say.
		{[]byte{0, 0, 0}, nil, true},
		{[]byte{0, 0, 0, 1}, []byte{0, 0, 1}, true},
	} {
		b, err := record.Build(tmpl, []record.Record{{Key: c.key, Value: c.value}})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(b, decodeNote, nil)
		if (err != nil) != c.fails || got.Control != nil {
			t.Errorf("key % x, value % x: %+v, %v", c.key, c.value, got.Control, err)
		}
	}
}

// A load reads many batches. The list of the records of one is used for the next.
func TestTheListOfRecordsIsUsedAgain(t *testing.T) {
	var list []machine.StoredRecord
	for i, names := range [][]string{{"a", "b"}, {"c"}, {"d", "e"}} {
		batch := plain(names...)
		encoded, err := Encode(&batch, time.Unix(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeInto(list, encoded, decodeNote, nil)
		if err != nil || len(got.Records) != len(names) || got.Records[0].Record.(note) != note(names[0]) {
			t.Fatalf("%v, %v", got.Records, err)
		}
		if i > 0 && &got.Records[0] != &list[:1][0] {
			t.Error("another list")
		}
		list = got.Records
	}
}
