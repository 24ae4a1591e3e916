package words

import (
	"testing"
	"time"
)

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %q, want %q", what, got, want)
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 20 * time.Microsecond: "0s", 200 * time.Millisecond: "200ms", time.Second: "1s", 1500 * time.Millisecond: "1.5s",
		45 * time.Second: "45s", 61 * time.Second: "1m1s", time.Hour: "1h", 26 * time.Hour: "1d2h", 90 * time.Minute: "1h30m", 7 * 24 * time.Hour: "7d",
		59*time.Minute + 59*time.Second + 900*time.Millisecond: "1h", 59*time.Second + 700*time.Millisecond: "1m",
	} {
		same(t, d.String(), Duration(d), want)
	}
}

func TestLists(t *testing.T) {
	same(t, "nothing", List(nil), "")
	same(t, "one", List([]string{"a"}), "a")
	same(t, "two", List([]string{"a", "b"}), "a and b")
	same(t, "three", List([]string{"a", "b", "c"}), "a, b and c")
	same(t, "five", List([]string{"a", "b", "c", "d", "e"}), "a, b, c and 2 more")
	same(t, "some of nine", ListSome([]string{"a", "b", "c", "d"}, 9), "a, b, c and 6 more")
	same(t, "one of nine", ListSome([]string{"a"}, 9), "a and 8 more")
	same(t, "more than counted", ListSome([]string{"a", "b"}, 0), "a and b")
}

func TestCounts(t *testing.T) {
	same(t, "none", Plural(0, "member"), "0 members")
	same(t, "one", Plural(1, "member"), "1 member")
	same(t, "a verb", Verb(1, "is", "are")+Verb(2, "is", "are"), "isare")
	same(t, "times", Times(1)+", "+Times(3), "once, 3 times")
	same(t, "capitals", Capital("the group")+Capital(""), "The group")
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local)
	same(t, "today", Time(now.Add(-time.Hour), now), "11:00:00")
	same(t, "yesterday", Time(now.Add(-24*time.Hour), now), "2026-01-30 12:00:00")
	same(t, "just now", Ago(now, now), "just now")
	same(t, "a while", Ago(now.Add(-90*time.Second), now), "1m30s ago")
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 5 << 30: "5.0 GiB", 1<<63 - 1: "8.0 EiB",
	} {
		same(t, "the size", Size(n), want)
	}
}
