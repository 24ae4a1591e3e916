package security

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/internal/auth"
)

func aclsAddCommand() *cobra.Command {
	var flags ruleFlags
	cmd := &cobra.Command{
		Use:   "add " + ruleUsage,
		Short: "Add a rule that allows or denies something",
		Long: `Add a rule: it allows USER (or '*', everyone) an OPERATION on a resource. TYPE is
topic, group, transactional-id or cluster; NAME is the resource's name, or '*' for all,
and the cluster has none. Several operations are written with commas.

To read as a group, a user needs read on the topic and on the group; to write, write
on the topic; to create topics, create on the cluster or on a topic with --prefixed.
read, write, delete and alter include describe. A rule that is there already stays.

With --json it prints an array of the rules with the fields type, pattern, name,
principal, host, operation and permission.`,
		Example: `  muster acls add alice read topic orders
  muster acls add alice read group billing
  muster acls add --prefixed alice read,write topic app.
  muster acls add --deny --host 10.0.0.9 '*' all topic payments
  muster acls add alice create cluster`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeRules(cmd, &flags, args, "added", createRules)
		},
	}
	flags.add(cmd)
	return cmd
}

func aclsRemoveCommand() *cobra.Command {
	var flags ruleFlags
	cmd := &cobra.Command{
		Use:     "remove " + ruleUsage,
		Aliases: []string{"rm", "delete"},
		Short:   "Remove a rule",
		Long: `Remove the rule that muster acls add makes of the same arguments and flags, and no
other: to remove a rule that denies, give --deny too.

With --json it prints an array of the rules with the fields type, pattern, name,
principal, host, operation and permission.`,
		Example: `  muster acls remove alice read topic orders
  muster acls remove --deny --host 10.0.0.9 '*' all topic payments`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return changeRules(cmd, &flags, args, "removed", deleteRules)
		},
	}
	flags.add(cmd)
	return cmd
}

// changeRules adds or removes the rules that the arguments make, each by itself.
func changeRules(cmd *cobra.Command, flags *ruleFlags, args []string, done string, change func(context.Context, *kgo.Client, []auth.Rule) ([]error, error)) error {
	rules, err := flags.rules(args)
	if err != nil {
		return err
	}
	client, err := flags.Connect(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	errs, err := change(cmd.Context(), client, rules)
	if err != nil {
		return err
	}
	changed := []auth.Rule{}
	for i, r := range rules {
		if errs[i] != nil {
			continue
		}
		changed = append(changed, r)
		if !flags.JSON {
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", done, r)
		}
	}
	if flags.JSON {
		errs = append(errs, cli.WriteJSON(cmd.OutOrStdout(), changed))
	}
	return errors.Join(errs...)
}

func createRules(ctx context.Context, client *kgo.Client, rules []auth.Rule) ([]error, error) {
	req := kmsg.NewPtrCreateACLsRequest()
	for _, r := range rules {
		c := kmsg.NewCreateACLsRequestCreation()
		c.ResourceType, c.ResourcePatternType, c.ResourceName = kmsg.ACLResourceType(r.Type), kmsg.ACLResourcePatternType(r.Pattern), r.Name
		c.Principal, c.Host, c.Operation, c.PermissionType = string(r.Principal), r.Host, kmsg.ACLOperation(r.Operation), kmsg.ACLPermissionType(r.Permission)
		req.Creations = append(req.Creations, c)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, cli.Plain(err)
	}
	if len(resp.Results) != len(rules) {
		return nil, cli.ErrNoAnswer
	}
	errs := make([]error, len(rules))
	for i, r := range resp.Results {
		if r.ErrorCode != 0 {
			errs[i] = cli.BrokerError(r.ErrorCode, r.ErrorMessage)
		}
	}
	return errs, nil
}

func deleteRules(ctx context.Context, client *kgo.Client, rules []auth.Rule) ([]error, error) {
	req := kmsg.NewPtrDeleteACLsRequest()
	for _, r := range rules {
		f := kmsg.NewDeleteACLsRequestFilter()
		principal := string(r.Principal)
		f.ResourceType, f.ResourcePatternType, f.ResourceName = kmsg.ACLResourceType(r.Type), kmsg.ACLResourcePatternType(r.Pattern), &r.Name
		f.Principal, f.Host, f.Operation, f.PermissionType = &principal, &r.Host, kmsg.ACLOperation(r.Operation), kmsg.ACLPermissionType(r.Permission)
		req.Filters = append(req.Filters, f)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, cli.Plain(err)
	}
	if len(resp.Results) != len(rules) {
		return nil, cli.ErrNoAnswer
	}
	errs := make([]error, len(rules))
	for i, r := range resp.Results {
		switch {
		case r.ErrorCode != 0:
			errs[i] = cli.BrokerError(r.ErrorCode, r.ErrorMessage)
		case len(r.MatchingACLs) == 0:
			errs[i] = fmt.Errorf("there is no rule that says %s; muster acls list shows those there are", rules[i])
		case r.MatchingACLs[0].ErrorCode != 0:
			errs[i] = cli.BrokerError(r.MatchingACLs[0].ErrorCode, r.MatchingACLs[0].ErrorMessage)
		}
	}
	return errs, nil
}
