package txns

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/internal/auth"
	"muster/internal/words"
)

// txnBatch is how many transactional ids we ask about at a time.
const txnBatch = 500

// txnStates are the states that a transactional id may be listed in.
var txnStates = []string{"Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"}

// listTxnsFlags are the flags of muster txns list.
type listTxnsFlags struct {
	cli.Flags
	states []string
	open   bool
	longer time.Duration
}

func listCommand() *cobra.Command {
	var flags listTxnsFlags
	cmd := &cobra.Command{
		Use:     "list [REGEX]",
		Aliases: []string{"ls"},
		Short:   "List transactional ids with their state",
		Long: `List transactional ids: all of them, or those that match a regular expression
(anywhere in the id; anchor it with ^ and $).

OPEN FOR is how long a transaction has been open, PARTITIONS in how many partitions
it has not ended yet, and TIMES OUT IN when its coordinator aborts it, unless the
producer ends it before.

With --json it prints an array of objects with the fields transactional_id, state,
producer_id, producer_epoch, coordinator, timeout_ms, started_at (null unless a
transaction is open), partitions, client_id and host (of the producer; null where the
broker does not tell) and error.`,
		Example: `  muster txns list
  muster txns list --open --longer-than 1m
  muster txns list '^payments-' --state Ongoing --json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return listTxns(cmd, &flags, strings.Join(args, ""))
		},
	}
	flags.Add(cmd, "print a JSON array")
	cmd.Flags().StringSliceVar(&flags.states, "state", nil, "`state` to list, as Ongoing or CompleteCommit; more than one with commas")
	cmd.Flags().BoolVar(&flags.open, "open", false, "only transactions that have begun and not ended")
	cmd.Flags().DurationVar(&flags.longer, "longer-than", 0, "only transactions that have been open for longer, as 30s or 5m")
	cli.CompleteValues(cmd, "state", txnStates...)
	return cmd
}

func listTxns(cmd *cobra.Command, flags *listTxnsFlags, filter string) error {
	match, err := regexp.Compile(filter)
	if err != nil {
		return cli.Usagef("%q is no regular expression: %s", filter, err)
	}
	if err := flags.check(); err != nil {
		return err
	}
	ctx := cmd.Context()
	admin, err := connect(ctx, &flags.Flags)
	if err != nil {
		return err
	}
	defer admin.Close()
	listed, err := admin.ListTransactions(ctx, nil, flags.states)
	if err != nil {
		return cli.Plain(err)
	}
	ids := slices.DeleteFunc(listed.TransactionalIDs(), func(id string) bool { return !match.MatchString(id) })
	slices.Sort(ids)
	txns := []State{}
	for part := range slices.Chunk(ids, txnBatch) {
		states, err := admin.describe(ctx, part, time.Now())
		if err != nil {
			return err
		}
		for _, t := range states {
			if open, ok := t.openFor(); ok && open >= flags.longer || !ok && !flags.open && flags.longer == 0 {
				txns = append(txns, t)
			}
		}
	}
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), txns)
	}
	if len(txns) == 0 {
		flags.tellNone(cmd, admin.raw, filter)
		return nil
	}
	return printTxns(cmd.OutOrStdout(), txns)
}

// tellNone says why the list is empty.
func (f *listTxnsFlags) tellNone(cmd *cobra.Command, client *kgo.Client, filter string) {
	text := "there are no transactional ids"
	if hidden, ok := f.TellHidden(cmd.Context(), client, "transactional ids", auth.TransactionalID); ok {
		text = hidden
	} else if filter != "" || len(f.states) > 0 || f.open || f.longer > 0 {
		text = "no transaction matches"
	}
	fmt.Fprintln(cmd.ErrOrStderr(), text)
}

// check finds slips in states, which brokers take for states without
// transactions.
func (f *listTxnsFlags) check() error {
	for i, s := range f.states {
		n := slices.IndexFunc(txnStates, func(known string) bool { return strings.EqualFold(known, strings.TrimSpace(s)) })
		if n < 0 {
			return cli.Usagef("--state is one of %s, not %q", strings.Join(txnStates, ", "), s)
		}
		f.states[i] = txnStates[n]
	}
	if f.longer < 0 {
		return cli.Usagef("--longer-than cannot be negative")
	}
	return nil
}

func printTxns(w io.Writer, txns []State) error {
	t := cli.NewTable("TRANSACTIONAL ID", "STATE", ">PRODUCER", ">EPOCH", ">OPEN FOR", ">PARTITIONS", ">TIMES OUT IN")
	for _, x := range txns {
		if x.Error != nil {
			t.Add(x.ID, "?", "-", "-", "-", "-", "-")
			continue
		}
		open, ends := "-", "-"
		if d, ok := x.openFor(); ok {
			open = words.Duration(d)
		}
		if d, ok := x.endsIn(); ok {
			ends = words.Duration(d)
		}
		t.Add(x.ID, x.State, x.ProducerID, x.ProducerEpoch, open, len(x.Partitions), ends)
	}
	return t.Print(w)
}
