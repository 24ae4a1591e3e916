package group

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"muster/internal/group/modern"
)

// A member that has to let go of something may take the place of a static one meanwhile.
// Then it is at the beginning, in another epoch, and what it was to let go of is no one's.
// While the assignor is at work the timer of before fires. Were it obeyed, the member would
// be fenced for partitions that are not its own any more.
func TestATimerOfAnOlderEpochIsNotObeyed(t *testing.T) {
	s := newScenario(t)
	s.host = "10.0.0.1"
	lines := []string{
		"topics t=1:2000", "config interval=0s", // So many that the assignor is a task.
		"beat a timeout=10s", "tasks", "beat b instance=i", "tasks", "beat a ack",
		"beat b epoch=-2 instance=i", "beat a epoch=0 instance=i timeout=10s",
	}
	play := func(line string) {
		t.Helper()
		cmd, args, err := datadriven.ParseLine(line)
		must(t, err)
		commands[cmd](s, &datadriven.TestData{Cmd: cmd, CmdArgs: args})
	}
	for i, line := range lines {
		play(line)
		if c := s.shard.consumer("g"); i == 6 && c.Member("a").Now().State != modern.Unrevoked {
			t.Fatalf("the member has nothing to let go of: %+v", c.Member("a").Now())
		}
	}
	play("wait 10s")
	mem := s.shard.consumer("g").Member("a")
	if mem == nil {
		t.Fatal("the member is fenced")
	}
	play("tasks")
	if now := mem.Now(); now.State != modern.Stable || len(now.Assigned) != 2000 {
		t.Errorf("the member is %d with %d partitions", now.State, len(now.Assigned))
	}
}
