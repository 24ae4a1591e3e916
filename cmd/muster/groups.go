package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/watch/groupview"
)

func groupsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "groups",
		Aliases: []string{"group"},
		Short:   "List, describe, explain, reset and delete consumer groups",
		Example: `  muster groups list --only-with-lag
  muster groups describe billing
  muster groups explain billing                # why did it rebalance?
  muster groups reset billing --topic orders --to-earliest`,
		Args: subcommandArgs,
		RunE: help,
	}
	cmd.AddCommand(
		groupsListCommand(), groupsDescribeCommand(), groupsExplainCommand(), groupsHistoryCommand(),
		groupsResetCommand(), groupsDeleteCommand(), groupsMembersCommand(), groupsMigrateCommand(),
	)
	return cmd
}

// groupResult is what --json shows of a group that a command tried to change.
type groupResult struct {
	Name  string  `json:"name"`
	Error *string `json:"error"`
}

func newGroupResult(name string, err error) groupResult {
	if err == nil {
		return groupResult{Name: name}
	}
	text := err.Error()
	return groupResult{name, &text}
}

// oneGroup checks the arguments of a command that takes a group's name.
func oneGroup(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return usagef("give the name of a group")
	case len(args) > 1:
		return usagef("give the name of one group, not %d", len(args))
	}
	return nil
}

// someGroups checks the arguments of a command that takes names of groups.
func someGroups(_ *cobra.Command, args []string) error {
	if len(args) == 0 || slices.Contains(args, "") {
		return usagef("give the name of a group")
	}
	return nil
}

// groupError is the error that a broker answered for a group.
func groupError(name string, err error) error {
	if errors.Is(err, kerr.GroupIDNotFound) {
		return &groupview.NoGroupError{Name: name}
	}
	return fmt.Errorf("group %s: %w", name, plain(err))
}

// completeGroups completes arguments that are names of groups, as many as
// limit, or any number if it is 0.
func completeGroups(flags *clientFlags, limit int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
		defer cancel()
		admin, err := flags.admin(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer admin.Close()
		groups, err := admin.ListGroups(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := slices.DeleteFunc(groups.Groups(), func(name string) bool {
			return !strings.HasPrefix(name, prefix) || slices.Contains(args, name)
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag completes a flag as arguments are.
func completeFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	value := func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd, nil, prefix)
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, value); err != nil {
		panic(err) // The flag is not defined.
	}
}
