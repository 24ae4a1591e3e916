package topics

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster/cmd/muster/internal/cli"
	"muster/internal/words"
)

func deleteCommand() *cobra.Command {
	var client cli.Flags
	var yes bool
	cmd := &cobra.Command{
		Use:     "delete NAME...",
		Aliases: []string{"rm"},
		Short:   "Delete topics with all their records",
		Long: `Delete topics with all their records. At a terminal it asks first, unless --yes
is given; without a terminal --yes is needed. Each topic is deleted or refused
by itself; if any is refused, the exit code is 1.

With --json it prints an array of objects with the fields name and error (null
if there is none).`,
		Example: `  muster topics delete orders
  muster topics delete orders payments --yes`,
		Args:              cli.SomeTopics,
		ValidArgsFunction: cli.CompleteTopics(&client, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return deleteTopics(cmd, &client, cli.Unique(args), yes)
		},
	}
	client.Add(cmd, "print a JSON array")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return cmd
}

func deleteTopics(cmd *cobra.Command, client *cli.Flags, names []string, yes bool) error {
	if !yes {
		question := fmt.Sprintf("Delete %s (%s) with all records?", words.Plural(len(names), "topic"), strings.Join(names, ", "))
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
	responses, err := admin.DeleteTopics(ctx, names...)
	if err != nil {
		return cli.Plain(err)
	}
	var results []cli.Result
	var failed []error
	for _, name := range names {
		r, err := responses.On(name, nil)
		if err != nil {
			return fmt.Errorf("the broker did not answer for topic %s", name)
		}
		if r.Err != nil {
			err = cli.TopicError(name, r.Err, r.ErrMessage)
			failed = append(failed, err)
		} else if !client.JSON {
			fmt.Fprintf(cmd.OutOrStdout(), "deleted topic %s\n", name)
		}
		results = append(results, cli.NewResult(name, err))
	}
	if client.JSON {
		failed = append(failed, cli.WriteJSON(cmd.OutOrStdout(), results))
	}
	return errors.Join(failed...)
}
