package txns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"muster/cmd/muster/internal/cli"
	"muster/internal/words"
)

// hangingAfter is how long after its last record an open transaction may hang: no
// transaction may take longer (transaction.max.timeout.ms of 15 minutes).
const hangingAfter = 15 * time.Minute

// openTxn is a transaction that is open in a partition. The fields are those of
// --json.
type openTxn struct {
	Topic            string    `json:"topic"`
	Partition        int32     `json:"partition"`
	ProducerID       int64     `json:"producer_id"`
	ProducerEpoch    int16     `json:"producer_epoch"`
	CoordinatorEpoch int32     `json:"coordinator_epoch"`
	FirstOffset      int64     `json:"first_offset"`
	LastWrite        time.Time `json:"last_write"`
	TransactionalID  string    `json:"transactional_id,omitempty"`

	hangs bool
}

// hangingFlags are the flags of muster txns find-hanging.
type hangingFlags struct {
	cli.Flags
	topics []string
	older  time.Duration
}

func findHangingCommand() *cobra.Command {
	var flags hangingFlags
	cmd := &cobra.Command{
		Use:   "find-hanging",
		Short: "Find transactions that are open in a partition and known to no coordinator",
		Long: `Find hanging transactions: open in a partition, last written to more than 15 minutes
ago, and known to no coordinator, so that nothing will end them. They keep readers of
committed records from all that follows. A muster broker ends them by itself
(transaction.max.timeout.ms and five minutes after it saw them first); one of another
kind needs muster txns abort, whose command line is printed for each.

With --json it prints an array of objects with the fields topic, partition, producer_id,
producer_epoch, coordinator_epoch, first_offset, last_write and transactional_id.`,
		Example: `  muster txns find-hanging
  muster txns find-hanging --topic orders --older-than 1m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return findHanging(cmd, &flags) },
	}
	flags.Add(cmd, "print a JSON array")
	cmd.Flags().StringSliceVar(&flags.topics, "topic", nil, "`topic` to look at; more than one with commas; all without it")
	cmd.Flags().DurationVar(&flags.older, "older-than", hangingAfter, "only what was last written to longer ago")
	return cmd
}

func findHanging(cmd *cobra.Command, flags *hangingFlags) error {
	if flags.older < 0 {
		return cli.Usagef("--older-than cannot be negative")
	}
	ctx := cmd.Context()
	admin, err := connect(ctx, &flags.Flags)
	if err != nil {
		return err
	}
	defer admin.Close()
	var open []openTxn
	topics, err := admin.ListTopicsWithInternal(ctx, flags.topics...)
	if err != nil {
		return cli.Plain(err)
	}
	for _, t := range topics.Sorted() {
		if t.Err != nil {
			return cli.TopicError(t.Topic, t.Err, "")
		}
		of, err := openTxns(ctx, admin, t.Topic, t.Partitions.Numbers()...)
		if err != nil {
			return err
		}
		open = append(open, of...)
	}
	if err := judge(ctx, admin, open, flags.older, time.Now()); err != nil {
		return err
	}
	hanging := slices.DeleteFunc(append([]openTxn{}, open...), func(t openTxn) bool { return !t.hangs })
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), hanging)
	}
	if len(hanging) == 0 {
		_, err := fmt.Fprintf(cmd.ErrOrStderr(), "no transaction hangs; %s open\n", words.Plural(len(open), "transaction")+words.Verb(len(open), " is", " are"))
		return err
	}
	table := cli.NewTable("PARTITION", ">PRODUCER", ">EPOCH", ">FIRST OFFSET", "LAST WRITE", "END IT WITH")
	for _, t := range hanging {
		name := fmt.Sprintf("%s-%d", t.Topic, t.Partition)
		table.Add(name, t.ProducerID, t.ProducerEpoch, t.FirstOffset, words.Duration(time.Since(t.LastWrite))+" ago",
			fmt.Sprintf("muster txns abort --partition %s --producer-id %d", name, t.ProducerID))
	}
	return table.Print(cmd.OutOrStdout())
}

// openTxns returns the transactions that are open in partitions of a topic.
func openTxns(ctx context.Context, admin *txnAdmin, topic string, partitions ...int32) ([]openTxn, error) {
	set := kadm.TopicsSet{}
	set.Add(topic, partitions...)
	described, err := admin.DescribeProducers(ctx, set)
	if err != nil && len(described) == 0 {
		return nil, cli.Plain(err)
	}
	var out []openTxn
	for _, p := range described.SortedPartitions() {
		if p.Err != nil {
			return nil, fmt.Errorf("%s-%d: %w", p.Topic, p.Partition, cli.Plain(p.Err))
		}
		for _, x := range p.ActiveProducers.Sorted() {
			if x.CurrentTxnStartOffset >= 0 {
				out = append(out, openTxn{
					Topic: p.Topic, Partition: p.Partition, ProducerID: x.ProducerID, ProducerEpoch: x.ProducerEpoch,
					CoordinatorEpoch: x.CoordinatorEpoch, FirstOffset: x.CurrentTxnStartOffset, LastWrite: time.UnixMilli(x.LastTimestamp).UTC(),
				})
			}
		}
	}
	return out, nil
}

// knownTxns returns what coordinators know of the producers of open transactions.
func knownTxns(ctx context.Context, admin *txnAdmin, open []openTxn, now time.Time) ([]State, error) {
	var ids []int64
	for _, t := range open {
		ids = append(ids, t.ProducerID)
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) == 0 {
		return nil, nil
	}
	listed, err := admin.ListTransactions(ctx, ids, nil)
	if err != nil {
		return nil, cli.Plain(err) // All coordinators must have answered.
	}
	return admin.describe(ctx, listed.TransactionalIDs(), now)
}

// judge finds out which of the open transactions no coordinator will end: those of
// a producer that none lists, or lists without that partition.
func judge(ctx context.Context, admin *txnAdmin, open []openTxn, older time.Duration, now time.Time) error {
	txns, err := knownTxns(ctx, admin, open, now)
	if err != nil {
		return err
	}
	for i := range open {
		t := &open[i]
		if t.hangs = now.Sub(t.LastWrite) >= older; !t.hangs {
			continue
		}
		for _, x := range txns {
			if x.Error != nil {
				return errors.New(*x.Error)
			}
			if x.ProducerID != t.ProducerID {
				continue
			}
			t.TransactionalID = x.ID
			if x.holds(t.Topic, t.Partition) {
				t.hangs = false
			}
		}
	}
	return nil
}
