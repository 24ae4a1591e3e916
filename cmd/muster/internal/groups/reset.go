package groups

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

// resetFlags are the flags of muster groups reset.
type resetFlags struct {
	cli.Flags
	topics     []string
	allTopics  bool
	toEarliest bool
	toLatest   bool
	toOffset   int64
	toTime     string
	shiftBy    int64
	undo       string
	execute    bool
	now        bool
	force      bool
}

// ResetGroup has the fields of muster groups reset --json.
type ResetGroup struct {
	Name       string           `json:"name"`
	Executed   bool             `json:"executed"`
	Reset      string           `json:"reset,omitempty"` // By which it is undone.
	Partitions []resetPartition `json:"partitions"`
}

// resetPartition is a partition and what becomes of its committed offset. New is
// nil if nothing does.
type resetPartition struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	Current   *int64  `json:"current"`
	New       *int64  `json:"new"`
	LagAfter  *int64  `json:"lag_after"`
	Note      string  `json:"note"`
	Error     *string `json:"error"`
}

func resetCommand() *cobra.Command {
	var flags resetFlags
	cmd := &cobra.Command{
		Use:   "reset NAME",
		Short: "Move a group's committed offsets",
		Long: `Move a group's committed offsets: to the beginning or the end, to an offset, to
the first record of a time, or by a number of offsets.

Without --execute this is a dry run: it shows what each partition's committed
offset is and would become, and changes nothing.

A group of the classic protocol is reset while it runs: its members rebalance, and
the offsets are moved in the middle of that, where no one can overwrite them. The
members need not restart. Cooperative members read on elsewhere: only what is moved
is taken from them, and given back. Members of an assignor that is not known are
removed, and join again as they do after a lost session. --now does that to
members that are stuck, instead of waiting for them to rejoin. Consumers that
assign partitions to themselves are out of reach: stop them first. So are members of
the consumer protocol (KIP-848) and of share groups for now.

Each reset has a name, which it prints. --undo moves its partitions back to where they
were; that is a reset too, and can be undone. The journal knows of resets for
muster.group.journal.retention.ms (muster groups history).

Of a share group it moves the offsets where partitions start. Everything from there
on is delivered again, also what was accepted.

Offsets outside of the log are moved to its nearest end. A group that does not
exist is created by --execute, so that its consumers begin where you say.

With --json it prints one object with the fields name, executed, reset (the name by
which it is undone) and partitions (topic, partition, current, new, lag_after, note,
error). current is null if nothing is committed, new if nothing changes.`,
		Example: `  muster groups reset billing --topic orders --to-earliest
  muster groups reset billing --topic orders --to-earliest --execute
  muster groups reset billing --all-topics --to-timestamp -1h
  muster groups reset billing --all-topics --to-timestamp 2026-01-31T08:00:00Z
  muster groups reset billing --topic orders:3 --shift-by 1 --execute   # skip a record
  muster groups reset billing --undo rmi5w0k3f --execute`,
		Args:              cli.One("group"),
		ValidArgsFunction: cli.CompleteGroups(&flags.Flags, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return resetOffsets(cmd, &flags, args[0]) },
	}
	flags.Add(cmd, "print a JSON object")
	f := cmd.Flags()
	f.StringArrayVarP(&flags.topics, "topic", "t", nil, "`topic` to reset, or some of its partitions with topic:0,2; may be repeated")
	f.BoolVar(&flags.allTopics, "all-topics", false, "reset all topics that the group has committed offsets of")
	f.BoolVar(&flags.toEarliest, "to-earliest", false, "move to the log start offset")
	f.BoolVar(&flags.toLatest, "to-latest", false, "move to the end, and skip all that is unread")
	f.Int64Var(&flags.toOffset, "to-offset", 0, "move to `offset` N in each partition")
	f.StringVar(&flags.toTime, "to-timestamp", "", "move to the first record of a `time` or later: RFC 3339, a date, milliseconds since 1970, or -1h for an hour ago")
	f.Int64Var(&flags.shiftBy, "shift-by", 0, "move by `N` offsets, back if negative")
	f.StringVar(&flags.undo, "undo", "", "move back what the `reset` of this name has moved")
	f.BoolVar(&flags.execute, "execute", false, "do it; without this nothing is changed")
	f.BoolVar(&flags.now, "now", false, "remove the members that have the partitions, instead of waiting for them to rejoin")
	f.BoolVar(&flags.force, "force", false, "reset a running Kafka Streams application, whose state does not move with it")
	cmd.MarkFlagsMutuallyExclusive("topic", "all-topics")
	cmd.MarkFlagsMutuallyExclusive("to-earliest", "to-latest", "to-offset", "to-timestamp", "shift-by", "undo")
	cmd.MarkFlagsMutuallyExclusive("undo", "topic")
	cmd.MarkFlagsMutuallyExclusive("undo", "all-topics")
	cli.CompleteFlag(cmd, "topic", cli.CompleteTopics(&flags.Flags, 0))
	return cmd
}

