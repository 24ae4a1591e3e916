package groups

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/auth"
	"muster/internal/watch/groupview"
	"muster/internal/words"
)

// Batch is how many groups we ask for at a time, so that neither the
// requests nor the answers grow with the number of groups.
const Batch = 500

// Listed has the fields of muster groups list --json. What the broker does
// not tell is null.
type Listed struct {
	Name         string   `json:"name"`
	Type         *string  `json:"type"`
	State        string   `json:"state"`
	ProtocolType string   `json:"protocol_type"`
	Assignor     string   `json:"assignor"`
	Members      *int64   `json:"members"`
	Topics       []string `json:"topics"`
	TotalLag     *int64   `json:"total_lag"`
	AtLeast      bool     `json:"total_lag_at_least,omitempty"`
	Uncommitted  *int64   `json:"uncommitted_partitions"`
	Error        *string  `json:"error"`
}

// listGroupsFlags are the flags of muster groups list.
type listGroupsFlags struct {
	cli.Flags
	filter  string
	states  []string
	withLag bool
	sort    string
	limit   int
}

func listCommand() *cobra.Command {
	var flags listGroupsFlags
	cmd := &cobra.Command{
		Use:     "list [REGEX]",
		Aliases: []string{"ls"},
		Short:   "List groups with their state and total lag",
		Long: `List groups: all of them, or those whose name matches a regular expression
(anywhere in the name; anchor it with ^ and $).

TOTAL LAG is the sum over all partitions of
  max(high watermark - max(committed offset, log start offset), 0)
that is, of the records that are there to be read. It is told during a rebalance
too. UNCOMMITTED is how many partitions the group reads without having committed
an offset; they are not in the lag. Records in Redis, in layout stream, are counted
up to a limit: 100000+ is that many or more. What the broker does not tell is
shown as -.

With --json it prints an array of objects with the fields name, type, state, protocol_type, assignor, members, topics, total_lag, uncommitted_partitions and
error, and total_lag_at_least if it is true; what is unknown is null, and then error says why.`,
		Example: `  muster groups list
  muster groups list '^billing' --only-with-lag
  muster groups list --state PreparingRebalance,CompletingRebalance
  muster groups list --sort lag --limit 10
  muster groups list --json | jq -r '.[] | select(.total_lag > 1000).name'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cli.CompleteGroups(&flags.Flags, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if flags.filter != "" {
					return cli.Usagef("give the regular expression as argument or with --filter, not both")
				}
				flags.filter = args[0]
			}
			return listGroups(cmd, &flags)
		},
	}
	flags.Add(cmd, "print a JSON array")
	f := cmd.Flags()
	f.StringVar(&flags.filter, "filter", "", "`regex` that names must match")
	f.StringSliceVar(&flags.states, "state", nil, "`state` to list: Empty, PreparingRebalance, CompletingRebalance or Stable; of consumer groups also Assigning or Reconciling; more than one with commas")
	f.BoolVar(&flags.withLag, "only-with-lag", false, "leave out groups that have read everything")
	f.StringVar(&flags.sort, "sort", "name", "`order`: name, lag or members, the largest first")
	f.IntVarP(&flags.limit, "limit", "n", 0, "list at most `N` groups; 0 for no limit")
	cli.CompleteValues(cmd, "state", groupview.Stable, groupview.Empty, groupview.Preparing, groupview.Completing, groupview.Assigning, groupview.Reconciling)
	cli.CompleteValues(cmd, "sort", "name", "lag", "members")
	return cmd
}

func listGroups(cmd *cobra.Command, flags *listGroupsFlags) error {
	match, err := regexp.Compile(flags.filter)
	switch {
	case err != nil:
		return cli.Usagef("%q is no regular expression: %s", flags.filter, err)
	case flags.limit < 0:
		return cli.Usagef("--limit cannot be negative")
	case !slices.Contains([]string{"name", "lag", "members"}, flags.sort):
		return cli.Usagef("--sort is name, lag or members, not %q", flags.sort)
	}
	if err := checkStates(flags.states); err != nil {
		return err
	}
	ctx := cmd.Context()
	client, err := flags.Connect(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	found, err := kadm.NewClient(client).ListGroups(ctx)
	if err != nil {
		return cli.Plain(err)
	}
	for name, g := range found {
		if !match.MatchString(name) || !flags.wantsState(g.State) {
			delete(found, name)
		}
	}
	groups, left, err := flags.collect(ctx, source.NewLoader(&flags.Flags, client), found)
	if err != nil {
		return err
	}
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), groups)
	}
	if len(groups) == 0 {
		if text, hidden := flags.TellHidden(ctx, client, "groups", auth.Group); hidden && len(found) == 0 {
			fmt.Fprintln(cmd.ErrOrStderr(), text)
			return nil
		}
		flags.tellNone(cmd.ErrOrStderr())
		return nil
	}
	if err := printGroupList(cmd.OutOrStdout(), groups); err != nil {
		return err
	}
	for _, g := range groups {
		if g.Error != nil {
			fmt.Fprintf(cmd.ErrOrStderr(), "muster: %s\n", *g.Error)
		}
	}
	if left {
		fmt.Fprintf(cmd.ErrOrStderr(), "there are more groups; --limit ended the list\n")
	}
	return nil
}

// wantsState applies --state. Brokers filter too, but only newer ones, and they
// take a slip in a state's name for a state without groups.
func (f *listGroupsFlags) wantsState(state string) bool {
	return len(f.states) == 0 || slices.ContainsFunc(f.states, func(want string) bool {
		return strings.EqualFold(strings.TrimSpace(want), state)
	})
}

// collect loads groups, a batch at a time, until there are as many as wanted. It
// says whether the limit left some out.
func (f *listGroupsFlags) collect(ctx context.Context, loader *groupview.Loader, found kadm.ListedGroups) (groups []Listed, left bool, err error) {
	groups = []Listed{}
	inOrder := f.sort == "name"
	for names := range slices.Chunk(found.Groups(), Batch) {
		if inOrder && f.limit > 0 && len(groups) > f.limit {
			break
		}
		states, failed, err := loader.Load(ctx, names)
		if err != nil {
			return nil, false, err
		}
		for _, name := range names {
			g := newListedGroup(found[name], states[name], failed[name])
			if !f.withLag || g.TotalLag == nil || *g.TotalLag > 0 {
				groups = append(groups, g)
			}
		}
	}
	switch f.sort {
	case "lag":
		sort.SliceStable(groups, func(i, j int) bool { return compareKnown(groups[i].TotalLag, groups[j].TotalLag) < 0 })
	case "members":
		sort.SliceStable(groups, func(i, j int) bool { return compareKnown(groups[i].Members, groups[j].Members) < 0 })
	}
	if f.limit > 0 && len(groups) > f.limit {
		return groups[:f.limit], true, nil
	}
	return groups, false, nil
}

// compareKnown puts larger numbers first, and unknown ones last.
func compareKnown(a, b *int64) int {
	value := func(n *int64) int64 {
		if n == nil {
			return -1
		}
		return *n
	}
	return cmp.Compare(value(b), value(a))
}

func newListedGroup(l kadm.ListedGroup, g *groupview.Group, err error) Listed {
	out := Listed{Name: l.Group, State: l.State, ProtocolType: l.ProtocolType, Topics: []string{}}
	if g == nil {
		var none *groupview.NoGroupError
		if errors.As(err, &none) { // It was there a moment ago.
			err = fmt.Errorf("group %s cannot be described: its protocol is neither the classic one nor that of consumer groups, or it has just been deleted", l.Group)
		}
		text := err.Error()
		out.Error = &text
		return out
	}
	members, uncommitted := int64(len(g.Members)), int64(g.Uncommitted)
	out.Type = &g.Type
	out.State, out.ProtocolType, out.Assignor = g.State, g.ProtocolType, g.Assignor
	out.Members, out.Topics, out.TotalLag = &members, append(out.Topics, g.Topics()...), g.TotalLag
	out.AtLeast, out.Uncommitted = g.TotalLagAtLeast, &uncommitted
	return out
}

func printGroupList(w io.Writer, groups []Listed) error {
	t := cli.NewTable("GROUP", "TYPE", "STATE", "PROTOCOL", ">MEMBERS", ">TOPICS", ">TOTAL LAG", ">UNCOMMITTED")
	for _, g := range groups {
		t.Add(g.Name, cli.OrDash(g.Type, func(s string) string { return s }), g.State, formatProtocol(g.ProtocolType, g.Assignor), cli.OrDash(g.Members, cli.FormatInt), len(g.Topics), formatLag(g.TotalLag, g.AtLeast), cli.OrDash(g.Uncommitted, cli.FormatInt))
	}
	return t.Print(w)
}

// tellNone says why the list is empty.
func (f *listGroupsFlags) tellNone(w io.Writer) {
	if f.filter == "" && len(f.states) == 0 && !f.withLag {
		fmt.Fprintln(w, "there are no groups yet; a consumer makes one when it joins or commits")
		return
	}
	var what []string
	if f.filter != "" {
		what = append(what, fmt.Sprintf("matches %q", f.filter))
	}
	if len(f.states) > 0 {
		what = append(what, "is "+strings.Join(f.states, " or "))
	}
	if f.withLag {
		what = append(what, "has lag")
	}
	fmt.Fprintf(w, "no group %s\n", strings.Join(what, " and "))
}

// states are those that groups can be in, in small letters.
var states = func() map[string]string {
	out := map[string]string{}
	for _, s := range []string{groupview.Stable, groupview.Empty, groupview.Preparing, groupview.Completing, groupview.Assigning, groupview.Reconciling, "Dead"} {
		out[strings.ToLower(s)] = s
	}
	return out
}()

// checkStates refuses states that no group can be in.
func checkStates(given []string) error {
	for _, s := range given {
		if states[strings.ToLower(strings.TrimSpace(s))] == "" {
			known := slices.Sorted(maps.Values(states))
			return cli.Usagef("--state %q is not a state of groups; the states are %s%s", s, strings.Join(known, ", "), words.DidYouMean(s, known))
		}
	}
	return nil
}
