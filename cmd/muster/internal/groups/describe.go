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
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

func describeCommand() *cobra.Command {
	var client cli.Flags
	var withLag bool
	cmd := &cobra.Command{
		Use:   "describe NAME...",
		Short: "Show groups with their members, offsets and lag",
		Long: `Show groups: state, protocol and coordinator, the members with the partitions
that they are assigned, and every partition with its lag.

COMMITTED is the offset that the group reads next. END is the high watermark. LAG
is max(END - max(COMMITTED, log start offset), 0): the records that are there to
be read. Where offsets have gaps (topics in Redis, in layout stream) a muster
broker counts them, up to a limit: 100000+ is that many or more. LAG TIME is the
age of the first of them, 0s if there is none. OWNER is the member that the
partition is assigned to, as in MEMBER, with its id cut short.

What is not known is shown as -. A partition without a committed offset has no lag
and is not in the total: where a consumer begins there depends on its
auto.offset.reset, and some topics are read and never committed. During a
rebalance brokers do not tell what members are assigned; offsets and lag are still
shown.

Of a share group (KIP-932) START stands for COMMITTED: the group is done with all
records before it. LAG is what it is not done with, in flight or yet to be
delivered. Partitions have no owner there: several members may share one.

Members of a consumer group (KIP-848) come to the group's epoch one by one: EPOCH is
where a member is, PARTITIONS what it may use now, TARGET what it is to have.

Members of a streams group (KIP-1071) are threads of the instances of an application, each
instance a PROCESS. ACTIVE is the tasks that a member works on and STANDBY those of
whose state it has a copy, as subtopology:partitions. A group that is NotReady waits
for topics.

With --json it prints an array of objects with the fields name, type, state,
protocol_type, assignor, epoch and target_epoch (of consumer groups), coordinator
(broker, address), members (member_id, client_id, host, instance_id, topics,
assigned; of consumer groups also pattern, epoch, target, classic, of streams groups
epoch, process, tasks, target_tasks, and from a muster broker assignor, matches, revoking, waits, since, until, heard, session), partitions (topic, partition,
committed, log_start_offset, log_end_offset, lag, lag_at_least, lag_seconds,
owner), total_lag, total_lag_at_least, uncommitted_partitions, and of streams groups
topology and missing_topics. What is unknown
is null; lag_at_least and total_lag_at_least are there if they are true.`,
		Example: `  muster groups describe billing
  muster groups describe billing --only-with-lag
  muster groups describe billing --json | jq '.[].partitions[] | select(.lag_seconds > 60)'`,
		Args:              cli.Some("group"),
		ValidArgsFunction: cli.CompleteGroups(&client, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return describeGroups(cmd, &client, cli.Unique(args), withLag)
		},
	}
	client.Add(cmd, "print a JSON array")
	cmd.Flags().BoolVar(&withLag, "only-with-lag", false, "leave out partitions that have been read to the end, or have no committed offset")
	return cmd
}

func describeGroups(cmd *cobra.Command, flags *cli.Flags, names []string, withLag bool) error {
	ctx := cmd.Context()
	client, err := flags.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	loader := source.NewLoader(flags, client)
	states, errs, err := loader.Load(ctx, names)
	if err != nil {
		return err
	}
	var failed []error
	groups := []*groupview.Group{}
	for _, name := range names {
		g := states[name]
		if g == nil {
			failed = append(failed, errs[name])
			continue
		}
		if err := loader.AddLagSeconds(ctx, g, time.Now()); err != nil {
			return err
		}
		groups = append(groups, g)
	}
	for _, g := range groups {
		if withLag {
			g.KeepLagging()
		}
	}
	if flags.JSON {
		err = cli.WriteJSON(cmd.OutOrStdout(), groups)
	} else {
		err = printGroups(cmd.OutOrStdout(), groups, withLag)
	}
	return errors.Join(append(failed, err)...)
}

