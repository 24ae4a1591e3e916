package security

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/cmd/muster/internal/cli"
	"muster/internal/auth"
)

// WhyResult is what --json shows of a decision.
type WhyResult struct {
	Allowed bool       `json:"allowed"`
	Text    string     `json:"text"`
	Rule    *auth.Rule `json:"rule"` // the deciding one, null if none did
	Fix     *string    `json:"fix"`  // the command that would allow it, null if it is allowed
}

func aclsWhyCommand() *cobra.Command {
	var client cli.Flags
	var host string
	cmd := &cobra.Command{
		Use:   "why " + ruleUsage,
		Short: "Say whether a user may do something, and which rule decides",
		Long: `Say whether USER may do OPERATION with a resource, which rule decides that, and, if it is
denied, which command would allow it. It asks the broker for its rules and for the
settings super.users and allow.everyone.if.no.acl.found, and decides as the broker does.

A rule may be about one address only: --host says where USER comes from.

With --json it prints an object with the fields allowed, text, rule and fix.`,
		Example: `  muster acls why alice read topic orders
  muster acls why alice read group billing --host 10.0.0.9
  muster acls why bob create cluster --json`,
		ValidArgsFunction: completeRule(&client),
		RunE:              func(cmd *cobra.Command, args []string) error { return why(cmd, &client, host, args) },
	}
	client.Add(cmd, "print a JSON object")
	cmd.Flags().StringVar(&host, "host", auth.AnyHost, "the `address` that the user comes from; without it only rules for any host count")
	return cmd
}

func why(cmd *cobra.Command, flags *cli.Flags, host string, args []string) error {
	q, err := parseAccess(args)
	if err != nil {
		return err
	}
	if len(q.operations) != 1 {
		return cli.Usagef("give one operation, not %d", len(q.operations))
	}
	client, err := flags.Connect(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	asked := auth.Request{Principal: q.principal, Host: host, Operation: q.operations[0], Type: q.kind, Name: q.name}
	answer, err := askRules(cmd.Context(), client, asked)
	if err != nil {
		return err
	}
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), answer)
	}
	text := answer.Text + "\n"
	if answer.Fix != nil {
		text += "To allow it: " + *answer.Fix + "\n"
	}
	_, err = io.WriteString(cmd.OutOrStdout(), text)
	return err
}

// askRules decides as the broker does.
func askRules(ctx context.Context, client *kgo.Client, q auth.Request) (WhyResult, error) {
	rules, err := describeRules(ctx, client, anyRule())
	if errors.Is(err, kerr.SecurityDisabled) {
		text := fmt.Sprintf("%s may %s, as everyone may do everything: ACLs are off, since authorizer.class.name is not set.", q.Principal, q.Operation)
		return WhyResult{Allowed: true, Text: text}, nil
	}
	if err != nil {
		return WhyResult{}, err
	}
	policy, err := describePolicy(ctx, client)
	if err != nil {
		return WhyResult{}, err
	}
	edit := auth.New(policy).Edit()
	for _, r := range rules {
		if r, err := r.Check(); err == nil { // What we do not understand is of another broker's.
			edit.Add(r)
		}
	}
	w := edit.Index().Why(q)
	out := WhyResult{Allowed: w.Allowed, Text: w.Sentence}
	if q.Host == auth.AnyHost {
		// The sentence quotes the star, which is no host.
		out.Text = strings.Replace(out.Text, ` from "*": `, " from any host: ", 1)
	}
	if w.Reason == auth.ByRule {
		out.Rule = &w.Rule
	}
	if w.Fix != "" {
		out.Fix = &w.Fix
	}
	return out, nil
}

// describePolicy asks a broker for the settings that decide besides the rules.
func describePolicy(ctx context.Context, client *kgo.Client) (policy auth.Policy, err error) {
	admin := kadm.NewClient(client)
	brokers, err := admin.ListBrokers(ctx)
	if err != nil {
		return policy, cli.Plain(err)
	}
	ids := brokers.NodeIDs()
	if len(ids) == 0 {
		return policy, cli.ErrNoAnswer
	}
	described, err := admin.DescribeBrokerConfigs(ctx, ids[0])
	if err != nil {
		return policy, cli.Plain(err)
	}
	for _, r := range described {
		if r.Err != nil {
			return policy, cli.Plain(r.Err)
		}
		for _, c := range r.Configs {
			switch {
			case c.Value == nil:
			case c.Key == "super.users":
				if policy.SuperUsers, err = auth.ParseSuperUsers(*c.Value); err != nil {
					return policy, err
				}
			case c.Key == "allow.everyone.if.no.acl.found":
				policy.AllowEveryone = *c.Value == "true"
			}
		}
	}
	return policy, nil
}
