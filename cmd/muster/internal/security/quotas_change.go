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
)

func quotasSetCommand() *cobra.Command {
	var client cli.Flags
	cmd := &cobra.Command{
		Use:   "set ENTITY... QUOTA=VALUE...",
		Short: "Set a quota",
		Long: `Set a quota for user=NAME, client-id=NAME, both together, or ip=ADDRESS. A bare user,
client-id or ip sets the quota of all that have none of their own. Other quotas of the
same stay. It holds at once, for connections that are open too.

With --json it prints an object with the fields entity and values.`,
		Example: `  muster quotas set user=alice producer_byte_rate=10MiB consumer_byte_rate=20MiB
  muster quotas set user=alice client-id=batch producer_byte_rate=1MiB
  muster quotas set user producer_byte_rate=1MiB
  muster quotas set ip=10.0.0.9 connection_creation_rate=5`,
		ValidArgsFunction: completeQuota(&client, true),
		RunE:              func(cmd *cobra.Command, args []string) error { return changeQuota(cmd, &client, args, true) },
	}
	client.Add(cmd, "print a JSON object")
	return cmd
}

func quotasRemoveCommand() *cobra.Command {
	var client cli.Flags
	cmd := &cobra.Command{
		Use:     "remove ENTITY... [QUOTA...]",
		Aliases: []string{"rm", "delete"},
		Short:   "Remove a quota",
		Long: `Remove quotas of user=NAME, client-id=NAME, both together, or ip=ADDRESS: those that are
named, or all. What remains is the quota of the next that matches.

With --json it prints an object with the fields entity and values, which is empty.`,
		Example: `  muster quotas remove user=alice producer_byte_rate
  muster quotas remove user=alice client-id=batch`,
		ValidArgsFunction: completeQuota(&client, false),
		RunE:              func(cmd *cobra.Command, args []string) error { return changeQuota(cmd, &client, args, false) },
	}
	client.Add(cmd, "print a JSON object")
	return cmd
}

// changeQuota sets quotas of an entity, or removes them.
func changeQuota(cmd *cobra.Command, flags *cli.Flags, args []string, set bool) error {
	q, keys, err := parseQuota(args, set)
	switch {
	case err != nil:
		return err
	case len(q.Entity) == 0:
		return cli.Usagef("%s", errNoEntity)
	case set && len(keys) == 0:
		return cli.Usagef("say which quota, as in producer_byte_rate=1MiB")
	}
	client, err := flags.Connect(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	done := "set %s for %s\n"
	if !set {
		done = "removed %s of %s\n"
		if keys, err = quotasToRemove(cmd.Context(), client, q, keys); err != nil {
			return err
		}
	}
	var ops []kmsg.AlterClientQuotasRequestEntryOp
	for _, key := range keys {
		op := kmsg.NewAlterClientQuotasRequestEntryOp()
		op.Key, op.Value, op.Remove = key, q.Values[key], !set
		ops = append(ops, op)
	}
	if err := alterQuota(cmd, client, q, ops); err != nil {
		for _, key := range keys {
			if set && !slices.Contains(quotaKeys, key) {
				return fmt.Errorf("%w; %s", err, knownQuotas(key, quotaKeys))
			}
		}
		return err
	}
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), q)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), done, strings.Join(keys, ", "), q.entity())
	return err
}

// quotasToRemove returns the quotas of an entity that there are: those that were named,
// which must be there, or all of them.
func quotasToRemove(ctx context.Context, client *kgo.Client, q QuotaState, named []string) ([]string, error) {
	resp, err := describeQuotas(ctx, client, q, true)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, e := range resp.Entries {
		for _, v := range e.Values {
			keys = append(keys, v.Key)
		}
	}
	slices.Sort(keys)
	if len(keys) == 0 {
		return nil, fmt.Errorf("there are no quotas of %s", q.entity())
	}
	for _, key := range named {
		if !slices.Contains(keys, key) {
			return nil, fmt.Errorf("%s has no quota %s; it has %s", q.entity(), key, strings.Join(keys, ", "))
		}
	}
	if len(named) > 0 {
		return named, nil
	}
	return keys, nil
}

// completeQuota completes whom a quota is for, and the names of quotas.
func completeQuota(flags *cli.Flags, values bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if name, ok := strings.CutPrefix(prefix, "user="); ok {
			users, directive := completeUsers(flags)(cmd, nil, name)
			for i := range users {
				users[i] = "user=" + users[i]
			}
			return users, directive
		}
		var out []string
		for _, kind := range entityTypes {
			out = append(out, kind+"=")
		}
		for _, key := range quotaKeys {
			if values {
				key += "="
			}
			out = append(out, key)
		}
		out = slices.DeleteFunc(out, func(s string) bool { return !strings.HasPrefix(s, prefix) || slices.Contains(args, s) })
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}
