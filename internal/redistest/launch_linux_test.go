package redistest

import (
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A child that writes a snapshot would go on after its server was killed, and to a folder
// that is being removed.
func TestAKilledServerLeavesNoChild(t *testing.T) {
	n := Single(t).Nodes[0]
	do := func(args ...string) any {
		t.Helper()
		v, err := n.Do(args...)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for i := range 100 {
		do("SET", strconv.Itoa(i), "v")
	}
	do("CONFIG", "SET", "rdb-key-save-delay", "1000000") // A second for each key.
	do("BGSAVE")
	Eventually(t, "the child", func() bool {
		v, err := n.Do("INFO", "persistence")
		text, _ := v.(string)
		return err == nil && strings.Contains(text, "rdb_bgsave_in_progress:1")
	})
	pid := n.cmd.Process.Pid
	n.Kill()
	if err := syscall.Kill(-pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("a process of its group is left: %v", err)
	}
}
