// Package groups has the commands about consumer groups: list, describe, explain, history,
// reset, delete, members and migrate.
//
// What is said of a group is packages groupview and explain; these commands print it.
package groups

import (
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
