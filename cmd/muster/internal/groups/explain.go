package groups

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/cmd/muster/internal/txns"
	"muster/internal/journal"
	"muster/internal/watch/explain"
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

// explainFlags are the flags of muster groups explain.
type explainFlags struct {
	cli.Flags
	since string
	limit int
}

func explainCommand() *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain NAME",
		Short: "Say why a group rebalanced, and what is odd about it",
		Long: `Say in plain sentences why a group rebalanced lately: who joined, left, went
silent or changed its subscription, how long the group waited and for whom, and
which partitions moved. Of a group of the consumer protocol (KIP-848) it says why its
epoch rose, who has not given up partitions that others wait for, since when, and when
the broker ends that. Then what else happened to it: a process that lost its
place to another, offsets that were reset or expired. Then what is odd about the
group now, and what to change.

The past comes from the group journal, which a muster broker keeps in the topic
` + source.GroupJournal.Topic + `. With other brokers only the second part is known.

With --json it prints one object with the fields name, type, state, protocol_type,
assignor, members, total_lag, text, journal (whether there is one),
since_seconds, rebalance_count, under_way (started, text, entry; null if no
rebalance is), rebalances (started, settled, generation, type, took_seconds,
join_seconds, sync_seconds, members_before, members_after, partitions_moved,
partitions, text, entry), event_count, events (time, kind, text, entry) and
findings (id, text, change). Each entry is what the broker wrote to the journal.`,
		Example: `  muster groups explain billing
  muster groups explain billing --since 24h --limit 10
  muster groups explain billing --json | jq -r '.findings[].id'`,
		Args:              cli.One("group"),
		ValidArgsFunction: cli.CompleteGroups(&flags.Flags, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return explainGroup(cmd, &flags, args[0]) },
	}
	flags.Add(cmd, "print a JSON object")
	cmd.Flags().StringVar(&flags.since, "since", "1h", "how `long` to look back: 30m, 24h, 7d")
	cmd.Flags().IntVarP(&flags.limit, "limit", "n", 3, "tell of the latest `N` rebalances, and of as many other events; 0 for all")
	return cmd
}

func explainGroup(cmd *cobra.Command, flags *explainFlags, name string) error {
	since, err := source.ParseSince(flags.since)
	if err != nil {
		return err
	}
	if flags.limit < 0 {
		return cli.Usagef("--limit cannot be negative")
	}
	e, err := flags.gather(cmd, name, since)
	if err != nil {
		return err
	}
	explained := e.Explain(flags.limit)
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), explained)
	}
	_, err = io.WriteString(cmd.OutOrStdout(), FormatExplanation(explained))
	return err
}

// gather asks for all that there is to know about a group.
func (f *explainFlags) gather(cmd *cobra.Command, name string, since time.Duration) (*explain.Evidence, error) {
	ctx := cmd.Context()
	client, err := f.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	loader := source.NewLoader(&f.Flags, client)
	g, err := loader.One(ctx, name)
	if err != nil {
		return nil, err
	}
	e := &explain.Evidence{Name: name, Group: g, Journal: true, Partitions: loader.PartitionCounts(), Now: time.Now(), Since: since}
	e.Entries, err = source.GroupJournal.Read(ctx, &f.Flags, e.Now.Add(-since), name)
	if errors.Is(err, source.GroupJournal.ErrNone) {
		e.Journal, err = false, nil
	}
	if err != nil {
		return nil, err
	}
	if g == nil && len(e.Entries) == 0 {
		return nil, &groupview.NoGroupError{Name: name}
	}
	if g != nil {
		if err := loader.AddLagSeconds(ctx, g, time.Now()); err != nil {
			return nil, err
		}
		if e.Held, err = txns.FindHeldBack(ctx, client, g, e.Now); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// format words it all for people.
func FormatExplanation(x *explain.Explanation) string {
	var out strings.Builder
	cli.WriteWrapped(&out, "", x.Text)
	if u := x.UnderWay; u != nil {
		fmt.Fprintf(&out, "\nA rebalance is under way since %s (%s):\n", words.Time(u.Started, x.Now), words.Ago(u.Started, x.Now))
		for _, line := range u.Text {
			cli.WriteWrapped(&out, "  ", line)
		}
	}
	formatRebalances(&out, x)
	formatEvents(&out, x)
	fmt.Fprintln(&out)
	if len(x.Findings) == 0 {
		fmt.Fprintln(&out, "Nothing looks odd now.")
		return out.String()
	}
	fmt.Fprintln(&out, "What is odd:")
	for i, f := range x.Findings {
		cli.WriteWrapped(&out, fmt.Sprintf("%3d. ", i+1), f.Text)
		cli.WriteWrapped(&out, "     ", "What to do: "+f.Change)
	}
	return out.String()
}

func formatRebalances(out *strings.Builder, x *explain.Explanation) {
	since := words.Past(x.Since)
	fmt.Fprintln(out)
	switch {
	case !x.Journal:
		cli.WriteWrapped(out, "", words.Capital(source.GroupJournal.ErrNone.Error())+".")
	case x.RebalanceCount == 0:
		fmt.Fprintf(out, "The journal has no rebalance of the last %s; --since looks further back.\n", since)
	case x.RebalanceCount > len(x.Rebalances):
		fmt.Fprintf(out, "It rebalanced %d times in the last %s. The latest %d:\n", x.RebalanceCount, since, len(x.Rebalances))
	default:
		fmt.Fprintf(out, "It rebalanced %s in the last %s:\n", words.Times(x.RebalanceCount), since)
	}
	for _, r := range x.Rebalances {
		counter := "generation"
		if journal.Assigns(r.Type) {
			counter = "epoch"
		}
		fmt.Fprintf(out, "\n%s, %s (%s %d)\n", words.Time(r.Started, x.Now), words.Ago(r.Started, x.Now), counter, r.Generation)
		for _, line := range r.Text {
			cli.WriteWrapped(out, "  ", line)
		}
	}
	if x.QuietRestarts != "" {
		out.WriteByte('\n')
		cli.WriteWrapped(out, "", x.QuietRestarts)
	}
}

// formatEvents words what else happened, the latest first.
func formatEvents(out *strings.Builder, x *explain.Explanation) {
	if len(x.Events) == 0 {
		return
	}
	title := "What else happened"
	if x.EventCount > len(x.Events) {
		title += fmt.Sprintf(" (%d of %d)", len(x.Events), x.EventCount)
	}
	fmt.Fprintf(out, "\n%s:\n", title)
	for _, event := range x.Events {
		cli.WriteWrapped(out, "  "+words.Time(event.Time, x.Now)+"  ", event.Text)
	}
}
