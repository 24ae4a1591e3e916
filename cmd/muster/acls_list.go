package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"muster/internal/auth"
)

func aclsListCommand() *cobra.Command {
	var client clientFlags
	var who string
	cmd := &cobra.Command{
		Use:     "list [TYPE [NAME]]",
		Aliases: []string{"ls"},
		Short:   "List rules",
		Long: `List the rules, by resource. With TYPE only those of topics, groups, transactional-ids
or the cluster; with NAME those that are about that one, whether they name it, a prefix
of it, or all.

With --json it prints an array of objects with the fields type, pattern, name,
principal, host, operation and permission.`,
		Example: `  muster acls list
  muster acls list topic orders
  muster acls list --for alice`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: completeListed(&client),
		RunE:              func(cmd *cobra.Command, args []string) error { return listRules(cmd, &client, who, args) },
	}
	client.add(cmd, "print a JSON array")
	cmd.Flags().StringVar(&who, "for", "", "only rules that name that `user`")
	completeFlag(cmd, "for", completeUsers(&client))
	return cmd
}

// completeListed completes TYPE and NAME, which come last in a rule.
func completeListed(client *clientFlags) cobra.CompletionFunc {
	complete := completeRule(client)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd, append([]string{"", ""}, args...), prefix)
	}
}

func listRules(cmd *cobra.Command, flags *clientFlags, who string, args []string) error {
	f := anyRule()
	if who != "" {
		principal := string(auth.ParsePrincipal(who))
		f.Principal = &principal
	}
	if len(args) > 0 {
		kind, err := auth.ParseResourceType(args[0])
		if err != nil {
			return usagef("%q is no type of resource; there are topic, group, cluster and transactional-id", args[0])
		}
		f.Type = kind
	}
	if len(args) > 1 {
		f.Pattern, f.Name = auth.Match, &args[1]
	}
	client, err := flags.connect(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	rules, err := describeRules(cmd.Context(), client, f)
	if err != nil {
		return err
	}
	if flags.json {
		return writeJSON(cmd.OutOrStdout(), append([]auth.Rule{}, rules...))
	}
	if len(rules) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "there are no such rules; add one with: muster acls add "+ruleUsage)
		return nil
	}
	t := newTable("TYPE", "NAME", "PATTERN", "USER", "OPERATION", "PERMISSION", "HOST")
	for _, r := range rules {
		t.add(argument(r.Type), r.Name, argument(r.Pattern), r.Principal, argument(r.Operation), argument(r.Permission), r.Host)
	}
	return t.print(cmd.OutOrStdout())
}

// anyRule is the filter that means all rules.
func anyRule() auth.Filter {
	return auth.Filter{Type: auth.AnyResource, Pattern: auth.AnyPattern, Operation: auth.AnyOperation, Permission: auth.AnyPermission}
}
