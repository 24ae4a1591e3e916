package assert

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

// told is a test that remembers what it was told.
type told struct{ said []string }

func (*told) Helper() {}

func (t *told) Errorf(format string, args ...any) {
	t.said = append(t.said, "error: "+fmt.Sprintf(format, args...))
}

func (t *told) Fatalf(format string, args ...any) {
	t.said = append(t.said, "fatal: "+fmt.Sprintf(format, args...))
}

func TestWhatHoldsIsNotTold(t *testing.T) {
	var x told
	Must(&x, nil)
	NoError(&x, nil)
	Error(&x, io.EOF)
	MustError(&x, io.EOF)
	True(&x, true, "")
	MustTrue(&x, true, "")
	False(&x, false, "")
	MustFalse(&x, false, "")
	Equal(&x, 1, 1)
	MustEqual(&x, "a", "a", "the %d", 1)
	EqualSlices(&x, nil, []int{})
	MustEqualSlices(&x, []int{1}, []int{1})
	EqualMaps(&x, map[int]int{}, nil)
	MustEqualMaps(&x, map[int]int{}, nil)
	DeepEqual(&x, []any{1}, []any{1})
	MustDeepEqual(&x, []any{1}, []any{1})
	ErrorIs(&x, fmt.Errorf("read: %w", io.EOF), io.EOF)
	MustErrorIs(&x, io.EOF, io.EOF)
	Contains(&x, "abc", "b")
	EqualSlices(t, x.said, nil)
}

func TestWhatDoesNotHoldIsToldWithBothValues(t *testing.T) {
	other := errors.New("other")
	for _, c := range []struct {
		demand func(T)
		want   string
	}{
		{func(t T) { Must(t, other) }, "fatal: other"},
		{func(t T) { Must(t, other, "row %d", 3) }, "fatal: row 3: other"},
		{func(t T) { NoError(t, other) }, "error: other"},
		{func(t T) { Error(t, nil, "row %d", 3) }, "error: row 3: no error"},
		{func(t T) { MustError(t, nil) }, "fatal: no error"},
		{func(t T) { True(t, false, "%d rows", 3) }, "error: 3 rows"},
		{func(t T) { MustTrue(t, false, "%d rows", 3) }, "fatal: 3 rows"},
		{func(t T) { False(t, true, "%d rows", 3) }, "error: 3 rows"},
		{func(t T) { MustFalse(t, true, "%d rows", 3) }, "fatal: 3 rows"},
		{func(t T) { Equal(t, 1, 2) }, "error: got 1, want 2"},
		{func(t T) { Equal(t, "a", "b", "row %d", 3) }, `error: row 3: got "a", want "b"`},
		{func(t T) { Equal(t, "a\n", "b") }, "error: got\na\n\nwant\n\"b\""},
		{func(t T) { MustEqual(t, 1, 2, "rows") }, "fatal: rows: got 1, want 2"},
		{func(t T) { EqualSlices(t, []int{1}, nil) }, "error: got [1], want []"},
		{func(t T) { MustEqualSlices(t, []int{1}, nil) }, "fatal: got [1], want []"},
		{func(t T) { EqualMaps(t, map[int]int{1: 2}, nil) }, "error: got map[1:2], want map[]"},
		{func(t T) { MustEqualMaps(t, map[int]int{1: 2}, nil) }, "fatal: got map[1:2], want map[]"},
		{func(t T) { DeepEqual(t, []any{1}, []any{2}) }, "error: got [1], want [2]"},
		{func(t T) { MustDeepEqual(t, []any{1}, []any{2}) }, "fatal: got [1], want [2]"},
		{func(t T) { ErrorIs(t, other, io.EOF) }, "error: got other, want EOF"},
		{func(t T) { MustErrorIs(t, nil, io.EOF) }, "fatal: got <nil>, want EOF"},
		{func(t T) { Contains(t, "abc", "d", "the page") }, "error: the page: lacks \"d\":\nabc"},
	} {
		var x told
		c.demand(&x)
		EqualSlices(t, x.said, []string{c.want})
	}
}