func printGroups(w io.Writer, groups []*groupview.Group, withLag bool) error {
	var out strings.Builder
	for i, g := range groups {
		if i > 0 {
			out.WriteByte('\n')
		}
		printGroupHead(&out, g)
		printTopology(&out, g)
		if err := errors.Join(printMembers(&out, g.Type, g.Members), printGroupPartitions(&out, g, withLag)); err != nil {
			return err
		}
		printGroupNotes(&out, g)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func printGroupHead(w io.Writer, g *groupview.Group) {
	coordinator := "-"
	if c := g.Coordinator; c != nil {
		coordinator = fmt.Sprintf("broker %d at %s", c.Broker, c.Address)
	}
	fmt.Fprintf(w, "Group:        %s\n", g.Name)
	fmt.Fprintf(w, "Type:         %s\n", g.Type)
	fmt.Fprintf(w, "State:        %s\n", g.State)
	fmt.Fprintf(w, "Protocol:     %s\n", formatProtocol(g.ProtocolType, g.Assignor))
	if g.Epoch != nil && g.TargetEpoch != nil {
		fmt.Fprintf(w, "Epoch:        %d, target assignment of epoch %d\n", *g.Epoch, *g.TargetEpoch)
	}
	fmt.Fprintf(w, "Coordinator:  %s\n", coordinator)
	fmt.Fprintf(w, "Members:      %d\n", len(g.Members))
	fmt.Fprintf(w, "Total lag:    %s\n", formatLag(g.TotalLag, g.TotalLagAtLeast))
}

// formatProtocol words the protocol type with the assignor.
func formatProtocol(protocolType, assignor string) string {
	switch {
	case protocolType == "":
		return "-"
	case assignor == "":
		return protocolType
	}
	return protocolType + "/" + assignor
}

func printMembers(w io.Writer, kind string, members []groupview.Member) error {
	if len(members) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	if kind == groupview.TypeStreams {
		return printStreams(w, members)
	}
	if members[0].Epoch != nil {
		return printConsumers(w, kind, members)
	}
	t := cli.NewTable("MEMBER", "CLIENT", "HOST", "INSTANCE", "PARTITIONS")
	for _, m := range members {
		t.Add(m.ID, m.ClientID, m.Host, instanceOf(&m), cli.FormatAssigned(m.Assigned))
	}
	return t.Print(w)
}

// printConsumers shows members of a consumer group, with where they are and what they
// are to have.
func printConsumers(w io.Writer, kind string, members []groupview.Member) error {
	t := cli.NewTable("MEMBER", "CLIENT", "HOST", "INSTANCE", ">EPOCH", "PROTOCOL", "PARTITIONS", "TARGET")
	for _, m := range members {
		protocol := kind
		if m.Classic {
			protocol = groupview.TypeClassic
		}
		target := cli.FormatAssigned(m.Target)
		if kind == groupview.TypeShare || target == cli.FormatAssigned(m.Assigned) {
			target = "the same"
		}
		has := cli.FormatAssigned(m.Assigned)
		if len(m.Revoking) > 0 {
			has += " (gives up " + cli.FormatAssigned(m.Revoking) + ")"
		}
		t.Add(m.ID, m.ClientID, m.Host, instanceOf(&m), *m.Epoch, protocol, has, target)
	}
	return t.Print(w)
}

func instanceOf(m *groupview.Member) string {
	if m.Instance == nil {
		return "-"
	}
	return *m.Instance
}

func printGroupPartitions(w io.Writer, g *groupview.Group, withLag bool) error {
	fmt.Fprintln(w)
	if len(g.Partitions) == 0 {
		if withLag {
			fmt.Fprintln(w, "No partition has lag.")
		} else {
			fmt.Fprintln(w, "The group has no committed offsets and reads no topic that exists.")
		}
		return nil
	}
	names, committed := g.ShortNames(), ">COMMITTED"
	if g.Type == groupview.TypeShare {
		committed = ">START"
	}
	t := cli.NewTable("TOPIC", ">PARTITION", committed, ">END", ">LAG", ">LAG TIME", "OWNER")
	for _, p := range g.Partitions {
		owner := "-"
		if p.Owner != nil {
			owner = names[*p.Owner]
		}
		t.Add(p.Topic, p.Partition, cli.OrDash(p.Committed, cli.FormatInt), cli.OrDash(p.LogEnd, cli.FormatInt), formatLag(p.Lag, p.LagAtLeast), formatLagTime(p.LagSeconds), owner)
	}
	return t.Print(w)
}

// formatLag words a lag, which may be a least one.
func formatLag(lag *int64, atLeast bool) string {
	if atLeast {
		return cli.OrDash(lag, cli.FormatInt) + "+"
	}
	return cli.OrDash(lag, cli.FormatInt)
}

func formatLagTime(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return words.Duration(time.Duration(*seconds * float64(time.Second)).Round(time.Second))
}

// printGroupNotes says what in the table would mislead without it.
func printGroupNotes(w io.Writer, g *groupview.Group) {
	deleted := 0
	for _, p := range g.Partitions {
		if p.Committed != nil && p.LogStart != nil && *p.Committed < *p.LogStart {
			deleted++
		}
	}
	if g.Rebalances() && !g.Tells() {
		fmt.Fprintln(w, "\nA rebalance is under way, so the broker does not tell which partitions members have.")
	}
	if n := g.Uncommitted; n > 0 {
		fmt.Fprintf(w, "\n%s no committed offset, and %s not in the lag.\n", words.Plural(n, "partition")+words.Verb(n, " has", " have"), words.Verb(n, "is", "are"))
	}
	if deleted > 0 {
		fmt.Fprintf(w, "\n%s a committed offset below the log start: the records between were\ndeleted before the group read them, and are not in the lag.\n", words.Plural(deleted, "partition")+words.Verb(deleted, " has", " have"))
	}
}
