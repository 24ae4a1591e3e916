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

// OneTopic checks the arguments of a command that takes a topic's name.
func OneTopic(_ *cobra.Command, args []string) error {
	switch {
	case len(args) == 0 || args[0] == "":
		return Usagef("give the name of a topic")
	case len(args) > 1:
		return Usagef("give the name of one topic, not %d", len(args))
	}
	return nil
}

// SomeTopics checks the arguments of a command that takes names of topics.
func SomeTopics(_ *cobra.Command, args []string) error {
	if len(args) == 0 || slices.Contains(args, "") {
		return Usagef("give the name of a topic")
	}
	return nil
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
