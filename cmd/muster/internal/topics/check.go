package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/internal/protocol"
	"muster/internal/words"
)

// Checked has the fields of muster topics check --json, for a partition. The numbers are null if it was not
// checked.
type Checked struct {
	Partition      int32    `json:"partition"`
	Layout         *string  `json:"layout"`
	NotChecked     *string  `json:"not_checked"`
	LogStartOffset *int64   `json:"log_start_offset"`
	LogEndOffset   *int64   `json:"log_end_offset"`
	Records        *int64   `json:"records"`
	Deleted        *int64   `json:"deleted"`
	Findings       []string `json:"findings"`
}

// maxFindings is how many things are told of a partition.
const maxFindings = 100

func checkCommand() *cobra.Command {
	var client cli.Flags
	var partition int32
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Check that the records of a topic in Redis are where its index says",
		Long: `Check that the records of a topic in Redis and the index of their offsets agree
(layout indexed; see docs/redis.md). Clients may go on writing and reading: what
seems wrong is looked at twice. Any broker can check any partition. All records
are read once, inside Redis and by the broker, so that a large topic takes a while.

RECORDS is how many are there. DELETED is how many had an offset and were deleted,
by compaction, by retention in Redis or by Redis clients. What is wrong is listed
below the table, and the exit code is 1 then. Partitions in other layouts, and those
on disk, have no such index; the command says what stands for it.

With --json it prints an array of objects with the fields partition, layout,
not_checked (the reason, null if it was checked), log_start_offset,
log_end_offset, records, deleted and findings.`,
		Example: `  muster topics check orders
  muster topics check orders --partition 3
  muster topics check orders --json | jq '.[] | select(.findings != [])'`,
		Args:              cli.One("topic"),
		ValidArgsFunction: cli.CompleteTopics(&client, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if partition < -1 {
				return cli.Usagef("--partition takes the number of a partition, not %d", partition)
			}
			return checkTopic(cmd, &client, args[0], partition)
		},
	}
	client.Add(cmd, "print a JSON array")
	cmd.Flags().Int32Var(&partition, "partition", -1, "`number` of the only partition to check")
	return cmd
}

func checkTopic(cmd *cobra.Command, flags *cli.Flags, topic string, only int32) error {
	ctx := cmd.Context()
	client, err := flags.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	details, missing, err := cli.FindTopics(ctx, kadm.NewClient(client), []string{topic})
	if err = errors.Join(append(missing, err)...); err != nil {
		return err
	}
	var checked []Checked
	for _, p := range details[topic].Partitions.Sorted() {
		if only >= 0 && p.Partition != only {
			continue
		}
		c, err := checkPartition(ctx, client, topic, p.Partition)
		if err != nil {
			return fmt.Errorf("partition %d of topic %s: %w", p.Partition, topic, err)
		}
		checked = append(checked, c)
	}
	if len(checked) == 0 {
		return cli.Usagef("topic %s has no partition %d: it has %s", topic, only, words.Plural(len(details[topic].Partitions), "partition"))
	}
	if flags.JSON {
		err = cli.WriteJSON(cmd.OutOrStdout(), checked)
	} else {
		err = printChecked(cmd, topic, checked)
	}
	return errors.Join(err, broken(checked))
}

// broken is the error of what was found.
func broken(checked []Checked) error {
	findings, partitions := 0, 0
	for _, c := range checked {
		if n := len(c.Findings); n > 0 {
			findings, partitions = findings+n, partitions+1
		}
	}
	if findings == 0 {
		return nil
	}
	return fmt.Errorf("%s in %s", words.Plural(findings, "finding"), words.Plural(partitions, "partition"))
}

// checkPartition has a partition checked part by part.
func checkPartition(ctx context.Context, client *kgo.Client, topic string, partition int32) (Checked, error) {
	out := Checked{Partition: partition, Findings: []string{}}
	for from := int64(0); ; {
		c, err := checkPart(ctx, client, topic, partition, from)
		if err != nil {
			return out, err
		}
		if c.Layout != "" {
			out.Layout = &c.Layout
		}
		if c.Unable != "" {
			out.NotChecked = &c.Unable
			return out, nil
		}
		out.LogStartOffset, out.LogEndOffset = &c.Start, &c.End
		out.Records, out.Deleted = plus(out.Records, c.Records), plus(out.Deleted, c.Deleted)
		for _, w := range c.Wrong {
			if len(out.Findings) < maxFindings && !slices.Contains(out.Findings, w) {
				out.Findings = append(out.Findings, w)
			}
		}
		if c.Next <= from || c.Next >= c.End {
			return out, nil
		}
		from = c.Next
	}
}

func plus(sum *int64, n int64) *int64 {
	if sum != nil {
		n += *sum
	}
	return &n
}

// errNoChecks is what a broker of another kind is told to be.
var errNoChecks = errors.New("the broker does not check topics: it is no muster broker, or one of an older version")

func checkPart(ctx context.Context, client *kgo.Client, topic string, partition int32, from int64) (*protocol.Check, error) {
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	t := kmsg.NewDescribeTopicPartitionsRequestTopic()
	t.Topic = topic
	protocol.AskCheck(&t.UnknownTags, from)
	req.Topics = append(req.Topics, t)
	req.ResponsePartitionLimit = 1
	cursor := kmsg.NewDescribeTopicPartitionsRequestCursor()
	cursor.Topic, cursor.Partition = topic, partition
	req.Cursor = &cursor
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, cli.Plain(err)
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return nil, cli.TopicError(topic, err, "")
		}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			c := protocol.GetCheck(&p.UnknownTags)
			switch err := kerr.ErrorForCode(p.ErrorCode); {
			case err != nil:
				return nil, cli.Plain(err)
			case c != nil && p.Partition == partition:
				return c, nil
			}
		}
	}
	return nil, errNoChecks
}

func printChecked(cmd *cobra.Command, topic string, checked []Checked) error {
	w := cmd.OutOrStdout()
	t := cli.NewTable(">PARTITION", "LAYOUT", ">LOG START", ">LOG END", ">RECORDS", ">DELETED", ">FINDINGS")
	for _, c := range checked {
		layout, findings := "-", "-"
		if c.Layout != nil {
			layout = *c.Layout
		}
		if c.NotChecked == nil {
			findings = cli.FormatInt(int64(len(c.Findings)))
		}
		t.Add(c.Partition, layout, cli.OrDash(c.LogStartOffset, cli.FormatInt), cli.OrDash(c.LogEndOffset, cli.FormatInt),
			cli.OrDash(c.Records, cli.FormatInt), cli.OrDash(c.Deleted, cli.FormatInt), findings)
	}
	if err := t.Print(w); err != nil {
		return err
	}
	var said []string
	for _, c := range checked {
		if c.NotChecked != nil && !slices.Contains(said, *c.NotChecked) { // It is the same for most.
			said = append(said, *c.NotChecked)
			fmt.Fprintf(w, "\nnot checked: %s\n", *c.NotChecked)
		}
	}
	for _, c := range checked {
		if len(c.Findings) > 0 {
			fmt.Fprintf(w, "\n%s-%d:\n", topic, c.Partition)
		}
		for _, f := range c.Findings {
			fmt.Fprintf(w, "  %s\n", f)
		}
	}
	return nil
}