func resetOffsets(cmd *cobra.Command, flags *resetFlags, name string) error {
	target, err := flags.target(cmd)
	if err != nil {
		return err
	}
	scopes, err := parseScopes(flags.topics)
	if err != nil {
		return err
	}
	if len(scopes) == 0 && !flags.allTopics && flags.undo == "" {
		return cli.Usagef("say which topics: --topic NAME, or --all-topics")
	}
	ctx := cmd.Context()
	client, err := flags.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	loader := source.NewLoader(&flags.Flags, client)
	g, err := loader.One(ctx, name)
	if err != nil {
		return err
	}
	o := outcome{name: name, fresh: g == nil, shared: g != nil && g.Type == groupview.TypeShare, executed: flags.execute, live: liveError(g)}
	o.runs = o.live != nil && g.Type == groupview.TypeClassic
	if flags.execute && o.live != nil && !o.runs {
		return o.live
	}
	if flags.undo != "" {
		o.rows, err = planUndo(ctx, &flags.Flags, loader, name, g, flags.undo)
	} else {
		o.rows, err = planReset(ctx, client, loader, name, g, scopes, target)
	}
	if err != nil {
		return err
	}
	switch {
	case !flags.execute:
	case o.shared:
		err = executeShareReset(ctx, client, name, o.rows)
	default:
		o.reset, err = executeReset(ctx, flags, g, name, o.rows)
	}
	var printErr error
	if flags.JSON {
		printErr = cli.WriteJSON(cmd.OutOrStdout(), ResetGroup{name, flags.execute, o.reset, o.rows})
	} else {
		printErr = printReset(cmd.OutOrStdout(), o.rows)
		if err == nil {
			o.tell(cmd.ErrOrStderr())
		}
	}
	return errors.Join(err, printErr)
}

// liveError says that a group has members, who they are, and how to stop them.
func liveError(g *groupview.Group) error {
	if g == nil || len(g.Members) == 0 && g.State == groupview.Empty {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "group %s is in use (%s): its members would go on from where they are and overwrite the new offsets\n", g.Name, words.Plural(len(g.Members), "member"))
	fmt.Fprintf(&b, "stop these, and run this again when the group is Empty (muster groups list %s):\n", g.Name)
	for i := range g.Members {
		if i == 10 {
			fmt.Fprintf(&b, "  and %d more: muster groups describe %s\n", len(g.Members)-i, g.Name)
			break
		}
		m := &g.Members[i]
		fmt.Fprintf(&b, "  client %s on host %s (member %s)\n", m.ClientID, m.Host, m.ID)
	}
	if g.Type == groupview.TypeShare {
		b.WriteString("if they are gone already, their sessions end after share.session.timeout.ms")
		return errors.New(b.String())
	}
	fmt.Fprintf(&b, "if they are gone already, do not wait for their sessions to end: muster groups members remove %s --all", g.Name)
	return errors.New(b.String())
}

func printReset(w io.Writer, rows []resetPartition) error {
	t := cli.NewTable("TOPIC", ">PARTITION", ">CURRENT", ">NEW", ">CHANGE", ">LAG AFTER", "NOTE")
	for _, r := range rows {
		change := "-"
		if r.Current != nil && r.New != nil {
			change = strings.TrimPrefix(fmt.Sprintf("%+d", *r.New-*r.Current), "+0")
			change = cmp.Or(change, "0")
		}
		note := r.Note
		if r.Error != nil {
			note = "failed: " + *r.Error
		}
		t.Add(r.Topic, r.Partition, cli.OrDash(r.Current, cli.FormatInt), cli.OrDash(r.New, cli.FormatInt), change, cli.OrDash(r.LagAfter, cli.FormatInt), note)
	}
	return t.Print(w)
}

// outcome is what a reset does, or would do.
type outcome struct {
	name     string
	reset    string // its name, if it moved something
	fresh    bool   // there is no such group yet
	shared   bool
	executed bool
	runs     bool  // the group has members, and is reset all the same
	live     error // who they are
	rows     []resetPartition
}

// tell says what the table means.
func (o *outcome) tell(w io.Writer) {
	changes := 0
	for i := range o.rows {
		if o.rows[i].changes() {
			changes++
		}
	}
	what := words.Plural(changes, "partition")
	switch {
	case o.executed && o.shared:
		fmt.Fprintf(w, "share group %s begins anew in %s\n", o.name, words.Plural(len(o.rows), "partition"))
	case o.executed && changes == 0:
		fmt.Fprintf(w, "nothing to change: group %s is there already\n", o.name)
	case o.executed && o.runs:
		fmt.Fprintf(w, "moved the committed offsets of group %s in %s, and its members with them\n", o.name, what)
	case o.executed:
		fmt.Fprintf(w, "moved the committed offsets of group %s in %s\n", o.name, what)
	default:
		fmt.Fprintf(w, "this is a dry run, nothing was changed; --execute moves %s\n", what)
		if o.fresh {
			fmt.Fprintf(w, "there is no group %q; --execute creates it\n", o.name)
		}
		if o.runs {
			fmt.Fprintf(w, "group %s is in use: its members rebalance once or twice, and go on from the new offsets\n", o.name)
		} else if o.live != nil {
			fmt.Fprintf(w, "--execute will be refused for now:\n%s\n", o.live)
		}
	}
	if o.reset != "" {
		fmt.Fprintf(w, "to move them back: muster groups reset %s --undo %s\n", o.name, o.reset)
	}
}
