package words

import (
	"os/exec"
	"strings"
	"testing"
)

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
