// Package security has the commands about who may do what, and how much: users, acls, quotas,
// secret, and audit, which shows who did.
//
// Rules are read as a broker reads them, by package auth.
package security

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/internal/auth"
)

func AclsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "acls",
		Aliases: []string{"acl"},
		Short:   "Say who may do what, and find out why a user may or may not",
		Long: `Say who may do what. A rule (ACL) allows or denies a user an operation on a topic, a
group, a transactional id or the cluster. Rules that deny win over those that allow;
what no rule allows is denied. A broker goes by rules if authorizer.class.name is set.`,
		Example: `  muster acls add alice read topic orders
  muster acls add --prefixed alice read group billing-
  muster acls list
  muster acls why alice write topic orders`,
		Args: cli.SubcommandArgs,
		RunE: cli.Help,
	}
	cmd.AddCommand(aclsListCommand(), aclsAddCommand(), aclsRemoveCommand(), aclsWhyCommand())
	return cmd
}

// ruleFlags are the flags that make a rule together with the arguments.
type ruleFlags struct {
	cli.Flags
	deny     bool
	prefixed bool
	host     string
}

func (f *ruleFlags) add(cmd *cobra.Command) {
	f.Flags.Add(cmd, "print a JSON array")
	cmd.Flags().BoolVar(&f.deny, "deny", false, "a rule that denies instead of allowing")
	cmd.Flags().BoolVar(&f.prefixed, "prefixed", false, "for all names that begin with NAME")
	cmd.Flags().StringVar(&f.host, "host", auth.AnyHost, "only for connections from that `address`")
	cmd.ValidArgsFunction = completeRule(&f.Flags)
}

// ruleUsage is the form of the arguments, which auth.Rule.Command prints too.
const ruleUsage = "USER OPERATION TYPE [NAME]"

// rules reads the arguments. Operations may be several with commas.
func (f *ruleFlags) rules(args []string) ([]auth.Rule, error) {
	q, err := parseAccess(args)
	if err != nil {
		return nil, err
	}
	var out []auth.Rule
	for _, op := range q.operations {
		r := auth.Rule{
			Type: q.kind, Pattern: auth.Literal, Name: q.name, Principal: q.principal, Host: f.host,
			Operation: op, Permission: auth.Allow,
		}
		if f.deny {
			r.Permission = auth.Deny
		}
		if f.prefixed {
			r.Pattern = auth.Prefixed
		}
		if r, err = r.Check(); err != nil {
			return nil, cli.Usagef("%s", err)
		}
		if !q.kind.Operations().Has(op) && op != auth.All {
			return nil, cli.Usagef("%s is nothing that can be done with a %s; there %s", argument(op), argument(q.kind), possible(q.kind))
		}
		out = append(out, r)
	}
	return out, nil
}

// access is what USER OPERATION TYPE [NAME] says.
type access struct {
	principal  auth.Principal
	operations []auth.Operation
	kind       auth.ResourceType
	name       string
}

func parseAccess(args []string) (access, error) {
	var q access
	if len(args) < 3 || len(args) > 4 || args[0] == "" {
		return q, cli.Usagef("give %s, as in: alice read topic orders", ruleUsage)
	}
	q.principal = auth.ParsePrincipal(args[0])
	for name := range strings.SplitSeq(args[1], ",") {
		op, err := auth.ParseOperation(name)
		if err != nil || op == auth.AnyOperation {
			return q, cli.Usagef("%q is no operation; write read, write, create, delete, alter, describe, all …", name)
		}
		if !slices.Contains(q.operations, op) {
			q.operations = append(q.operations, op)
		}
	}
	var err error
	if q.kind, err = auth.ParseResourceType(args[2]); err != nil || q.kind == auth.AnyResource {
		return q, cli.Usagef("%q is no type of resource; there are topic, group, cluster and transactional-id", args[2])
	}
	switch named := len(args) == 4; {
	case q.kind == auth.Cluster && named && args[3] != auth.ClusterName:
		return q, cli.Usagef("there is one cluster, which needs no name")
	case q.kind == auth.Cluster:
		q.name = auth.ClusterName
	case !named || args[3] == "":
		return q, cli.Usagef("give the name of a %s, or '*' for all", argument(q.kind))
	default:
		q.name = args[3]
	}
	return q, nil
}

// argument writes an operation or a type as people type it.
func argument(kind fmt.Stringer) string {
	return strings.ReplaceAll(strings.ToLower(kind.String()), "_", "-")
}

// possible says which operations a type of resource has.
func possible(t auth.ResourceType) string {
	var names []string
	for op := auth.Read; op <= auth.TwoPhaseCommit; op++ {
		if t.Operations().Has(op) {
			names = append(names, argument(op))
		}
	}
	return "are " + strings.Join(names, ", ")
}

// describeRules asks for the rules that a filter means.
func describeRules(ctx context.Context, client *kgo.Client, f auth.Filter) ([]auth.Rule, error) {
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourceName, req.ResourcePatternType = kmsg.ACLResourceType(f.Type), f.Name, kmsg.ACLResourcePatternType(f.Pattern)
	req.Principal, req.Host = f.Principal, f.Host
	req.Operation, req.PermissionType = kmsg.ACLOperation(f.Operation), kmsg.ACLPermissionType(f.Permission)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, cli.Plain(err)
	}
	if resp.ErrorCode != 0 {
		return nil, cli.BrokerError(resp.ErrorCode, resp.ErrorMessage)
	}
	var out []auth.Rule
	for _, r := range resp.Resources {
		for _, a := range r.ACLs {
			out = append(out, auth.Rule{
				Type: auth.ResourceType(r.ResourceType), Pattern: auth.PatternType(r.ResourcePatternType), Name: r.ResourceName,
				Principal: auth.Principal(a.Principal), Host: a.Host,
				Operation: auth.Operation(a.Operation), Permission: auth.Permission(a.PermissionType),
			})
		}
	}
	return out, nil
}

// completeRule completes USER OPERATION TYPE [NAME].
func completeRule(flags *cli.Flags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		var out []string
		switch len(args) {
		case 0:
			return completeUsers(flags)(cmd, args, prefix)
		case 1:
			for op := auth.All; op <= auth.TwoPhaseCommit; op++ {
				out = append(out, argument(op))
			}
		case 2:
			out = []string{"topic", "group", "cluster", "transactional-id"}
		case 3:
			switch args[2] {
			case "topic":
				return cli.CompleteTopics(flags, 0)(cmd, nil, prefix)
			case "group":
				return cli.CompleteGroups(flags, 0)(cmd, nil, prefix)
			}
		}
		out = slices.DeleteFunc(out, func(s string) bool { return !strings.HasPrefix(s, prefix) })
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
