package words

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %q, want %q", what, got, want)
	}
}

func TestPast(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Minute: "minute", time.Hour: "hour", 24 * time.Hour: "day",
		30 * time.Minute: "30m", 2 * time.Hour: "2h", 7 * 24 * time.Hour: "7d",
	} {
		same(t, d.String(), Past(d), want)
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

func TestNumbers(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 2349: "2,349", 1234567: "1,234,567", -999: "-999", -1000: "-1,000", -123456: "-123,456"} {
		same(t, "a number", Number(n), want)
	}
	same(t, "a count", Plural(2349, "record"), "2,349 records")
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.Local)
	same(t, "today", Time(now.Add(-time.Hour), now), "11:00:00 UTC")
	same(t, "yesterday", Time(now.Add(-24*time.Hour), now), "2026-01-30 12:00:00 UTC")
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

func TestTheNearestNameIsOneThatASlipWouldGive(t *testing.T) {
	known := []string{"user", "payments", "orders", "orders-eu", "auto.create.topics.enable"}
	for name, want := range map[string]string{
		"payment": "payments", "paymetns": "payments", "order": "orders", "ordres-eu": "orders-eu",
		"auto.create": "auto.create.topics.enable", "auto": "", "invoices": "", "": "",
		"usr": "user", "set": "", // Of three letters two are too many to replace.
	} {
		same(t, name, Nearest(name, known), want)
	}
	same(t, "a slip", DidYouMean("payment", known), `; did you mean "payments"?`)
	same(t, "nothing near", DidYouMean("invoices", known), "")
	same(t, "the name itself", DidYouMean("orders", known), "")
}

func TestTimesAsPeopleWriteThem(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"-1h": now.Add(-time.Hour), "-2d": now.AddDate(0, 0, -2), "1000": time.UnixMilli(1000), "2026-01-31T08:00:00Z": now.Add(-4 * time.Hour),
		"2026-01-31": time.Date(2026, 1, 31, 0, 0, 0, 0, time.Local), "2026-01-31 08:00:00": time.Date(2026, 1, 31, 8, 0, 0, 0, time.Local),
	} {
		if got, ok := ParseTime(text, now); !ok || !got.Equal(want) {
			t.Errorf("%q is %v, %t", text, got, ok)
		}
	}
	for _, text := range []string{"", "-", "--1h", "-1", "1h", "yesterday", "-99999999d", "99999999999999999999"} {
		if got, ok := ParseTime(text, now); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}

var hostile = []string{
	"billing", "my group", "it's", `say "hi"`, "$HOME", "$(id)", "`id`", "a\nb", "a\n", "\n", "tab\there", "\x1b[2J'%s\\n", "-rf", "--", "-", "", "*", "~", "#x", "a;b", "a&b", `\`, `\n`,
	"é張", "\u202e", "\xff\xfe", "100%", "%d", "!x", "a=b", "retention.ms=…", "{a,b}", "\ufffd",
}

// run has a real shell take a command, of which it prints the words.
func run(t *testing.T, command string) []string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `printf '%s\001' `+command).Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x01"), "\x01")
}

func TestAShellReadsBackEveryWord(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here")
	}
	for _, word := range hostile {
		if got := run(t, Shell(word)); len(got) != 1 || got[0] != word {
			t.Errorf("%q is read as %q: %s", word, got, Shell(word))
		}
		if shown := Shell(word); strings.ContainsAny(shown, "\x1b\t\u202e") {
			t.Errorf("%q reaches the terminal: %q", word, shown)
		}
	}
}

// Names that begin with a dash come last, after --; of flags they are values.
func TestACommandHasItsNamesWhereTheyAreNames(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here")
	}
	for _, name := range hostile {
		got := run(t, Command("groups members remove", name, "--instance-id", name, "--yes"))
		want := []string{"muster", "groups", "members", "remove", name, "--instance-id", name, "--yes"}
		if strings.HasPrefix(name, "-") {
			want = []string{"muster", "groups", "members", "remove", "--instance-id", name, "--yes", "--", name}
		}
		if strings.Join(got, "\x01") != strings.Join(want, "\x01") {
			t.Errorf("%q: %q", name, got)
		}
	}
	same(t, "a plain command", Command("topics alter", "orders", "--partitions", "3"), "muster topics alter orders --partitions 3")
}
