package groups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/journal"
	"muster/internal/watch/explain"
	"muster/internal/words"
)

// historyFlags are the flags of muster groups history.
type historyFlags struct {
	source.HistoryFlags
	follow bool
	all    bool
}

func historyCommand() *cobra.Command {
	var flags historyFlags
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Show the journal of a group",
		Long: `Show the journal of a group, the oldest entry first: rebalances, restarts of
static members and processes that lost their place to another, loads of its
coordinator, committed offsets that were reset, deleted or expired, its end. A
muster broker keeps the journal in the topic ` + source.GroupJournal.Topic + `, for as long as
muster.group.journal.retention.ms says.

MEMBERS is the number before and after. MOVED is how many partitions changed
hands, or lost their owner. TOOK is the time from the first reason to the new
assignment. The start of a rebalance is shown only if its end is not in the
journal, or with --all. GENERATION is the group epoch of a consumer group (KIP-848),
whose starts are epoch (it rose) and target (the broker shared out the partitions).

With --json it prints the entries as the broker wrote them, one object per line.`,
		Example: `  muster groups history billing
  muster groups history billing --since 7d --limit 100
  muster groups history billing --follow
  muster groups history billing --json | jq -c '[.time, .kind, .generation]'`,
		Args:              cli.One("group"),
		ValidArgsFunction: cli.CompleteGroups(&flags.Flags, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return groupHistory(cmd, &flags, args[0]) },
	}
	flags.Add(cmd)
	f := cmd.Flags()
	f.BoolVarP(&flags.follow, "follow", "f", false, "go on and show entries as they are written")
	f.BoolVar(&flags.all, "all", false, "show the start of every rebalance, too")
	return cmd
}

func groupHistory(cmd *cobra.Command, flags *historyFlags, name string) error {
	since, err := flags.Since()
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	j, err := source.GroupJournal.Open(ctx, &flags.Flags, time.Now().Add(-since), flags.follow, name)
	if err != nil {
		return err
	}
	defer j.Close()
	entries, err := j.Read(ctx)
	if err != nil {
		return err
	}
	if !flags.all && !flags.JSON {
		entries = explain.WithoutStarts(entries)
	}
	entries = source.Latest(&flags.HistoryFlags, cmd.ErrOrStderr(), entries)
	show := flags.printer(cmd.OutOrStdout())
	if len(entries) == 0 && !flags.follow {
		fmt.Fprintf(cmd.ErrOrStderr(), "the journal says nothing about a group %q in the last %s; --since looks further back\n", name, words.Past(since))
		return nil
	}
	if err := show(entries); err != nil {
		return err
	}
	if !flags.follow {
		return nil
	}
	return followJournal(ctx, j, show)
}

// followJournal shows entries until the user has seen enough.
func followJournal(ctx context.Context, j *source.Reader[explain.Entry], show func([]explain.Entry) error) error {
	for {
		entries, err := j.Poll(ctx)
		if err == nil {
			err = show(entries)
		}
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// historyRow is the form of a line. The widths are fixed, so that lines can be
// printed as they come; what has no end is last.
const historyRow = "%-19s  %-8s  %10v  %7s  %5s  %7s  %s\n"

// printer returns a function that shows entries.
func (f *historyFlags) printer(w io.Writer) func([]explain.Entry) error {
	titled := false
	return func(entries []explain.Entry) error {
		var out strings.Builder
		if !titled && !f.JSON {
			fmt.Fprintf(&out, historyRow, "TIME", "WHAT", "GENERATION", "TOOK", "MOVED", "MEMBERS", "WHY")
			titled = true
		}
		for i := range entries {
			if f.JSON {
				out.Write(entries[i].Raw)
				out.WriteByte('\n')
			} else {
				writeHistoryRow(&out, &entries[i])
			}
		}
		_, err := io.WriteString(w, out.String())
		return err
	}
}

// writeHistoryRow words an entry as a line of the table.
func writeHistoryRow(w io.Writer, e *explain.Entry) {
	what, took, moved, members := string(e.Kind), "-", "-", "-"
	var generation any = e.Generation
	switch e.Kind {
	case journal.KindStarted:
		what = "started"
	case journal.KindSettled:
		what, took = "settled", words.Duration(e.Took())
		moved = strconv.Itoa(e.MoveN)
		members = fmt.Sprintf("%d→%d", e.Before, e.After)
	case journal.KindEpoch:
		what, members = "epoch", fmt.Sprintf("%d→%d", e.Before, e.After)
	case journal.KindTarget:
		what, moved = "target", strconv.Itoa(e.MoveN)
	case journal.KindUpgraded, journal.KindDowngraded:
		what, members = strings.TrimPrefix(string(e.Kind), "group-"), strconv.Itoa(e.Before)
	case journal.KindReplaced:
		what = "replaced"
	case journal.KindFenced:
		what = "fenced"
	case journal.KindLoaded:
		what, members = "loaded", strconv.Itoa(e.After)
	case journal.KindDeleted:
		what = "deleted"
	case journal.KindOffsetsReset, journal.KindOffsetsDeleted, journal.KindOffsetsExpired:
		what = "offsets"
	case journal.KindResetStarted, journal.KindResetDropped:
		what = "reset"
	case journal.KindSuspected:
		what, generation = "suspect", "-"
	}
	fmt.Fprintf(w, historyRow, e.Time.Local().Format(time.DateTime), what, generation, took, moved, members, e.Line())
}
