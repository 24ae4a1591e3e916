package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

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
	execute    bool
}

// ResetGroup has the fields of muster groups reset --json.
type ResetGroup struct {
	Name       string           `json:"name"`
	Executed   bool             `json:"executed"`
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

A group's offsets can only be moved while it has no members, because members go
on from where they are and overwrite what is committed. Stop them first.

Of a share group it moves the offsets where partitions start. Everything from there
on is delivered again, also what was accepted.

Offsets outside of the log are moved to its nearest end. A group that does not
exist is created by --execute, so that its consumers begin where you say.

With --json it prints one object with the fields name, executed and partitions
(topic, partition, current, new, lag_after, note, error). current is null if
nothing is committed, new if nothing changes.`,
		Example: `  muster groups reset billing --topic orders --to-earliest
  muster groups reset billing --topic orders --to-earliest --execute
  muster groups reset billing --all-topics --to-timestamp -1h
  muster groups reset billing --all-topics --to-timestamp 2026-01-31T08:00:00Z
  muster groups reset billing --topic orders:3 --shift-by 1 --execute   # skip a record`,
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
	f.BoolVar(&flags.execute, "execute", false, "do it; without this nothing is changed")
	cmd.MarkFlagsMutuallyExclusive("topic", "all-topics")
	cmd.MarkFlagsMutuallyExclusive("to-earliest", "to-latest", "to-offset", "to-timestamp", "shift-by")
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
	if len(scopes) == 0 && !flags.allTopics {
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
	live := liveError(g)
	if flags.execute && live != nil {
		return live
	}
	rows, err := planReset(ctx, client, loader, name, g, scopes, target)
	if err != nil {
		return err
	}
	shared := g != nil && g.Type == groupview.TypeShare
	switch {
	case !flags.execute:
	case shared:
		err = executeShareReset(ctx, client, name, rows)
	default:
		err = executeReset(ctx, client, name, rows)
	}
	var printErr error
	if flags.JSON {
		printErr = cli.WriteJSON(cmd.OutOrStdout(), ResetGroup{name, flags.execute, rows})
	} else {
		printErr = printReset(cmd.OutOrStdout(), rows)
		tellReset(cmd.ErrOrStderr(), name, g == nil, shared, flags.execute, live, rows, err)
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

// executeReset commits the new offsets as one that is no member, which a broker
// takes only while there are no members.
func executeReset(ctx context.Context, client *kgo.Client, name string, rows []resetPartition) error {
	offsets := kadm.Offsets{}
	for i := range rows {
		if r := &rows[i]; r.changes() {
			offsets.AddOffset(r.Topic, r.Partition, *r.New, -1)
		}
	}
	if len(offsets) == 0 {
		return nil
	}
	done, err := kadm.NewClient(client).CommitOffsets(ctx, name, offsets)
	if err != nil {
		return cli.GroupError(name, err)
	}
	var failed []error
	joined := false
	for i := range rows {
		r := &rows[i]
		o, ok := done.Lookup(r.Topic, r.Partition)
		if !ok || o.Err == nil {
			continue
		}
		text := cli.Plain(o.Err).Error()
		r.Error = &text
		if errors.Is(o.Err, kerr.UnknownMemberID) || errors.Is(o.Err, kerr.RebalanceInProgress) || errors.Is(o.Err, kerr.IllegalGeneration) {
			joined = true
			continue
		}
		failed = append(failed, fmt.Errorf("%s-%d: %w", r.Topic, r.Partition, cli.Plain(o.Err)))
	}
	if joined {
		failed = append(failed, fmt.Errorf("a member joined group %s meanwhile, so the broker refused; stop it and run this again", name))
	}
	return errors.Join(failed...)
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

// tellReset says what the table means.
func tellReset(w io.Writer, name string, fresh, shared, executed bool, live error, rows []resetPartition, err error) {
	changes := 0
	for i := range rows {
		if rows[i].changes() {
			changes++
		}
	}
	what := words.Plural(changes, "partition")
	switch {
	case err != nil:
	case executed && shared:
		fmt.Fprintf(w, "share group %s begins anew in %s\n", name, words.Plural(len(rows), "partition"))
	case executed && changes == 0:
		fmt.Fprintf(w, "nothing to change: group %s is there already\n", name)
	case executed:
		fmt.Fprintf(w, "moved the committed offsets of group %s in %s\n", name, what)
	default:
		fmt.Fprintf(w, "this is a dry run, nothing was changed; --execute moves %s\n", what)
		if fresh {
			fmt.Fprintf(w, "there is no group %q; --execute creates it\n", name)
		}
		if live != nil {
			fmt.Fprintf(w, "--execute will be refused for now:\n%s\n", live)
		}
	}
}
