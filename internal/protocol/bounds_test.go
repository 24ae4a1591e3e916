package protocol

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestBoundsComeBackAsTheyWereAsked(t *testing.T) {
	var tags kmsg.Tags
	if _, asks := AsksBounds(&tags); asks {
		t.Error("nobody asked")
	}
	if _, ok := GetBounds(&tags); ok {
		t.Error("nobody answered")
	}
	for _, readers := range [][]Reader{nil, {{"a", "10.0.0.1"}}, {{"", ""}, {strings.Repeat("x", 300), "::1"}}} {
		AskBounds(&tags, readers)
		if got, asks := AsksBounds(&tags); !asks || !slices.Equal(got, readers) {
			t.Errorf("%v came as %v, %t", readers, got, asks)
		}
	}
	AskBounds(&tags, make([]Reader, 2*MaxBoundsReaders))
	if got, _ := AsksBounds(&tags); len(got) != MaxBoundsReaders {
		t.Errorf("%d readers", len(got))
	}
	for _, b := range []Bounds{{0, 0, 0, 0, []int64{}}, {1, -1, 1 << 60, 7, []int64{0, 1 << 50}}} {
		SetBounds(&tags, b)
		if got, ok := GetBounds(&tags); !ok || !reflect.DeepEqual(got, b) {
			t.Errorf("%+v came as %+v, %t", b, got, ok)
		}
	}
}

func TestBoundsThatCannotBeReadAreNone(t *testing.T) {
	many := slices.Repeat([]byte{0, 0}, 100)
	for _, c := range []struct {
		value   []byte
		readers int
		ok      bool
	}{
		{[]byte{}, 0, false}, {[]byte{0x80}, 0, false}, {[]byte{5, 'a'}, 0, false}, {[]byte{2, 4}, 0, false}, {[]byte{1, 'a', 0x80, 1, 0}, 0, true},
		{[]byte{1, 'a', 9, 0}, 0, true}, {[]byte{0, 0, 0}, 1, false}, {[]byte{0, 0, 0, 0x80}, 1, false}, {many, MaxBoundsReaders, true},
	} {
		var tags kmsg.Tags
		tags.Set(TagBounds, c.value)
		if readers, asks := AsksBounds(&tags); !asks || len(readers) != c.readers {
			t.Errorf("%x: %v, %t", c.value, readers, asks)
		}
		if b, ok := GetBounds(&tags); ok != c.ok {
			t.Errorf("%x: %+v, %t", c.value, b, ok)
		}
	}
}
