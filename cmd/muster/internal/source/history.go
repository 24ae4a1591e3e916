package source

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/internal/words"
)

// HistoryFlags are the flags of commands that show a journal.
type HistoryFlags struct {
	cli.Flags
	since string
	limit int
}

// Add defines the flags on a command.
func (f *HistoryFlags) Add(cmd *cobra.Command) {
	f.Flags.Add(cmd, "print a JSON object per line")
	cmd.Flags().StringVar(&f.since, "since", "24h", "how `long` to look back: 30m, 24h, 7d")
	cmd.Flags().IntVarP(&f.limit, "limit", "n", 50, "show the latest `N` entries; 0 for all")
}

// Since checks the flags, and returns how long to look back.
func (f *HistoryFlags) Since() (time.Duration, error) {
	since, err := ParseSince(f.since)
	if err == nil && f.limit < 0 {
		err = cli.Usagef("--limit cannot be negative")
	}
	return since, err
}

// Latest returns the latest entries, as many as --limit says, and says to w how many it
// leaves out.
func Latest[E any](f *HistoryFlags, w io.Writer, entries []E) []E {
	left := len(entries) - f.limit
	if f.limit == 0 || left <= 0 {
		return entries
	}
	fmt.Fprintf(w, "%d earlier %s left out; --limit shows more\n", left, words.Verb(left, "entry is", "entries are"))
	return entries[left:]
}
