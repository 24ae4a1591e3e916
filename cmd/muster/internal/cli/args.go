package cli

import (
	"slices"

	"github.com/spf13/cobra"
)

// Help is what a command does that only holds subcommands.
func Help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// SubcommandArgs refuses the arguments of a command that only holds
// subcommands: they are a subcommand's name with a slip in it.
func SubcommandArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return Usagef("%s has no command %q; did you mean %q?", cmd.CommandPath(), args[0], near[0])
	}
	return Usagef("%s has no command %q", cmd.CommandPath(), args[0])
}

// One checks the arguments of a command that takes the name of one thing of a kind.
func One(kind string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return Usagef("give the name of a %s", kind)
		case len(args) > 1:
			return Usagef("give the name of one %s, not %d", kind, len(args))
		}
		return nil
	}
}

// Some checks the arguments of a command that takes names.
func Some(kind string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 || slices.Contains(args, "") {
			return Usagef("give the name of a %s", kind)
		}
		return nil
	}
}

// Unique drops the names that are given again.
func Unique(names []string) []string {
	var out []string
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
