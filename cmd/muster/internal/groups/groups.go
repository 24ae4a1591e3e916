// Package groups has the commands about consumer groups: list, describe, explain, history,
// reset, delete, members and migrate.
//
// What is said of a group is packages groupview and explain; these commands print it.
package groups

import (
	"slices"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
)

func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "groups",
		Aliases: []string{"group"},
		Short:   "List, describe, explain, reset and delete consumer groups",
		Example: `  muster groups list --only-with-lag
  muster groups describe billing
  muster groups explain billing                # why did it rebalance?
  muster groups reset billing --topic orders --to-earliest`,
		Args: cli.SubcommandArgs,
		RunE: cli.Help,
	}
	cmd.AddCommand(
		listCommand(), describeCommand(), explainCommand(), historyCommand(),
		resetCommand(), deleteCommand(), membersCommand(), migrateCommand(),
	)
	return cmd
}

// GroupResult is what --json shows of a group that a command tried to change.
type GroupResult struct {
	Name  string  `json:"name"`
	Error *string `json:"error"`
}

func newGroupResult(name string, err error) GroupResult {
	if err == nil {
		return GroupResult{Name: name}
	}
	text := err.Error()
	return GroupResult{name, &text}
}

// oneGroup checks the arguments of a command that takes a group's name.
func oneGroup(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return cli.Usagef("give the name of a group")
	case len(args) > 1:
		return cli.Usagef("give the name of one group, not %d", len(args))
	}
	return nil
}

// someGroups checks the arguments of a command that takes names of groups.
func someGroups(_ *cobra.Command, args []string) error {
	if len(args) == 0 || slices.Contains(args, "") {
		return cli.Usagef("give the name of a group")
	}
	return nil
}
