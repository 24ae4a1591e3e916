// Package top has muster top: the groups of a cluster as they are now, on a terminal or as
// a table.
//
// It asks the HTTP API of a broker, which has looked at all groups already.
package top

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
)

// topFlags are the flags of muster top.
type topFlags struct {
	cli.Flags
	http  string
	sort  string
	query string
	every time.Duration
	once  bool
}

func Command() *cobra.Command {
	var f topFlags
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Watch groups in a terminal: lag, who is behind, who rebalances",
		Long: `Watch all groups in a terminal, the largest lag first, as the console's page of
groups shows them. Keys:

  up, down, PgUp, PgDn   choose a group (also k and j)
  Enter                  why the group is as it is: muster groups explain
  Esc                    back to the list
  s, S                   sort by the next column, or the other way round
  /                      show only groups with some text in their name
  q                      quit

Without a terminal, or with --once, it prints one table and ends.

It asks a muster broker over HTTP. The address is what the broker at --broker says
it listens on, or 127.0.0.1:9021; --http names another. With --user, a password goes
in plain text to another machine only if --http names its http:// address.`,
		Example: `  muster top
  muster top --http http://127.0.0.1:9121
  muster top --once --sort lagSeconds --filter billing`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.Add(cmd, "print the broker's answer as JSON")
	cmd.Flags().StringVar(&f.http, "http", os.Getenv(cli.HTTPEnv), "`URL` at which a broker answers HTTP; also from $"+cli.HTTPEnv)
	cmd.Flags().StringVar(&f.sort, "sort", topSorts[0].by, "sort by "+sortNames())
	cmd.Flags().StringVar(&f.query, "filter", "", "only groups with this `text` in their name")
	cmd.Flags().DurationVar(&f.every, "every", 2*time.Second, "how often to ask")
	cmd.Flags().BoolVar(&f.once, "once", false, "print one table and end")
	cli.CompleteValues(cmd, "sort", strings.Split(sortNames(), ", ")...)
	return cmd
}

// topSort is an order of groups, with what comes first when it is chosen.
type topSort struct {
	by   string
	down bool
}

var topSorts = []topSort{
	{"lag", true}, {"lagSeconds", true}, {"catchUp", true}, {"members", true}, {"rebalanced", true}, {"state", false}, {"name", false},
}

func sortNames() string {
	var names []string
	for _, s := range topSorts {
		names = append(names, s.by)
	}
	return strings.Join(names, ", ")
}

// minTopInterval keeps top from asking all the time.
const minTopInterval = 200 * time.Millisecond

func (f *topFlags) run(cmd *cobra.Command) error {
	sorted := slices.IndexFunc(topSorts, func(s topSort) bool { return s.by == f.sort })
	switch {
	case sorted < 0:
		return cli.Usagef("--sort is one of %s, not %q", sortNames(), f.sort)
	case f.every < minTopInterval:
		return cli.Usagef("--every is %s at least", minTopInterval)
	}
	api, err := f.findAPI(cmd.Context())
	if err != nil {
		return err
	}
	defer api.close()
	view := &topView{address: api.base, sort: sorted, down: topSorts[sorted].down, query: f.query}
	in, out := cmd.InOrStdin(), cmd.OutOrStdout()
	if f.once || f.JSON || !cli.IsTerminal(out) || !cli.IsTerminal(in) {
		return f.printOnce(cmd.Context(), api, view, out)
	}
	return watchGroups(cmd.Context(), api, view, f.every, in.(*os.File), out.(*os.File))
}

// printOnce prints one table.
func (f *topFlags) printOnce(ctx context.Context, api *topAPI, view *topView, out io.Writer) error {
	list, err := api.groups(ctx, view)
	if err != nil {
		return err
	}
	if f.JSON {
		return cli.WriteJSON(out, list)
	}
	view.list, view.now = list, time.Now()
	if note := view.incomplete(); note != "" {
		fmt.Fprintln(out, note)
	}
	t := cli.NewTable(topTitles...)
	for i := range list.Groups {
		t.Add(view.cells(&list.Groups[i])...)
	}
	return t.Print(out)
}
