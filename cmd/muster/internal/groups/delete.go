package groups

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/cmd/muster/internal/cli"
	"muster/cmd/muster/internal/source"
	"muster/internal/words"
)

func deleteCommand() *cobra.Command {
	var client cli.Flags
	var yes bool
	cmd := &cobra.Command{
		Use:     "delete NAME...",
		Aliases: []string{"rm"},
		Short:   "Delete groups with their committed offsets",
		Long: `Delete groups with their committed offsets. A group that has members is refused:
stop them first. Should its consumers start again, they begin where their
auto.offset.reset says.

At a terminal it asks first, unless --yes is given; without a terminal --yes is
needed. Each group is deleted or refused by itself; if any is refused, the exit
code is 1.

With --json it prints an array of objects with the fields name and error (null
if there is none).`,
		Example: `  muster groups delete billing
  muster groups delete billing audit --yes`,
		Args:              someGroups,
		ValidArgsFunction: cli.CompleteGroups(&client, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return deleteGroups(cmd, &client, cli.Unique(args), yes)
		},
	}
	client.Add(cmd, "print a JSON array")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func deleteGroups(cmd *cobra.Command, client *cli.Flags, names []string, yes bool) error {
	if !yes {
		question := fmt.Sprintf("Delete %s (%s) with all committed offsets?", words.Plural(len(names), "group"), strings.Join(names, ", "))
		if err := cli.Confirm(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), question, cli.IsTerminal(cmd.InOrStdin())); err != nil {
			return err
		}
	}
	ctx := cmd.Context()
	admin, err := client.Admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close()
	responses, err := admin.DeleteGroups(ctx, names...)
	if err != nil && len(responses) == 0 {
		return cli.Plain(err)
	}
	results := []GroupResult{}
	var failed []error
	for _, name := range names {
		err := cli.ErrNoAnswer
		if r, ok := responses[name]; ok {
			err = r.Err
		}
		switch {
		case errors.Is(err, kerr.NonEmptyGroup):
			err = nonEmptyError(ctx, admin, name)
		case err != nil:
			err = cli.GroupError(name, err)
		case !client.JSON:
			fmt.Fprintf(cmd.OutOrStdout(), "deleted group %s\n", name)
		}
		if err != nil {
			failed = append(failed, err)
		}
		results = append(results, newGroupResult(name, err))
	}
	if client.JSON {
		failed = append(failed, cli.WriteJSON(cmd.OutOrStdout(), results))
	}
	return errors.Join(failed...)
}

// nonEmptyError says who is in a group that cannot be deleted.
func nonEmptyError(ctx context.Context, admin *kadm.Client, name string) error {
	described, err := admin.DescribeGroups(ctx, name)
	d := described[name]
	if err != nil || len(d.Members) == 0 {
		return fmt.Errorf("group %s has members; stop them first", name)
	}
	var who []string
	for _, m := range source.Description(&d, nil).Members {
		who = append(who, m.String())
	}
	return fmt.Errorf("group %s has %s: %s; stop %s first", name, words.Plural(len(who), "member"), words.List(who), words.Verb(len(who), "it", "them"))
}
