package topics

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/internal/protocol"
	"muster/internal/words"
)

// Conversion has the fields of muster topics convert --json.
type Conversion struct {
	Name       string               `json:"name"`
	To         string               `json:"to"`
	Executed   bool                 `json:"executed"`
	Partitions []ConvertedPartition `json:"partitions"`
	Groups     []ConvertedGroup     `json:"groups"`
}

// ConvertedPartition is a partition, as it was before.
type ConvertedPartition struct {
	Partition int32  `json:"partition"`
	Layout    string `json:"layout"`
	Records   int64  `json:"records"`
	Bytes     int64  `json:"bytes"`
	Millis    int64  `json:"estimated_ms"`
	Copied    bool   `json:"copied"`
}

// ConvertedGroup is a group that goes on in the new layout.
type ConvertedGroup struct {
	Name    string `json:"name"`
	Offsets int    `json:"offsets"`
	Members int    `json:"members"`
	// Uncommitted is how many partitions have no committed offset, if there are members.
	Uncommitted int `json:"uncommitted"`
}

// convertFlags are the flags of muster topics convert.
type convertFlags struct {
	cli.Flags
	to      string
	execute bool
}

const (
	layoutStream  = "stream"
	layoutIndexed = "indexed"
)

func convertCommand() *cobra.Command {
	var flags convertFlags
	cmd := &cobra.Command{
		Use:   "convert NAME --to indexed",
		Short: "Convert a topic in Redis to layout indexed",
		Long: `Convert a topic in Redis from layout stream or log to indexed, in which offsets are dense,
transactions are possible, and an entry of a stream is a record (see docs/redis.md).

Without --execute this is a dry run: it shows what there is to convert, about how
long that takes, and which groups it concerns. It needs ALTER on the topic.

Clients may go on. What takes time comes first. Then each partition is switched, which holds
up its producers and consumers for a moment.

From layout stream the records stay where they are, and get an index beside them. Their
offsets change. Committed offsets are translated. Members of groups that read the topic are
removed, and join again: they go on where their group has committed, and read again what they
have read since. In a partition where a group has committed nothing its members begin where
auto.offset.reset says. Not translated are offsets that are kept anywhere else than in a group. A
consumer without a group must be started again, and told where to begin.

From layout log the records are copied, since an entry there is a whole batch: until a partition is
switched, Redis holds it twice, and unpacked. Offsets, groups, producers and transactions stay
as they are. What consumer groups of Redis have pending is lost.

If it is interrupted, run it again: it goes on where it was, within an hour where records are
copied, and from the start later. There is no way back.

With --json it prints one object with the fields name, to, executed, partitions
(partition, layout, records, bytes, estimated_ms, copied: as it was before) and groups (name, offsets, members, uncommitted).`,
		Example: `  muster topics convert orders --to indexed
  muster topics convert orders --to indexed --execute`,
		Args:              cli.One("topic"),
		ValidArgsFunction: cli.CompleteTopics(&flags.Flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.to != layoutIndexed {
				return cli.Usagef("--to takes the layout to convert to, which can only be %s, not %q", layoutIndexed, flags.to)
			}
			return convertTopic(cmd, &flags, args[0])
		},
	}
	flags.Add(cmd, "print a JSON object")
	cmd.Flags().StringVar(&flags.to, "to", "", "`layout` to convert to: indexed")
	cmd.Flags().BoolVar(&flags.execute, "execute", false, "do it; without this nothing is changed")
	cli.CompleteFlag(cmd, "to", cobra.FixedCompletions([]string{layoutIndexed}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func convertTopic(cmd *cobra.Command, flags *convertFlags, topic string) error {
	ctx := cmd.Context()
	client, err := flags.Connect(ctx, kgo.RequestTimeoutOverhead(convertStep))
	if err != nil {
		return err
	}
	defer client.Close()
	c := &converter{client: client, admin: kadm.NewClient(client), topic: topic, run: rand.Text()}
	p, err := c.plan(ctx)
	if err != nil {
		return err
	}
	if !flags.JSON {
		if err := p.print(cmd.OutOrStdout()); err != nil {
			return err
		}
	}
	if flags.execute {
		if err := c.execute(ctx, cmd.ErrOrStderr(), p); err != nil {
			return err
		}
		p.Executed = true
	}
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), p.Conversion)
	}
	for _, g := range p.Groups {
		if g.Uncommitted > 0 && !flags.execute {
			fmt.Fprintf(cmd.ErrOrStderr(), "group %s has no committed offset in %s: there its members will begin where auto.offset.reset says, and with latest miss what is written meanwhile; stop them first, or let them commit\n",
				g.Name, words.Plural(g.Uncommitted, "partition"))
		}
	}
	if !flags.execute {
		fmt.Fprintf(cmd.ErrOrStderr(), "this was a dry run: nothing was changed; add --execute to convert topic %s\n", topic)
	}
	return nil
}

// conversionPlan is what there is to do.
type conversionPlan struct {
	Conversion
	settled bool // the setting is written already
}

