package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

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

// CompleteTopics completes arguments that are names of topics, as many as limit, or any
// number if it is 0.
func CompleteTopics(flags *Flags, limit int) cobra.CompletionFunc {
	return CompleteNames(flags, limit, func(ctx context.Context, client *kgo.Client, prefix string) ([]string, error) {
		topics, err := kadm.NewClient(client).ListTopicsWithInternal(ctx)
		if !strings.HasPrefix(prefix, "_") {
			topics.FilterInternal()
		}
		return topics.Names(), err
	})
}

// CompleteGroups completes arguments that are names of groups, as many as limit, or any
// number if it is 0.
func CompleteGroups(flags *Flags, limit int) cobra.CompletionFunc {
	return CompleteNames(flags, limit, func(ctx context.Context, client *kgo.Client, _ string) ([]string, error) {
		groups, err := kadm.NewClient(client).ListGroups(ctx)
		return groups.Groups(), err
	})
}

// CompleteNames completes arguments with names that a broker knows, as many as limit, or any
// number if it is 0. If no broker answers there is nothing to offer, and no one to tell.
func CompleteNames(flags *Flags, limit int, list func(ctx context.Context, client *kgo.Client, prefix string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if limit > 0 && len(args) >= limit {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), CompletionTimeout)
		defer cancel()
		client, err := flags.Connect(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		defer client.Close()
		names, err := list(ctx, client, prefix)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefix) || slices.Contains(args, name) })
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteBy completes a flag.
func CompleteBy(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
		panic(err) // The flag is not defined.
	}
}

// CompleteValues completes a flag that takes one of a few values.
func CompleteValues(cmd *cobra.Command, flag string, values ...string) {
	CompleteBy(cmd, flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// CompleteSettings completes a flag that takes the name of a topic setting,
// followed by suffix.
func CompleteSettings(cmd *cobra.Command, flag, suffix string) {
	CompleteBy(cmd, flag, func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var out []string
		for _, def := range config.TopicDefs() {
			if !def.Inert && strings.HasPrefix(def.Name, prefix) {
				out = append(out, cobra.CompletionWithDesc(def.Name+suffix, def.Doc))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// CompleteFlag completes a flag as arguments are.
func CompleteFlag(cmd *cobra.Command, flag string, complete cobra.CompletionFunc) {
	CompleteBy(cmd, flag, func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd, nil, prefix)
	})
}
