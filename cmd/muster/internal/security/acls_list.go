package security

import (
	"fmt"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/internal/auth"
)

func aclsListCommand() *cobra.Command {
	var client cli.Flags
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
	client.Add(cmd, "print a JSON array")
	cmd.Flags().StringVar(&who, "for", "", "only rules that name that `user`")
	cli.CompleteFlag(cmd, "for", completeUsers(&client))
	return cmd
}

// completeListed completes TYPE and NAME, which come last in a rule.
func completeListed(client *cli.Flags) cobra.CompletionFunc {
	complete := completeRule(client)
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return complete(cmd, append([]string{"", ""}, args...), prefix)
	}
}

func listRules(cmd *cobra.Command, flags *cli.Flags, who string, args []string) error {
	f := anyRule()
	if who != "" {
		principal := string(auth.ParsePrincipal(who))
		f.Principal = &principal
	}
	if len(args) > 0 {
		kind, err := auth.ParseResourceType(args[0])
		if err != nil {
			return cli.Usagef("%q is no type of resource; there are topic, group, cluster and transactional-id", args[0])
		}
		f.Type = kind
	}
	if len(args) > 1 {
		f.Pattern, f.Name = auth.Match, &args[1]
	}
	client, err := flags.Connect(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	rules, err := describeRules(cmd.Context(), client, f)
	if err != nil {
		return err
	}
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), append([]auth.Rule{}, rules...))
	}
	if len(rules) == 0 {
		fmt.Fprintln(cmd.ErrOrStderr(), "there are no such rules; add one with: muster acls add "+ruleUsage)
		return nil
	}
	t := cli.NewTable("TYPE", "NAME", "PATTERN", "USER", "OPERATION", "PERMISSION", "HOST")
	for _, r := range rules {
		t.Add(argument(r.Type), r.Name, argument(r.Pattern), r.Principal, argument(r.Operation), argument(r.Permission), r.Host)
	}
	return t.Print(cmd.OutOrStdout())
}

// anyRule is the filter that means all rules.
func anyRule() auth.Filter {
	return auth.Filter{Type: auth.AnyResource, Pattern: auth.AnyPattern, Operation: auth.AnyOperation, Permission: auth.AnyPermission}
}
