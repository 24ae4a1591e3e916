// Package txns has the commands about transactions: list, describe, history, find-hanging
// and abort.
//
// It also finds the transactions that hold a group back, for package groups.
package txns

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/internal/journal"
	"muster/internal/watch/explain"
	"muster/internal/words"
)

func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "txns",
		Aliases: []string{"txn", "transactions"},
		Short:   "List, describe and abort transactions, find those that hang, and show what happened",
		Example: `  muster txns list --open
  muster txns describe payments-1        # what does it hold back, and what ends it?
  muster txns abort payments-1
  muster txns history payments-1         # who fenced it, and when?
  muster txns find-hanging`,
		Args: cli.SubcommandArgs,
		RunE: cli.Help,
	}
	cmd.AddCommand(listCommand(), describeCommand(), abortCommand(), findHangingCommand(), historyCommand())
	return cmd
}

// State is what list and describe show of a transactional id. The fields are
// those of --json; what the broker did not tell is null.
type State struct {
	ID            string         `json:"transactional_id"`
	State         string         `json:"state"`
	ProducerID    int64          `json:"producer_id"`
	ProducerEpoch int16          `json:"producer_epoch"`
	Coordinator   int32          `json:"coordinator"`
	TimeoutMillis int64          `json:"timeout_ms"`
	StartedAt     *time.Time     `json:"started_at"`
	Partitions    []txnPartition `json:"partitions"`
	ClientID      *string        `json:"client_id"`
	Host          *string        `json:"host"`
	Error         *string        `json:"error"`

	// History is the last entries of the journal, of describe only.
	History []json.RawMessage `json:"history,omitempty"`

	entries []explain.TxnEntry
	now     time.Time
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
func (t State) holds(topic string, partition int32) bool {
	return slices.ContainsFunc(t.Partitions, func(p txnPartition) bool { return p.Topic == topic && p.Partition == partition })
}

// openFor returns since when the transaction has been open; false if none is.
func (t State) openFor() (time.Duration, bool) {
	if t.StartedAt == nil || !slices.Contains([]string{"Ongoing", "PrepareCommit", "PrepareAbort"}, t.State) {
		return 0, false
	}
	return max(t.now.Sub(*t.StartedAt), 0), true
}

// endsIn returns when the coordinator aborts the transaction unless it is ended
// before.
func (t State) endsIn() (time.Duration, bool) {
	open, ok := t.openFor()
	return max(time.Duration(t.TimeoutMillis)*time.Millisecond-open, 0), ok && t.State == "Ongoing"
}

// txnAdmin asks brokers about transactions.
type txnAdmin struct {
	*kadm.Client
	raw *kgo.Client // for what the other does not pass on
}

func newTxnAdmin(client *kgo.Client) *txnAdmin { return &txnAdmin{kadm.NewClient(client), client} }

// connect returns what commands about transactions ask.
func connect(ctx context.Context, flags *cli.Flags) (*txnAdmin, error) {
	client, err := flags.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return newTxnAdmin(client), nil
}

// describe asks for the state of transactional ids. Those that fail have an error
// instead.
func (a *txnAdmin) describe(ctx context.Context, ids []string, now time.Time) ([]State, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = ids
	described := map[string]State{}
	var failed error
	for _, shard := range a.raw.RequestSharded(ctx, req) {
		if shard.Err != nil {
			failed = shard.Err
			continue
		}
		for _, d := range shard.Resp.(*kmsg.DescribeTransactionsResponse).TransactionStates {
			described[d.TransactionalID] = newTxnState(&d, shard.Meta.NodeID, now)
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if failed != nil && len(described) == 0 {
		return nil, cli.Plain(failed)
	}
	out := make([]State, len(ids))
	for i, id := range ids {
		t, ok := described[id]
		if !ok {
			text := txnError(id, cmp.Or(failed, cli.ErrNoAnswer)).Error()
			t = State{ID: id, Partitions: []txnPartition{}, Error: &text}
		}
		out[i] = t
	}
	return out, nil
}

func newTxnState(d *kmsg.DescribeTransactionsResponseTransactionState, coordinator int32, now time.Time) State {
	t := State{
		ID: d.TransactionalID, State: d.State, ProducerID: d.ProducerID, ProducerEpoch: d.ProducerEpoch, Coordinator: coordinator,
		TimeoutMillis: int64(d.TimeoutMillis), Partitions: []txnPartition{}, now: now,
	}
	if err := kerr.ErrorForCode(d.ErrorCode); err != nil {
		text := txnError(t.ID, err).Error()
		t.Error = &text
	}
	if d.StartTimestamp > 0 {
		at := time.UnixMilli(d.StartTimestamp).UTC()
		t.StartedAt = &at
	}
	if h := journal.HolderOf(&d.UnknownTags); h.Host != "" {
		t.ClientID, t.Host = &h.ClientID, &h.Host
	}
	for _, topic := range d.Topics {
		for _, n := range topic.Partitions {
			t.Partitions = append(t.Partitions, txnPartition{Topic: topic.Topic, Partition: n})
		}
	}
	sort.Slice(t.Partitions, func(i, j int) bool {
		a, b := &t.Partitions[i], &t.Partitions[j]
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition)) < 0
	})
	return t
}

// holder words who holds the transaction, as far as that is known.
func (t State) holder() string {
	switch {
	case t.Host == nil:
		return "not known since the coordinator was loaded"
	case *t.ClientID == "":
		return "at " + *t.Host
	}
	return *t.ClientID + " at " + *t.Host
}

// txnError is the error that a broker answered for a transactional id.
func txnError(id string, err error) error {
	if errors.Is(err, kerr.TransactionalIDNotFound) {
		return fmt.Errorf("there is no transactional id %q", id)
	}
	return fmt.Errorf("transactional id %s: %w", id, cli.Plain(err))
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
		return "", 0, cli.Usagef("%q is no partition; write it as TOPIC-NUMBER, as in orders-0", text)
	}
	n, err := strconv.ParseInt(text[i+1:], 10, 32)
	if err != nil || n < 0 {
		return "", 0, cli.Usagef("%q is no partition; write it as TOPIC-NUMBER, as in orders-0", text)
	}
	return text[:i], int32(n), nil
}

// completeTxns completes arguments that are transactional ids.
func completeTxns(flags *cli.Flags) cobra.CompletionFunc {
	return cli.CompleteNames(flags, 0, func(ctx context.Context, client *kgo.Client, _ string) ([]string, error) {
		listed, err := kadm.NewClient(client).ListTransactions(ctx, nil, nil)
		return listed.TransactionalIDs(), err
	})
}
