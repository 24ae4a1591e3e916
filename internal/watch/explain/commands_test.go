package explain

import (
	"os/exec"
	"strings"
	"testing"

	"muster/internal/watch/groupview"
	"muster/internal/watch/lag"
)

var hostileNames = []string{"billing", "my group", "it's", `"x"`, "$(echo pwned)", "`id`", "a\nb", "-rf", "--all", "*", "a; b", "\x1b[2J"}

// Whatever a group is called, the commands of findings have its name as a word of its own
// when a real shell reads them, and not as a flag.
func TestCommandsSurviveAShellWhateverAGroupIsCalled(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here")
	}
	for _, name := range hostileNames {
		e := watchedOf(lag.GroupLag{Members: 1}, lag.PartitionLag{Topic: "-t", Committed: 10, Bounds: lag.Bounds{Start: 0, End: 15}, Lag: 3, Seconds: 700, Verdict: lag.NotCommitting, Deaths: 3, OvertakenIn: 60})
		e.Name, e.Group.Name = name, name
		total := int64(3)
		empty := evidenceOf(&groupview.Group{Name: name, State: groupview.Empty, TotalLag: &total})
		empty.Name = name
		found := 0
		for _, f := range append(findings(e), empty.Findings()...) {
			for _, command := range commandsIn(f.Change) {
				found++
				out, err := exec.Command("sh", "-c", `printf '%s\001' `+command).Output()
				args := strings.Split(strings.TrimSuffix(string(out), "\x01"), "\x01")
				if err != nil || strings.Contains(command, "groups ") && !last(args, name) || strings.Contains(command, "topics ") && !last(args, "-t") {
					t.Errorf("%q: %s is read as %q, %v", name, command, args, err)
				}
			}
		}
		if found < 4 {
			t.Errorf("%q: %d commands", name, found)
		}
	}
}

// A client may subscribe to a topic of any name, also one that no topic can have.
func TestTheCommandForAMissingTopicSurvivesAShell(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here")
	}
	for _, name := range hostileNames {
		var commands []string
		for _, f := range evidenceOf(stableGroup(memberOf("a", nil, name))).Findings() {
			commands = append(commands, commandsIn(f.Change)...)
		}
		if len(commands) != 1 {
			t.Fatalf("%q: the commands are %q", name, commands)
		}
		out, err := exec.Command("sh", "-c", `printf '%s\001' `+commands[0]).Output()
		if args := strings.Split(strings.TrimSuffix(string(out), "\x01"), "\x01"); err != nil || len(args) < 4 || !last(args, name) {
			t.Errorf("%q: %s is read as %q, %v", name, commands[0], args, err)
		}
	}
}

// commandsIn finds the commands of a sentence.
func commandsIn(text string) (out []string) {
	for {
		_, rest, found := strings.Cut(text, ": muster ")
		if !found {
			return out
		}
		end := len(rest)
		for _, stop := range []string{". ", " (and "} {
			if i := strings.Index(rest, stop); i >= 0 {
				end = min(end, i)
			}
		}
		out = append(out, "muster "+strings.TrimSuffix(rest[:end], "."))
		text = rest[end:]
	}
}

// last says whether a command has a name: after its verb or, if it begins with a dash,
// after -- at the end.
func last(args []string, name string) bool {
	if strings.HasPrefix(name, "-") {
		return len(args) > 2 && args[len(args)-1] == name && args[len(args)-2] == "--"
	}
	for i, a := range args {
		if a == name && !strings.HasPrefix(args[i-1], "-") {
			return true
		}
	}
	return false
}
