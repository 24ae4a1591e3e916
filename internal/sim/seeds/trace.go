package seeds

import (
	"hash/fnv"
	"strings"
)

// trace keeps the last lines of what happened, and a hash of all of them.
type trace struct {
	lines []string
	keep  int
	total int
	hash  uint64
}

func (t *trace) add(line string) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(line))
	t.hash = t.hash*1_099_511_628_211 ^ h.Sum64()
	t.total++
	if t.lines = append(t.lines, line); len(t.lines) > 2*t.keep {
		t.lines = append([]string(nil), t.lines[len(t.lines)-t.keep:]...)
	}
}

func (t *trace) tail() string {
	return strings.Join(t.lines[max(0, len(t.lines)-t.keep):], "\n")
}
