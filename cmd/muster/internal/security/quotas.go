package security

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/cmd/muster/internal/cli"
	"muster/internal/words"
)

func QuotasCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "quotas",
		Aliases: []string{"quota"},
		Short:   "Limit how much users, clients and addresses may do",
		Long: `Limit how much users, clients and addresses may do. A quota is for user=NAME, for
client-id=NAME, for both together, or for ip=ADDRESS. A bare user, client-id or ip is
the quota of all that have none of their own.

The quotas are producer_byte_rate and consumer_byte_rate (bytes in a second),
controller_mutation_rate (partitions created and deleted in a second), request_percentage,
and connection_creation_rate (connections in a second, for ip only).`,
		Example: `  muster quotas set user=alice producer_byte_rate=10MiB
  muster quotas set client-id consumer_byte_rate=1048576
  muster quotas list
  muster quotas remove user=alice producer_byte_rate`,
		Args: cli.SubcommandArgs,
		RunE: cli.Help,
	}
	cmd.AddCommand(quotasListCommand(), quotasSetCommand(), quotasRemoveCommand())
	return cmd
}

// quotaKeys are the quotas there are, for completion: the broker has the last word.
var quotaKeys = []string{"producer_byte_rate", "consumer_byte_rate", "controller_mutation_rate", "request_percentage", "connection_creation_rate"}

var entityTypes = []string{"user", "client-id", "ip"}

// QuotaState is a quota as list shows it. A name that is null is the default of its type.
type QuotaState struct {
	Entity map[string]*string `json:"entity"`
	Values map[string]float64 `json:"values"`
}

// entity words whom a quota is for, in the form of arguments.
func (q QuotaState) entity() string {
	var parts []string
	for _, kind := range entityTypes {
		switch name, ok := q.Entity[kind]; {
		case ok && name == nil:
			parts = append(parts, kind)
		case ok:
			parts = append(parts, kind+"="+*name)
		}
	}
	return strings.Join(parts, " ")
}

func quotasListCommand() *cobra.Command {
	var client cli.Flags
	cmd := &cobra.Command{
		Use:     "list [ENTITY...]",
		Aliases: []string{"ls"},
		Short:   "List quotas",
		Long: `List the quotas. With user=NAME, client-id=NAME or ip=ADDRESS only those that name it; a
bare user, client-id or ip stands for the defaults.

With --json it prints an array of objects with the fields entity, in which a name that is
null is the default, and values.`,
		Example: `  muster quotas list
  muster quotas list user=alice`,
		ValidArgsFunction: completeQuota(&client, false),
		RunE:              func(cmd *cobra.Command, args []string) error { return listQuotas(cmd, &client, args) },
	}
	client.Add(cmd, "print a JSON array")
	return cmd
}

func listQuotas(cmd *cobra.Command, flags *cli.Flags, args []string) error {
	q, keys, err := parseQuota(args, false)
	if err != nil {
		return err
	}
	if len(keys) > 0 {
		return cli.Usagef("%q is none of user, client-id and ip", keys[0])
	}
	client, err := flags.Connect(cmd.Context())
	if err != nil {
		return err
	}
	defer client.Close()
	resp, err := describeQuotas(cmd.Context(), client, q, false)
	if err != nil {
		return err
	}
	return printQuotas(cmd, flags, q, resp)
}

// describeQuotas asks for the quotas that name an entity or, if strict, for its own alone.
func describeQuotas(ctx context.Context, client *kgo.Client, q QuotaState, strict bool) (*kmsg.DescribeClientQuotasResponse, error) {
	req := kmsg.NewPtrDescribeClientQuotasRequest()
	req.Strict = strict
	for _, kind := range entityTypes {
		if name, ok := q.Entity[kind]; ok {
			c := kmsg.NewDescribeClientQuotasRequestComponent()
			c.EntityType, c.Match = kind, name
			if name == nil {
				c.MatchType = kmsg.QuotasMatchTypeDefault
			}
			req.Components = append(req.Components, c)
		}
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return nil, cli.Plain(err)
	}
	if resp.ErrorCode != 0 {
		return nil, cli.BrokerError(resp.ErrorCode, resp.ErrorMessage)
	}
	return resp, nil
}

