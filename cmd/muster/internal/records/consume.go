// Package records has the commands that read and write records: produce and consume, the
// latter of partitions or as a member of a group.
//
// What consume prints with --json, produce --json-lines reads.
package records

import (
	"bufio"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
)

// consumeFlags are the flags of muster consume.
type consumeFlags struct {
	cli.Flags
	from       string
	follow     bool
	count      int64
	partitions []int32
	format     string
	nullText   string
	isolation  string
	group      string
	commit     bool
	share      string
	release    bool
	reject     bool
}

const consumeHelp = `Print the records of topics, from the beginning up to the end that the topics
have when the command starts, and exit. With --follow it goes on and prints
records as they arrive, until it is interrupted. It is in no consumer group, and
commits no offsets. Records of one partition are printed in order.

With --group it joins a consumer group, prints the records of the partitions that
it is given, and goes on until it is interrupted or has printed --count records;
then it leaves the group. It begins at the committed offsets, and where there are
none where --from says: beginning or end. Each assignment and each revocation is a
line on stderr. It commits nothing, so that the group's offsets stay where they
are, unless --commit is given: then it commits what it has printed, about once a
second and before it gives up a partition.

With --share it joins a share group (KIP-932), prints the records that it is given,
and accepts them: they are done with, for all members of the group. With --release
they are given back instead, to be delivered again until the group's
share.delivery.count.limit is reached; with --reject they are given up. It goes on
until it is interrupted or has printed --count records. A new share group begins
where its share.auto.offset.reset says, which is at the end if it is not set.

--from says where to start, in each partition:
  beginning      at the log start offset (the default)
  end            at the end; this implies --follow
  42             at offset 42, or the nearest that there is
  -5             5 offsets before the end
  @TIME          at the first record of that time or later: RFC 3339, a date, or
                 milliseconds since 1970
  @-1h30m        the same, for a time so long ago; 7d are seven days

--format says how to print a record; the default is '%v\n'. As with kcat, there
is no line end unless the format has it:
  %v %s  value           %k  key             %t  topic        %p  partition
  %V %S  bytes in value  %K  bytes in key    %o  offset       %h  headers, a=1,b=2
  %T  timestamp in milliseconds since 1970   %D  timestamp in RFC 3339
  %%  a percent sign     \n \t \r \0 \\ \xHH  special characters

With --json each record is a JSON object on a line of its own, with the fields
topic, partition, offset, timestamp (milliseconds since 1970), key, value (null
for a tombstone) and headers (an array of objects with key and value, absent if
there are none). If one of a record's texts is not UTF-8, its key, value and
header values are all in base64, and the field encoding is "base64". muster
produce --json-lines reads this.`

func ConsumeCommand() *cobra.Command {
	var flags consumeFlags
	cmd := &cobra.Command{
		Use:   "consume TOPIC...",
		Short: "Print the records of topics",
		Long:  consumeHelp,
		Example: `  muster consume orders
  muster consume orders --follow --from end
  muster consume orders --from -10 --format '%p:%o %k=%v\n'
  muster consume orders --from @-1h --json | jq .value
  muster consume orders --partition 2 --from 100 --count 1
  muster consume orders --group billing --commit
  muster consume orders --share workers --count 10`,
		Args:              cli.Some("topic"),
		ValidArgsFunction: cli.CompleteTopics(&flags.Flags, 0),
		RunE:              func(cmd *cobra.Command, args []string) error { return consume(cmd, &flags, cli.Unique(args)) },
	}
	flags.addAll(cmd)
	return cmd
}

// addAll adds the flags to the command.
func (f *consumeFlags) addAll(cmd *cobra.Command) {
	f.Add(cmd, "print a JSON object per line")
	all := cmd.Flags()
	all.StringVarP(&f.from, "from", "o", "beginning", "`where` to start: beginning, end, OFFSET, -N or @TIME")
	all.BoolVarP(&f.follow, "follow", "f", false, "go on at the end and print records as they arrive")
	all.Int64VarP(&f.count, "count", "n", 0, "exit after `N` records; 0 for no limit")
	all.Int32SliceVarP(&f.partitions, "partition", "p", nil, "`number` of a partition to read; may be repeated; all if not given")
	all.StringVar(&f.format, "format", `%v\n`, "how to print a record, a `text` with % fields")
	all.StringVar(&f.nullText, "null-value", "", "`text` to print for a key or value that is null")
	all.StringVar(&f.isolation, "isolation", "read_uncommitted", "`level`: read_uncommitted, or read_committed to leave out records of open and aborted transactions")
	all.StringVarP(&f.group, "group", "g", "", "join the consumer group of that `name`")
	all.BoolVar(&f.commit, "commit", false, "commit what was printed, with --group")
	all.StringVar(&f.share, "share", "", "join the share group of that `name`, and accept what was printed")
	all.BoolVar(&f.release, "release", false, "give back what was printed, with --share")
	all.BoolVar(&f.reject, "reject", false, "give up what was printed, with --share")
	cmd.MarkFlagsMutuallyExclusive("group", "share")
	cmd.MarkFlagsMutuallyExclusive("release", "reject")
	cmd.MarkFlagsMutuallyExclusive("json", "format")
	cmd.MarkFlagsMutuallyExclusive("json", "null-value")
	cli.CompleteValues(cmd, "from", "beginning", "end")
	cli.CompleteFlag(cmd, "group", cli.CompleteGroups(&f.Flags, 0))
	cli.CompleteFlag(cmd, "share", cli.CompleteGroups(&f.Flags, 0))
	cli.CompleteValues(cmd, "isolation", "read_uncommitted", "read_committed")
}

func consume(cmd *cobra.Command, flags *consumeFlags, topics []string) error {
	start, err := parseFrom(flags.from)
	if err == nil {
		err = flags.checkGroup(cmd, start)
	}
	if err == nil {
		err = flags.checkShare(cmd)
	}
	if err != nil {
		return err
	}
	if flags.count < 0 || slices.ContainsFunc(flags.partitions, func(p int32) bool { return p < 0 }) {
		return cli.Usagef("--count and --partition cannot be negative")
	}
	var isolation kgo.IsolationLevel
	switch flags.isolation {
	case "read_uncommitted":
		isolation = kgo.ReadUncommitted()
	case "read_committed":
		isolation = kgo.ReadCommitted()
	default:
		return cli.Usagef("--isolation is read_uncommitted or read_committed, not %q", flags.isolation)
	}
	out := bufio.NewWriterSize(cmd.OutOrStdout(), 64<<10)
	write, err := newRecordWriter(out, flags)
	if err != nil {
		return err
	}
	if flags.share != "" {
		return consumeShared(cmd, flags, topics, write, out.Flush)
	}
	if flags.group != "" {
		return consumeInGroup(cmd, flags, topics, start, isolation, write, out.Flush)
	}
	ctx := cmd.Context()
	client, err := flags.Connect(ctx, source.ConsumerOptions(isolation)...)
	if err != nil {
		return err
	}
	defer client.Close()
	c := &consumer{
		client: client, admin: kadm.NewClient(client), isolation: isolation,
		topics: topics, only: flags.partitions, follow: flags.follow || start.kind == fromEnd, limit: flags.count,
		write: write, flush: out.Flush,
		warn: func(format string, args ...any) { fmt.Fprintf(cmd.ErrOrStderr(), "muster: "+format+"\n", args...) },
	}
	if err := c.open(ctx, start); err != nil {
		return err
	}
	return c.run(ctx)
}
