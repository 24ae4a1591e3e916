package source

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheLatestEntriesAreShown(t *testing.T) {
	entries := []int{1, 2, 3, 4, 5}
	for limit, c := range map[int]struct {
		want []int
		says string
	}{
		0: {entries, ""}, 5: {entries, ""}, 9: {entries, ""},
		2: {[]int{4, 5}, "3 earlier entries are left out"}, 4: {[]int{2, 3, 4, 5}, "1 earlier entry is left out"},
	} {
		var said strings.Builder
		got := Latest(&HistoryFlags{limit: limit}, &said, entries)
		if !slices.Equal(got, c.want) || (c.says == "") != (said.Len() == 0) || !strings.HasPrefix(said.String(), c.says) {
			t.Errorf("of the latest %d there are %v; it says %q", limit, got, &said)
		}
	}
}

func TestHowFarToLookBack(t *testing.T) {
	for text, want := range map[string]time.Duration{"30m": 30 * time.Minute, "7d": 7 * 24 * time.Hour, "0s": 0, "-1h": 0, "0d": 0, "d": 0, "": 0} {
		f := HistoryFlags{since: text}
		if got, err := f.Since(); got != want || (err == nil) != (want > 0) {
			t.Errorf("%q is %v (%v)", text, got, err)
		}
	}
	f := HistoryFlags{since: "1h", limit: -1}
	if _, err := f.Since(); err == nil {
		t.Error("the limit is negative")
	}
}
