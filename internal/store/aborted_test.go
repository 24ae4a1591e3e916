package store

import (
	"fmt"
	"testing"
)

// Entries come in the order of their markers, and are handed out in that of their first
// offsets: there are clients that take one after the other, and show what was aborted if
// one comes too late.
func TestAbortedTransactionsAreFoundInTheOrderOfTheirFirstOffsets(t *testing.T) {
	var l AbortedList
	l.Add(Aborted{1, 20, 30}, Aborted{2, 10, 40}, Aborted{3, 5, 50}, Aborted{4, 45, 60})
	for _, c := range []struct {
		from, next int64
		want       []Aborted
	}{
		{0, 100, []Aborted{{3, 5, 50}, {2, 10, 40}, {1, 20, 30}, {4, 45, 60}}},
		{31, 45, []Aborted{{3, 5, 50}, {2, 10, 40}}},
		{40, 46, []Aborted{{3, 5, 50}, {2, 10, 40}, {4, 45, 60}}},
		{61, 100, nil},
		{0, 5, nil},
	} {
		if got := l.Find(c.from, c.next); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("from %d on and below %d there are %v, want %v", c.from, c.next, got, c.want)
		}
	}
}
