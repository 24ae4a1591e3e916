package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/words"
)

func txnsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "txns",
		Aliases: []string{"txn", "transactions"},
		Short:   "List, describe and abort transactions, and find those that hang",
		Example: `  muster txns list --open
  muster txns describe payments-1        # what does it hold back, and what ends it?
  muster txns abort payments-1
  muster txns find-hanging`,
		Args: subcommandArgs,
		RunE: help,
	}
	cmd.AddCommand(txnsListCommand(), txnsDescribeCommand(), txnsAbortCommand(), txnsFindHangingCommand())
	return cmd
}

// txnState is what list and describe show of a transactional id. The fields are
// those of --json; what the broker did not tell is null.
type txnState struct {
	ID            string         `json:"transactional_id"`
	State         string         `json:"state"`
	ProducerID    int64          `json:"producer_id"`
	ProducerEpoch int16          `json:"producer_epoch"`
	Coordinator   int32          `json:"coordinator"`
	TimeoutMillis int64          `json:"timeout_ms"`
	StartedAt     *time.Time     `json:"started_at"`
	Partitions    []txnPartition `json:"partitions"`
	Error         *string        `json:"error"`

	now time.Time
}

// txnPartition is a partition that a transaction has not ended in yet.
type txnPartition struct {
	Topic            string `json:"topic"`
	Partition        int32  `json:"partition"`
	FirstOffset      *int64 `json:"first_offset,omitempty"`
	LastStableOffset *int64 `json:"last_stable_offset,omitempty"`
	HighWatermark    *int64 `json:"high_watermark,omitempty"`
}

func (p txnPartition) name() string { return fmt.Sprintf("%s-%d", p.Topic, p.Partition) }

// behind is how far readers of committed records are kept from the end.
func (p txnPartition) behind() *int64 {
	if p.LastStableOffset == nil || p.HighWatermark == nil {
		return nil
	}
	n := max(*p.HighWatermark-*p.LastStableOffset, 0)
	return &n
}

// holds says whether the transaction has not ended in a partition yet.
func (t txnState) holds(topic string, partition int32) bool {
	return slices.ContainsFunc(t.Partitions, func(p txnPartition) bool { return p.Topic == topic && p.Partition == partition })
}

// openFor returns since when the transaction has been open; false if none is.
func (t txnState) openFor() (time.Duration, bool) {
	if t.StartedAt == nil || !slices.Contains([]string{"Ongoing", "PrepareCommit", "PrepareAbort"}, t.State) {
		return 0, false
	}
	return max(t.now.Sub(*t.StartedAt), 0), true
}

// endsIn returns when the coordinator aborts the transaction unless it is ended
// before.
func (t txnState) endsIn() (time.Duration, bool) {
	open, ok := t.openFor()
	return max(time.Duration(t.TimeoutMillis)*time.Millisecond-open, 0), ok && t.State == "Ongoing"
}

// describeTxns asks for the state of transactional ids. Those that fail have an
// error instead.
func describeTxns(ctx context.Context, admin *kadm.Client, ids []string, now time.Time) ([]txnState, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	described, err := admin.DescribeTransactions(ctx, ids...)
	if err != nil && len(described) == 0 {
		return nil, plain(err)
	}
	var out []txnState
	for _, id := range ids {
		d, ok := described[id]
		if !ok {
			d.Err = errNoAnswer
		}
		t := txnState{
			ID: id, State: d.State, ProducerID: d.ProducerID, ProducerEpoch: d.ProducerEpoch, Coordinator: d.Coordinator,
			TimeoutMillis: int64(d.TimeoutMillis), Partitions: []txnPartition{}, now: now,
		}
		if d.Err != nil {
			text := txnError(id, d.Err).Error()
			t.Error = &text
		}
		if d.StartTimestamp > 0 {
			at := time.UnixMilli(d.StartTimestamp).UTC()
			t.StartedAt = &at
		}
		for _, p := range d.Topics.Sorted() {
			for _, n := range p.Partitions {
				t.Partitions = append(t.Partitions, txnPartition{Topic: p.Topic, Partition: n})
			}
		}
		out = append(out, t)
	}
	return out, nil
}

// txnError is the error that a broker answered for a transactional id.
func txnError(id string, err error) error {
	if errors.Is(err, kerr.TransactionalIDNotFound) {
		return fmt.Errorf("there is no transactional id %q", id)
	}
	return fmt.Errorf("transactional id %s: %w", id, plain(err))
}

// partitionNames words partitions.
func partitionNames(list []txnPartition) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.name()
	}
	return words.List(names)
}

// parseTopicPartition reads topic-partition, as in orders-0.
func parseTopicPartition(text string) (topic string, partition int32, err error) {
	i := strings.LastIndexByte(text, '-')
	if i <= 0 {
		return "", 0, usagef("%q is no partition; write it as TOPIC-NUMBER, as in orders-0", text)
	}
	n, err := strconv.ParseInt(text[i+1:], 10, 32)
	if err != nil || n < 0 {
		return "", 0, usagef("%q is no partition; write it as TOPIC-NUMBER, as in orders-0", text)
	}
	return text[:i], int32(n), nil
}

// completeTxns completes arguments that are transactional ids.
func completeTxns(flags *clientFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		admin, err := flags.admin(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer admin.Close()
		listed, err := admin.ListTransactions(ctx, nil, nil)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ids := slices.DeleteFunc(listed.TransactionalIDs(), func(id string) bool {
			return !strings.HasPrefix(id, prefix) || slices.Contains(args, id)
		})
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
