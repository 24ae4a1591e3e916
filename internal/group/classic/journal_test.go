package classic

import (
	"strings"
	"testing"

	"muster/internal/journal"
)

// The client may put what it likes into a reason; the journal keeps a part.
func TestJournalCutsReasons(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"closing", "closing"},
		{strings.Repeat("x", 255), strings.Repeat("x", 255)},
		{strings.Repeat("x", 256), strings.Repeat("x", 255)},
		{strings.Repeat("é", 300), strings.Repeat("é", 255)},
	} {
		if got := Trigger(journal.TriggerLeft, &Member{}, &c.in).Reason; got != c.want {
			t.Errorf("a reason of %d bytes is kept as %d bytes", len(c.in), len(got))
		}
	}
	m := &Member{}
	if got := Trigger(journal.TriggerLeft, m, nil).Reason; got != "" {
		t.Errorf("no reason is kept as %q", got)
	}
}