// plan asks what there is to do.
func (c *converter) plan(ctx context.Context) (*conversionPlan, error) {
	details, missing, err := cli.FindTopics(ctx, c.admin, []string{c.topic})
	if err = errors.Join(append(missing, err)...); err != nil {
		return nil, err
	}
	p := &conversionPlan{Conversion: Conversion{Name: c.topic, To: layoutIndexed, Groups: []ConvertedGroup{}}, settled: true}
	left := 0
	for _, d := range details[c.topic].Partitions.Sorted() {
		out, err := c.ofPartition(ctx, protocol.ConvertPreview, d.Partition)
		var unable *unableError
		if errors.As(err, &unable) {
			return nil, fmt.Errorf("topic %s cannot be converted: %w", c.topic, unable)
		}
		if err != nil {
			return nil, err
		}
		if out.Layout != layoutIndexed {
			left++
		}
		p.settled = p.settled && out.Setting == layoutIndexed
		p.Partitions = append(p.Partitions, ConvertedPartition{d.Partition, out.Layout, out.Records, out.Bytes, out.Millis, out.Copied})
	}
	groups, err := c.ofGroups(ctx, protocol.ConvertGroups)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		if p.settled { // Members have joined since.
			g.Members, g.Uncommitted = 0, 0
		}
		if g.Offsets+g.Members > 0 {
			p.Groups = append(p.Groups, ConvertedGroup(g))
		}
	}
	if left == 0 && p.settled && len(p.Groups) == 0 {
		return nil, fmt.Errorf("topic %s is in layout %s already", c.topic, layoutIndexed)
	}
	return p, nil
}

func (p *conversionPlan) print(w io.Writer) error {
	t := cli.NewTable(">PARTITION", "LAYOUT", ">RECORDS", ">SIZE", ">TIME")
	for _, x := range p.Partitions {
		if x.Layout == layoutIndexed {
			t.Add(x.Partition, x.Layout, "-", "-", "-")
			continue
		}
		t.Add(x.Partition, x.Layout, cli.FormatInt(x.Records), words.Size(x.Bytes), "about "+words.Duration(max(time.Duration(x.Millis)*time.Millisecond, time.Second)))
	}
	if err := t.Print(w); err != nil || len(p.Groups) == 0 {
		return err
	}
	fmt.Fprintln(w)
	t = cli.NewTable("GROUP", ">OFFSETS TO TRANSLATE", ">MEMBERS TO REMOVE", ">NOT COMMITTED")
	for _, g := range p.Groups {
		t.Add(g.Name, g.Offsets, g.Members, g.Uncommitted)
	}
	return t.Print(w)
}

// execute does what is left to do. Each part can be done again, so it goes on wherever an earlier run has ended.
func (c *converter) execute(ctx context.Context, progress io.Writer, p *conversionPlan) error {
	if !p.settled {
		if err := c.convertPartitions(ctx, progress, p); err != nil {
			return err
		}
		removed, err := c.ofGroups(ctx, protocol.ConvertLeave)
		if err != nil {
			return err
		}
		for _, g := range removed {
			fmt.Fprintf(progress, "group %s: removed %s, to join again\n", g.Name, words.Plural(g.Members, "member"))
		}
		if _, err := c.ofPartition(ctx, protocol.ConvertFinish, 0); err != nil {
			return err
		}
	}
	groups, err := c.ofGroups(ctx, protocol.ConvertTranslate)
	if err != nil {
		return err
	}
	for _, g := range groups {
		if g.Offsets > 0 {
			fmt.Fprintf(progress, "group %s: translated %s\n", g.Name, words.Plural(g.Offsets, "committed offset"))
		}
	}
	fmt.Fprintf(progress, "topic %s is in layout %s\n", c.topic, layoutIndexed)
	return nil
}

// convertPartitions makes the indexes and copies of all partitions, and then switches them, so that the topic is not of two
// layouts for long.
func (c *converter) convertPartitions(ctx context.Context, progress io.Writer, p *conversionPlan) error {
	todo := slices.DeleteFunc(slices.Clone(p.Partitions), func(x ConvertedPartition) bool { return x.Layout == layoutIndexed })
	for _, x := range todo {
		for {
			out, err := c.ofPartition(ctx, protocol.ConvertPrepare, x.Partition)
			if err != nil {
				return err
			}
			if out.Done {
				break
			}
			what := "indexed"
			if x.Copied {
				what = "copied"
			}
			fmt.Fprintf(progress, "partition %d: %s %d of %s\n", x.Partition, what, out.Prepared, words.Plural(int(max(x.Records, out.Prepared)), "record"))
		}
	}
	for _, x := range todo {
		if _, err := c.ofPartition(ctx, protocol.ConvertSwitch, x.Partition); err != nil {
			return err
		}
	}
	for _, x := range todo { // Members that join again find leaders, and whoever reads what this prints as well.
		out, err := c.ofPartition(ctx, protocol.ConvertPreview, x.Partition)
		if err != nil {
			return err
		}
		if out.Layout != layoutIndexed {
			return fmt.Errorf("partition %d of topic %s is in layout %s again: Redis has lost its end; run this again", x.Partition, c.topic, out.Layout)
		}
		fmt.Fprintf(progress, "partition %d: converted\n", x.Partition)
	}
	return nil
}
