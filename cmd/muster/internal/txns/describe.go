package txns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"muster/cmd/muster/internal/cli"
	"muster/internal/words"
)

func describeCommand() *cobra.Command {
	var client cli.Flags
	cmd := &cobra.Command{
		Use:   "describe ID...",
		Short: "Describe transactions: what they hold back, since when, and what ends them",
		Long: `Describe the transactions of transactional ids: state, producer, how long one has
been open, which partitions it has not ended in yet, and how far it keeps readers of
committed records from the end of each.

FIRST is the first offset of the transaction in the partition, STABLE the last stable
offset, END the high watermark, and HELD BACK the difference of the last two: what
readers with isolation.level=read_committed cannot see yet. A dash is what the broker does not
tell, or, under FIRST, a partition that nothing was written to so far.

Below stands what happened lately, if anything did: muster txns history shows more.

With --json it prints an array of objects with the fields of muster txns list, for
each partition topic, partition, first_offset, last_stable_offset and high_watermark, and
the last entries of the journal as history.`,
		Example:           `  muster txns describe payments-1`,
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: completeTxns(&client),
		RunE:              func(cmd *cobra.Command, args []string) error { return describeTxnsFor(cmd, &client, cli.Unique(args)) },
	}
	client.Add(cmd, "print a JSON array")
	return cmd
}

func describeTxnsFor(cmd *cobra.Command, client *cli.Flags, ids []string) error {
	ctx := cmd.Context()
	admin, err := connect(ctx, client)
	if err != nil {
		return err
	}
	defer admin.Close()
	txns, err := admin.describe(ctx, ids, time.Now())
	if err != nil {
		return err
	}
	var failed []error
	shown := []State{}
	for i := range txns {
		if txns[i].Error != nil {
			failed = append(failed, errors.New(*txns[i].Error))
		} else if err := loadHeldBack(ctx, admin, &txns[i]); err != nil {
			return err
		}
		shown = append(shown, txns[i])
	}
	loadHistory(cmd, client, shown)
	if client.JSON {
		failed = append(failed, cli.WriteJSON(cmd.OutOrStdout(), shown))
		return errors.Join(failed...)
	}
	printed := false
	for _, t := range shown {
		if t.Error != nil {
			continue
		}
		if printed {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		printed = true
		if err := printTxn(cmd.OutOrStdout(), t); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// loadHeldBack asks the partitions of a transaction where it began, and how far it
// keeps readers of committed records back. What fails stays unknown.
func loadHeldBack(ctx context.Context, admin *txnAdmin, t *State) error {
	if len(t.Partitions) == 0 {
		return nil
	}
	set := kadm.TopicsSet{}
	for _, p := range t.Partitions {
		set.Add(p.Topic, p.Partition)
	}
	producers, err := admin.DescribeProducers(ctx, set)
	if err != nil && len(producers) == 0 {
		return cli.Plain(err)
	}
	ends, err := admin.ListEndOffsets(ctx, set.Topics()...)
	if err != nil && len(ends) == 0 {
		return cli.Plain(err)
	}
	stable, err := admin.ListCommittedOffsets(ctx, set.Topics()...)
	if err != nil && len(stable) == 0 {
		return cli.Plain(err)
	}
	for i := range t.Partitions {
		p := &t.Partitions[i]
		p.HighWatermark = cli.ListedOffset(ends, p.Topic, p.Partition)
		p.LastStableOffset = cli.ListedOffset(stable, p.Topic, p.Partition)
		if x, ok := producers[p.Topic].Partitions[p.Partition].ActiveProducers[t.ProducerID]; ok && x.CurrentTxnStartOffset >= 0 {
			p.FirstOffset = &x.CurrentTxnStartOffset
		}
	}
	return nil
}

func printTxn(w io.Writer, t State) error {
	var out strings.Builder
	fmt.Fprintf(&out, "Transactional id:  %s\n", t.ID)
	fmt.Fprintf(&out, "State:             %s\n", t.State)
	fmt.Fprintf(&out, "Producer:          id %d, epoch %d\n", t.ProducerID, t.ProducerEpoch)
	fmt.Fprintf(&out, "Held by:           %s\n", t.holder())
	fmt.Fprintf(&out, "Coordinator:       broker %d\n", t.Coordinator)
	fmt.Fprintf(&out, "Timeout:           %s\n", words.Duration(time.Duration(t.TimeoutMillis)*time.Millisecond))
	out.WriteByte('\n')
	cli.WriteWrapped(&out, "", t.sentence())
	if _, err := io.WriteString(w, out.String()); err != nil {
		return err
	}
	if len(t.Partitions) == 0 {
		return t.printHistory(w)
	}
	fmt.Fprintln(w)
	table := cli.NewTable("PARTITION", ">FIRST", ">STABLE", ">END", ">HELD BACK")
	for _, p := range t.Partitions {
		table.Add(p.name(), cli.OrDash(p.FirstOffset, cli.FormatInt), cli.OrDash(p.LastStableOffset, cli.FormatInt), cli.OrDash(p.HighWatermark, cli.FormatInt), cli.OrDash(p.behind(), cli.FormatInt))
	}
	if err := table.Print(w); err != nil {
		return err
	}
	return t.printHistory(w)
}

// sentence says what people want to know: what is held back since when, and what
// ends it.
func (t State) sentence() string {
	open, ok := t.openFor()
	if !ok {
		return fmt.Sprintf("No transaction of %s is open; it holds nothing back.", t.ID)
	}
	text := fmt.Sprintf("Its transaction has been open for %s in %s: %s.",
		words.Duration(open), words.Plural(len(t.Partitions), "partition"), partitionNames(t.Partitions))
	if len(t.Partitions) == 0 {
		text = fmt.Sprintf("Its transaction has been open for %s.", words.Duration(open))
	}
	if worst := t.worst(); worst != nil {
		text += fmt.Sprintf(" Readers of committed records see %s up to offset %d, %s before its end.",
			worst.name(), *worst.LastStableOffset, words.Plural(int(*worst.behind()), "offset"))
	}
	switch t.State {
	case "PrepareCommit", "PrepareAbort":
		outcome := "committed"
		if t.State == "PrepareAbort" {
			outcome = "aborted"
		}
		return text + fmt.Sprintf(" It is decided that it is %s; what is missing are the markers in those partitions, which their leaders are asked for again and again.", outcome)
	}
	ends, _ := t.endsIn()
	if ends == 0 {
		return text + " Its time is over: the coordinator aborts it within seconds."
	}
	return text + fmt.Sprintf(" It ends when its producer commits or aborts it, when another producer takes over the id, by %s, or else by its timeout in %s.", words.Command("txns abort", t.ID), words.Duration(ends))
}

// worst returns the partition in which most is held back, nil if that is not known or
// nothing is.
func (t State) worst() *txnPartition {
	var out *txnPartition
	for i := range t.Partitions {
		p := &t.Partitions[i]
		if n := p.behind(); n != nil && *n > 0 && (out == nil || *n > *out.behind()) {
			out = p
		}
	}
	return out
}
