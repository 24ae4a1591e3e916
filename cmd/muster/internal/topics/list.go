package topics

import (
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"muster/cmd/muster/internal/cli"
	"muster/internal/auth"
	"muster/internal/words"
)

// Listed has the fields of muster topics list --json.
type Listed struct {
	Name       string `json:"name"`
	ID         string `json:"id"`
	Internal   bool   `json:"internal"`
	Partitions int    `json:"partitions"`
	Records    *int64 `json:"records"`
	SizeBytes  *int64 `json:"size_bytes"`
}

func listCommand() *cobra.Command {
	var client cli.Flags
	var internal bool
	cmd := &cobra.Command{
		Use:     "list [REGEX]",
		Aliases: []string{"ls"},
		Short:   "List topics",
		Long: `List topics: all of them, or those whose name matches a regular expression
(anywhere in the name; anchor it with ^ and $).

RECORDS is how many a broker on Redis has counted, in layouts indexed and stream.
Otherwise it is the log end offset minus the log start offset, summed over the
partitions: larger than the number of records if some were compacted away, or
transactions have added markers. SIZE is what the leaders' logs take. What the broker does not tell is shown as -.

With --json it prints an array of objects with the fields name, id, internal,
partitions, records and size_bytes; the last two are null if unknown.`,
		Example: `  muster topics list
  muster topics list '^orders\.'
  muster topics list --json | jq -r '.[].name'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern := ""
			if len(args) > 0 {
				pattern = args[0]
			}
			return listTopics(cmd, &client, pattern, internal)
		},
	}
	client.Add(cmd, "print a JSON array")
	cmd.Flags().BoolVar(&internal, "internal", false, "include the topics that the broker keeps for itself")
	return cmd
}

func listTopics(cmd *cobra.Command, client *cli.Flags, pattern string, internal bool) error {
	match, err := regexp.Compile(pattern)
	if err != nil {
		return cli.Usagef("%q is no regular expression: %s", pattern, err)
	}
	ctx := cmd.Context()
	kafka, err := client.Connect(ctx)
	if err != nil {
		return err
	}
	defer kafka.Close()
	admin := kadm.NewClient(kafka)
	details, err := admin.ListTopicsWithInternal(ctx)
	if err != nil {
		return cli.Plain(err)
	}
	for name, d := range details {
		if !match.MatchString(name) || d.IsInternal && !internal {
			delete(details, name)
		}
	}
	topics, err := loadTopics(ctx, kafka, details)
	if err != nil {
		return err
	}
	if client.JSON {
		return cli.WriteJSON(cmd.OutOrStdout(), listedTopics(topics))
	}
	if len(topics) == 0 {
		if text, hidden := client.TellHidden(ctx, kafka, "topics", auth.Topic); hidden {
			fmt.Fprintln(cmd.ErrOrStderr(), text)
			return nil
		}
		tellNoTopics(cmd.ErrOrStderr(), pattern)
		return nil
	}
	t := cli.NewTable("NAME", ">PARTITIONS", ">RECORDS", ">SIZE")
	for _, topic := range topics {
		t.Add(topic.Topic, len(topic.partitions), cli.OrDash(topic.records(), cli.FormatInt), cli.OrDash(topic.size(), words.Size))
	}
	return t.Print(cmd.OutOrStdout())
}

func tellNoTopics(w io.Writer, pattern string) {
	if pattern != "" {
		fmt.Fprintf(w, "no topic matches %q\n", pattern)
		return
	}
	fmt.Fprintln(w, "there are no topics yet; create one with: muster topics create NAME")
}

func listedTopics(topics []topicState) []Listed {
	out := make([]Listed, len(topics))
	for i, t := range topics {
		out[i] = Listed{
			Name: t.Topic, ID: topicID(t.ID), Internal: t.IsInternal,
			Partitions: len(t.partitions), Records: t.records(), SizeBytes: t.size(),
		}
	}
	return out
}
