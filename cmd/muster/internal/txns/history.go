package txns

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/watch/explain"
	"muster/internal/words"
)

func historyCommand() *cobra.Command {
	var flags source.HistoryFlags
	cmd := &cobra.Command{
		Use:   "history [ID]",
		Short: "Show what happened to transactions, and who did it",
		Long: `Show the journal of transactions, the oldest entry first: producers that were fenced
because another took their transactional id, or that came too late and were refused;
transactions that timed out or that an operator aborted; those that no coordinator
knew, and that a broker aborted; ids that expired. What producers do by themselves, commit and abort, is
not in it.

With an ID only what happened to that transactional id is shown, or to that producer id where
no transactional id is known. A muster broker keeps the journal in the topic ` + source.TxnJournal.Topic + `,
for as long as muster.transaction.journal.retention.ms says.

With --json it prints the entries as the broker wrote them, one object per line.`,
		Example: `  muster txns history
  muster txns history payments-1 --since 7d
  muster txns history --json | jq -c '[.time, .transactionalId, .kind, .by.host]'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTxns(&flags.Flags),
		RunE:              func(cmd *cobra.Command, args []string) error { return txnHistory(cmd, &flags, args) },
	}
	flags.Add(cmd)
	return cmd
}

func txnHistory(cmd *cobra.Command, flags *source.HistoryFlags, ids []string) error {
	since, err := flags.Since()
	if err != nil {
		return err
	}
	now := time.Now()
	// What is known by a producer id only may be in any partition.
	entries, err := source.TxnJournal.Read(cmd.Context(), &flags.Flags, now.Add(-since))
	if err != nil && !errors.Is(err, source.TxnJournal.ErrNone) {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e explain.TxnEntry) bool { return len(ids) > 0 && e.Key != ids[0] })
	entries = source.Latest(flags, cmd.ErrOrStderr(), entries)
	if len(entries) == 0 {
		of := "transactions"
		if len(ids) > 0 {
			of = fmt.Sprintf("%q", ids[0])
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "the journal says nothing about %s in the last %s; --since looks further back\n", of, words.Past(since))
		return nil
	}
	var out strings.Builder
	for i := range entries {
		if e := &entries[i]; flags.JSON {
			out.Write(e.Raw)
			out.WriteByte('\n')
		} else {
			fmt.Fprintf(&out, "%s %s: %s\n", words.Time(e.Time, now), e.Name(), e.Line())
		}
	}
	_, err = io.WriteString(cmd.OutOrStdout(), out.String())
	return err
}

// lastEntries is how many entries of the journal describe shows of an id, and historySpan how
// far it looks back.
const (
	lastEntries = 5
	historySpan = 7 * 24 * time.Hour
)

// loadHistory adds the last entries of the journal to what is known of transactions.
func loadHistory(cmd *cobra.Command, client *cli.Flags, txns []State) {
	var ids []string
	for i := range txns {
		if txns[i].Error == nil {
			ids = append(ids, txns[i].ID)
		}
	}
	if len(ids) == 0 {
		return
	}
	entries, err := source.TxnJournal.Read(cmd.Context(), client, time.Now().Add(-historySpan), ids...)
	if err != nil && !errors.Is(err, source.TxnJournal.ErrNone) {
		fmt.Fprintf(cmd.ErrOrStderr(), "what happened before is not known: %v\n", err)
		return
	}
	for i := range txns {
		t := &txns[i]
		for _, e := range entries {
			if e.Key == t.ID {
				t.entries = append(t.entries, e)
			}
		}
		t.entries = t.entries[max(len(t.entries)-lastEntries, 0):]
		for _, e := range t.entries {
			t.History = append(t.History, e.Raw)
		}
	}
}

// printHistory prints the last entries of the journal, if there are any.
func (t State) printHistory(w io.Writer) error {
	if len(t.entries) == 0 {
		return nil
	}
	var out strings.Builder
	out.WriteString("\nLately:\n")
	for i := range t.entries {
		fmt.Fprintf(&out, "  %s %s\n", words.Time(t.entries[i].Time, t.now), t.entries[i].Line())
	}
	_, err := io.WriteString(w, out.String())
	return err
}
