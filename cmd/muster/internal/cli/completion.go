package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster/internal/metadata/config"
)

// CompletionTimeout is how long a shell waits for us after the tab key.
const CompletionTimeout = 2 * time.Second

// AddCompletion adds cobra's completion command, with an example that can be
// pasted.
func AddCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			cmd.Short = "Print the completion script for a shell"
			cmd.Long = `Print a script that completes muster's commands, flags and the names of
topics, which it asks the broker for.`
			cmd.Example = `  source <(muster completion bash)            # this shell only
  muster completion bash > /etc/bash_completion.d/muster
  muster completion zsh > "${fpath[1]}/_muster"
  muster completion fish > ~/.config/fish/completions/muster.fish`
			cmd.Args, cmd.RunE = SubcommandArgs, Help
		}
	}
}

// CompleteTopics completes arguments that are names of topics, as many as
// limit, or any number if it is 0. If no broker answers there is nothing to
// offer, and nobody to tell.
func CompleteTopics(flags *Flags, limit int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
		defer cancel()
		admin, err := flags.Admin(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer admin.Close()
		topics, err := admin.ListTopicsWithInternal(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if !strings.HasPrefix(prefix, "_") {
			topics.FilterInternal()
		}
		names := slices.DeleteFunc(topics.Names(), func(name string) bool {
			return !strings.HasPrefix(name, prefix) || slices.Contains(args, name)
		})
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteValues completes a flag that takes one of a few values.
func CompleteValues(cmd *cobra.Command, flag string, values ...string) {
	complete := cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // The flag is not defined.
	}
}

// CompleteSettings completes a flag that takes the name of a topic setting,
// followed by suffix.
func CompleteSettings(cmd *cobra.Command, flag, suffix string) {
	complete := func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var out []string
		for _, def := range config.TopicDefs() {
			if !def.Inert && strings.HasPrefix(def.Name, prefix) {
				out = append(out, cobra.CompletionWithDesc(def.Name+suffix, def.Doc))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // The flag is not defined.
	}
}

// CompleteGroups completes arguments that are names of groups, as many as
// limit, or any number if it is 0.
func CompleteGroups(flags *Flags, limit int) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
		defer cancel()
		admin, err := flags.Admin(ctx)
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

// CompleteFlag completes a flag as arguments are.
func CompleteFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	value := func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd, nil, prefix)
	}
	if err := cmd.RegisterFlagCompletionFunc(flag, value); err != nil {
		panic(err) // The flag is not defined.
	}
}
