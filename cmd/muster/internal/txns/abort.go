package txns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/internal/journal"
	"muster/internal/words"
)

// abortTxnFlags are the flags of muster txns abort.
type abortTxnFlags struct {
	cli.Flags
	partition  string
	producerID int64
	yes        bool
}

func abortCommand() *cobra.Command {
	var flags abortTxnFlags
	cmd := &cobra.Command{
		Use:   "abort ID | abort --partition TOPIC-N --producer-id P",
		Short: "Abort a transaction",
		Long: `Abort the open transaction of a transactional id, and fence its producer: whatever
it sends from now on is refused, and it must start again. Without an open
transaction the producer is fenced all the same.

With --partition and --producer-id it ends a hanging transaction, one that a partition
has and no coordinator knows (muster txns find-hanging finds them): an abort marker
is written to that partition alone. Where a coordinator still has the transaction this is
refused, since the partitions would disagree about its outcome.

At a terminal it asks first, unless --yes is given; without a terminal --yes is
needed.`,
		Example: `  muster txns abort payments-1
  muster txns abort --partition orders-0 --producer-id 1700000000000123 --yes`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeTxns(&flags.Flags),
		RunE: func(cmd *cobra.Command, args []string) error {
			hanging := cmd.Flags().Changed("partition") || cmd.Flags().Changed("producer-id")
			switch {
			case hanging && len(args) > 0:
				return cli.Usagef("give a transactional id, or --partition with --producer-id, not both")
			case hanging && (flags.partition == "" || flags.producerID < 0):
				return cli.Usagef("--partition and --producer-id go together")
			case hanging:
				return abortHanging(cmd, &flags)
			case len(args) == 0 || args[0] == "":
				return cli.Usagef("give a transactional id, or --partition with --producer-id")
			}
			return abortTxn(cmd, &flags, args[0])
		},
	}
	flags.Add(cmd, "print a JSON object")
	cmd.Flags().StringVar(&flags.partition, "partition", "", "partition of a hanging transaction, as `orders-0`")
	cmd.Flags().Int64Var(&flags.producerID, "producer-id", -1, "producer `id` of a hanging transaction")
	cmd.Flags().BoolVarP(&flags.yes, "yes", "y", false, "do not ask")
	return cmd
}

func (f *abortTxnFlags) confirm(cmd *cobra.Command, question string) error {
	if f.yes {
		return nil
	}
	return cli.Confirm(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), question, cli.IsTerminal(cmd.InOrStdin()))
}

func abortTxn(cmd *cobra.Command, flags *abortTxnFlags, id string) error {
	ctx := cmd.Context()
	admin, err := connect(ctx, &flags.Flags)
	if err != nil {
		return err
	}
	defer admin.Close()
	txns, err := admin.describe(ctx, []string{id}, time.Now())
	if err != nil {
		return err
	}
	if txns[0].Error != nil {
		return errors.New(*txns[0].Error)
	}
	if err := flags.confirm(cmd, fmt.Sprintf("%s Abort it, and fence its producer?", txns[0].sentence())); err != nil {
		return err
	}
	fenced, err := fence(ctx, admin.raw, id, int32(txns[0].TimeoutMillis))
	if err != nil {
		return txnError(id, err)
	}
	did, aborted := txns[0].fenced()
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{
			"transactional_id": id, "aborted": aborted, "producer_id": fenced.ProducerID, "producer_epoch": fenced.ProducerEpoch,
		})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "fenced %s: %s, and its producer must start again\n", id, did)
	return err
}

// fenced says what becomes of a transaction when its producer is fenced: what is
// decided stays as it is.
func (t State) fenced() (did string, aborted bool) {
	switch t.State {
	case "Ongoing", "PrepareAbort":
		return "the transaction was aborted", true
	case "PrepareCommit":
		return "the transaction had been committed before", false
	}
	return "no transaction was open", false
}

// fence takes a transactional id over, which aborts what is open and makes the
// producer's epoch an old one. While the abort is under way the coordinator says so.
func fence(ctx context.Context, client *kgo.Client, id string, timeoutMillis int32) (*kmsg.InitProducerIDResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, cli.RequestTimeout)
	defer cancel()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, timeoutMillis, -1, -1
	journal.MarkOperator(&req.UnknownTags)
	for {
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return nil, err
		}
		if err = kerr.ErrorForCode(resp.ErrorCode); !errors.Is(err, kerr.ConcurrentTransactions) {
			return resp, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("its transaction is still being ended after %s: %w", cli.RequestTimeout, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func abortHanging(cmd *cobra.Command, flags *abortTxnFlags) error {
	topic, partition, err := parseTopicPartition(flags.partition)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	admin, err := connect(ctx, &flags.Flags)
	if err != nil {
		return err
	}
	defer admin.Close()
	open, err := openTxns(ctx, admin, topic, partition)
	if err != nil {
		return err
	}
	var found *openTxn
	for i := range open {
		if open[i].ProducerID == flags.producerID {
			found = &open[i]
		}
	}
	if found == nil {
		return fmt.Errorf("producer %d has no transaction open in %s", flags.producerID, flags.partition)
	}
	if err := judge(ctx, admin, open, 0, time.Now()); err != nil {
		return err
	}
	if !found.hangs {
		return fmt.Errorf("the transaction is that of %s, whose coordinator knows it: %s ends it everywhere", found.TransactionalID, words.Command("txns abort", found.TransactionalID))
	}
	if err := flags.confirm(cmd, fmt.Sprintf("Write an abort marker of producer %d to %s? Its records from offset %d on will not be read.", flags.producerID, flags.partition, found.FirstOffset)); err != nil {
		return err
	}
	if err := writeAbort(ctx, admin, found); err != nil {
		return fmt.Errorf("%s: %w", flags.partition, cli.Plain(err))
	}
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), found)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "aborted the transaction of producer %d in %s\n", flags.producerID, flags.partition)
	return err
}

func writeAbort(ctx context.Context, admin *txnAdmin, t *openTxn) error {
	set := kadm.TopicsSet{}
	set.Add(t.Topic, t.Partition)
	answers, err := admin.WriteTxnMarkers(ctx, kadm.TxnMarkers{
		ProducerID: t.ProducerID, ProducerEpoch: t.ProducerEpoch, CoordinatorEpoch: max(t.CoordinatorEpoch, 0), Topics: set,
	})
	if err != nil {
		return err
	}
	answered := false
	answers.EachPartition(func(p kadm.TxnMarkersPartitionResponse) { answered, err = true, errors.Join(err, p.Err) })
	if !answered {
		return cli.ErrNoAnswer
	}
	return err
}
