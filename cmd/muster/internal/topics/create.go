package topics

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"muster/cmd/muster/internal/cli"
	"muster/internal/words"
)

// createFlags are the flags of muster topics create.
type createFlags struct {
	cli.Flags
	partitions  int32
	config      []string
	ifNotExists bool
}

// Created has the fields of muster topics create --json. The id and the
// number of partitions are absent if the topic was not created now.
type Created struct {
	cli.Result
	Created    bool   `json:"created"`
	ID         string `json:"id,omitempty"`
	Partitions int32  `json:"partitions,omitempty"`
}

func createCommand() *cobra.Command {
	var flags createFlags
	cmd := &cobra.Command{
		Use:   "create NAME...",
		Short: "Create topics",
		Long: `Create topics, all with the same settings. Each is created or refused by
itself; if any is refused, the exit code is 1.

With --json it prints an array of objects with the fields name, created, error
(null if there is none), id and partitions.`,
		Example: `  muster topics create orders
  muster topics create orders --partitions 12 --config retention.ms=86400000
  muster topics create users --config cleanup.policy=compact --if-not-exists`,
		Args:              cli.Some("topic"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, args []string) error { return createTopics(cmd, &flags, cli.Unique(args)) },
	}
	flags.Add(cmd, "print a JSON array")
	cmd.Flags().Int32VarP(&flags.partitions, "partitions", "p", -1, "number of partitions; -1 for the broker's default")
	cmd.Flags().StringArrayVarP(&flags.config, "config", "c", nil, "topic setting, `name=value`; may be repeated")
	cmd.Flags().BoolVar(&flags.ifNotExists, "if-not-exists", false, "accept that a topic exists already")
	cli.CompleteSettings(cmd, "config", "=")
	return cmd
}

func createTopics(cmd *cobra.Command, flags *createFlags, names []string) error {
	_, values, err := settingFlag(flags.config)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	admin, err := flags.Admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close()
	responses, err := admin.CreateTopics(ctx, flags.partitions, -1, values, names...)
	if err != nil {
		return cli.Plain(err)
	}
	var results []Created
	var failed []error
	for _, name := range names {
		r, err := responses.On(name, nil)
		if err != nil {
			return fmt.Errorf("the broker did not answer for topic %s", name)
		}
		result, err := createResult(r, flags.ifNotExists)
		if err != nil {
			failed = append(failed, err)
		} else if !flags.JSON {
			tellCreated(cmd, result)
		}
		results = append(results, result)
	}
	if flags.JSON {
		failed = append(failed, cli.WriteJSON(cmd.OutOrStdout(), results))
	}
	return errors.Join(failed...)
}

func createResult(r kadm.CreateTopicResponse, ifNotExists bool) (Created, error) {
	switch {
	case r.Err == nil:
		return Created{Result: cli.NewResult(r.Topic, nil), Created: true, ID: topicID(r.ID), Partitions: r.NumPartitions}, nil
	case ifNotExists && errors.Is(r.Err, kerr.TopicAlreadyExists):
		return Created{Result: cli.NewResult(r.Topic, nil)}, nil
	}
	err := cli.TopicError(r.Topic, r.Err, r.ErrMessage)
	return Created{Result: cli.NewResult(r.Topic, err)}, err
}

func tellCreated(cmd *cobra.Command, t Created) {
	if t.Created {
		fmt.Fprintf(cmd.OutOrStdout(), "created topic %s with %s\n", t.Name, words.Plural(int(t.Partitions), "partition"))
	} else {
		fmt.Fprintf(cmd.OutOrStdout(), "topic %s exists already\n", t.Name)
	}
}