func printQuotas(cmd *cobra.Command, flags *cli.Flags, asked QuotaState, resp *kmsg.DescribeClientQuotasResponse) error {
	quotas := []QuotaState{}
	for _, e := range resp.Entries {
		q := QuotaState{map[string]*string{}, map[string]float64{}}
		for _, part := range e.Entity {
			q.Entity[part.Type] = part.Name
		}
		for _, v := range e.Values {
			q.Values[v.Key] = v.Value
		}
		quotas = append(quotas, q)
	}
	sort.Slice(quotas, func(i, j int) bool { return quotas[i].entity() < quotas[j].entity() })
	if flags.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), quotas)
	}
	if len(quotas) == 0 {
		if of := asked.entity(); of != "" {
			fmt.Fprintln(cmd.ErrOrStderr(), "there are no quotas of", of)
			return nil
		}
		fmt.Fprintln(cmd.ErrOrStderr(), "there are no quotas yet; set one with: muster quotas set user=NAME producer_byte_rate=1MiB")
		return nil
	}
	t := cli.NewTable("FOR", "QUOTA", ">VALUE")
	for _, q := range quotas {
		var keys []string
		for key := range q.Values {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			t.Add(q.entity(), key, strconv.FormatFloat(q.Values[key], 'f', -1, 64))
		}
	}
	return t.Print(cmd.OutOrStdout())
}

// parseQuota splits arguments into whom a quota is for and what it is.
func parseQuota(args []string, values bool) (q QuotaState, keys []string, err error) {
	q = QuotaState{map[string]*string{}, map[string]float64{}}
	for _, arg := range args {
		name, value, given := strings.Cut(arg, "=")
		if slices.Contains(entityTypes, name) {
			if _, twice := q.Entity[name]; twice {
				return q, nil, cli.Usagef("%s is given twice", name)
			}
			q.Entity[name] = nil
			if given && value == "" {
				return q, nil, cli.Usagef("%s= has no name; a bare %s is the default of all", name, name)
			}
			if given {
				q.Entity[name] = &value
			}
			continue
		}
		if values != given {
			return q, nil, cli.Usagef("%q is none of user, client-id and ip, and no quota in the form %s", arg, map[bool]string{true: "name=value", false: "name"}[values])
		}
		if slices.Contains(keys, name) {
			return q, nil, cli.Usagef("%s is given twice", name)
		}
		keys = append(keys, name)
		if values {
			q.Values[name], err = parseRate(value)
			switch {
			case err != nil && !slices.Contains(quotaKeys, name): // Else the broker has the last word.
				return q, nil, cli.Usagef("%q is neither user, client-id or ip, nor a quota; %s", name, knownQuotas(name, slices.Concat(entityTypes, quotaKeys)))
			case err != nil:
				return q, nil, err
			}
		}
	}
	return q, keys, nil
}

// knownQuotas lists the quotas, with the one that may have been meant by a name.
func knownQuotas(name string, known []string) string {
	return "the quotas are " + strings.Join(quotaKeys, ", ") + words.DidYouMean(name, known)
}

// parseRate reads a number, which may have a unit of bytes.
func parseRate(text string) (float64, error) {
	number, factor := text, 1.0
	for i, unit := range []string{"KiB", "MiB", "GiB"} {
		if n, ok := strings.CutSuffix(text, unit); ok {
			number, factor = n, math.Pow(1024, float64(i+1))
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, cli.Usagef("%q is not a rate; write a number, for bytes also as 512KiB, 10MiB or 1GiB", text)
	}
	return v * factor, nil
}

// alterQuota changes one quota.
func alterQuota(cmd *cobra.Command, client *kgo.Client, q QuotaState, ops []kmsg.AlterClientQuotasRequestEntryOp) error {
	req := kmsg.NewPtrAlterClientQuotasRequest()
	e := kmsg.NewAlterClientQuotasRequestEntry()
	for _, kind := range entityTypes {
		if name, ok := q.Entity[kind]; ok {
			part := kmsg.NewAlterClientQuotasRequestEntryEntity()
			part.Type, part.Name = kind, name
			e.Entity = append(e.Entity, part)
		}
	}
	e.Ops = ops
	req.Entries = append(req.Entries, e)
	resp, err := req.RequestWith(cmd.Context(), client)
	if err != nil {
		return cli.Plain(err)
	}
	if len(resp.Entries) != 1 {
		return cli.ErrNoAnswer
	}
	if r := resp.Entries[0]; r.ErrorCode != 0 {
		return cli.BrokerError(r.ErrorCode, r.ErrorMessage)
	}
	return nil
}

var errNoEntity = errors.New("say whom the quota is for: user=NAME, client-id=NAME or ip=ADDRESS; a bare user, client-id or ip is the default of all")
