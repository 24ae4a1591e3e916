package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"muster/cmd/muster/internal/cli"
)

// alterFlags are the flags of muster topics alter.
type alterFlags struct {
	cli.Flags
	config       []string
	deleteConfig []string
	partitions   int32
}

func alterCommand() *cobra.Command {
	var flags alterFlags
	cmd := &cobra.Command{
		Use:   "alter NAME",
		Short: "Change a topic's settings or add partitions",
		Long: `Change a topic's settings, return settings to the broker's value, or raise the
number of partitions. Settings that are not named stay as they are.

The number of partitions cannot be lowered. When it is raised, records with the
same key may go to another partition than before.

With --json it prints one object with the fields name and error (null if there
is none).`,
		Example: `  muster topics alter orders --config retention.ms=3600000
  muster topics alter orders --delete-config retention.ms
  muster topics alter orders --partitions 12`,
		Args:              cli.One("topic"),
		ValidArgsFunction: cli.CompleteTopics(&flags.Flags, 1),
		RunE:              func(cmd *cobra.Command, args []string) error { return alterTopic(cmd, &flags, args[0]) },
	}
	flags.Add(cmd, "print a JSON object")
	cmd.Flags().StringArrayVarP(&flags.config, "config", "c", nil, "topic setting to change, `name=value`; may be repeated")
	cmd.Flags().StringArrayVar(&flags.deleteConfig, "delete-config", nil, "`name` of a topic setting to return to the broker's value; may be repeated")
	cmd.Flags().Int32VarP(&flags.partitions, "partitions", "p", 0, "number of partitions to grow to")
	cli.CompleteSettings(cmd, "config", "=")
	cli.CompleteSettings(cmd, "delete-config", "")
	return cmd
}

func alterTopic(cmd *cobra.Command, flags *alterFlags, name string) error {
	changes, err := settingChanges(flags)
	if err != nil {
		return err
	}
	grow := cmd.Flags().Changed("partitions")
	if len(changes) == 0 && !grow {
		return cli.Usagef("nothing to change: give --config, --delete-config or --partitions")
	}
	ctx := cmd.Context()
	admin, err := flags.Admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close()
	err = applyChanges(ctx, admin, name, changes, flags.partitions, grow)
	switch {
	case flags.JSON:
		return errors.Join(err, cli.WriteJSON(cmd.OutOrStdout(), cli.NewResult(name, err)))
	case err == nil:
		fmt.Fprintf(cmd.OutOrStdout(), "altered topic %s\n", name)
	}
	return err
}

func settingChanges(flags *alterFlags) ([]kadm.AlterConfig, error) {
	names, values, err := settingFlag(flags.config)
	if err != nil {
		return nil, err
	}
	var changes []kadm.AlterConfig
	for _, name := range names {
		changes = append(changes, kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: values[name]})
	}
	for _, name := range flags.deleteConfig {
		if slices.Contains(names, name) {
			return nil, cli.Usagef("%s cannot be both set and deleted", name)
		}
		changes = append(changes, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: name})
	}
	return changes, nil
}

// applyChanges makes both kinds of changes. They are two requests; to make both
// or neither, the second is validated before the first is sent.
func applyChanges(ctx context.Context, admin *kadm.Client, name string, changes []kadm.AlterConfig, partitions int32, grow bool) error {
	if grow && len(changes) > 0 {
		if err := growTopic(ctx, admin.ValidateUpdatePartitions, name, partitions); err != nil {
			return err
		}
	}
	if len(changes) > 0 {
		responses, err := admin.AlterTopicConfigs(ctx, changes, name)
		if err != nil {
			return cli.Plain(err)
		}
		for _, r := range responses {
			if r.Err != nil {
				return cli.TopicError(name, r.Err, r.ErrMessage)
			}
		}
	}
	if !grow {
		return nil
	}
	return growTopic(ctx, admin.UpdatePartitions, name, partitions)
}

type updatePartitions = func(ctx context.Context, set int, topics ...string) (kadm.CreatePartitionsResponses, error)

func growTopic(ctx context.Context, update updatePartitions, name string, partitions int32) error {
	responses, err := update(ctx, int(partitions), name)
	if err != nil {
		return cli.Plain(err)
	}
	r, err := responses.On(name, nil)
	if err != nil {
		return fmt.Errorf("the broker did not answer for topic %s", name)
	}
	if r.Err != nil {
		return cli.TopicError(name, r.Err, r.ErrMessage)
	}
	return nil
}
