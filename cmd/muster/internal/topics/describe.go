package topics

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"muster/cmd/muster/internal/cli"
	"muster/internal/words"
)

// Described has the fields of muster topics describe --json.
type Described struct {
	Name       string           `json:"name"`
	ID         string           `json:"id"`
	Internal   bool             `json:"internal"`
	Records    *int64           `json:"records"`
	SizeBytes  *int64           `json:"size_bytes"`
	Settings   []cli.Setting    `json:"settings"`
	Partitions []partitionState `json:"partitions"`
}

func describeCommand() *cobra.Command {
	var client cli.Flags
	var all bool
	cmd := &cobra.Command{
		Use:   "describe NAME...",
		Short: "Show topics with their settings and partitions",
		Long: `Show topics: the settings that are set on them, and each partition with its
leader, offsets and size. --all shows every setting with the place that its
value comes from: the topic, the broker, or the default.

LOG END is the offset that the next record gets, as consumers see it (the high
watermark). What the broker does not tell is shown as -.

With --json it prints an array of objects with the fields name, id, internal,
records, size_bytes, settings (name, value, source) and partitions (partition,
leader, leader_epoch, replicas, isr, log_start_offset, log_end_offset,
size_bytes). A number is null if it is unknown.`,
		Example: `  muster topics describe orders
  muster topics describe orders payments --all
  muster topics describe orders --json | jq '.[].partitions[].log_end_offset'`,
		Args:              cli.Some("topic"),
		ValidArgsFunction: cli.CompleteTopics(&client, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return describeTopics(cmd, &client, cli.Unique(args), all)
		},
	}
	client.Add(cmd, "print a JSON array")
	cmd.Flags().BoolVar(&all, "all", false, "show the settings that have their default, too")
	return cmd
}

func describeTopics(cmd *cobra.Command, client *cli.Flags, names []string, all bool) error {
	ctx := cmd.Context()
	kafka, err := client.Connect(ctx)
	if err != nil {
		return err
	}
	defer kafka.Close()
	admin := kadm.NewClient(kafka)
	details, failed, err := cli.FindTopics(ctx, admin, names)
	if err != nil {
		return err
	}
	states, err := loadTopics(ctx, kafka, details)
	if err != nil {
		return err
	}
	settings, err := cli.LoadSettings(ctx, admin, details.Names(), all)
	if err != nil {
		failed = append(failed, err)
	}
	described := make([]Described, 0, len(states))
	for _, t := range states {
		described = append(described, Described{
			Name: t.Topic, ID: topicID(t.ID), Internal: t.IsInternal, Records: t.records(), SizeBytes: t.size(),
			Settings: settings[t.Topic], Partitions: t.partitions,
		})
	}
	sort.SliceStable(described, func(i, j int) bool {
		return slices.Index(names, described[i].Name) < slices.Index(names, described[j].Name)
	})
	if client.JSON {
		err = cli.WriteJSON(cmd.OutOrStdout(), described)
	} else {
		err = printTopics(cmd.OutOrStdout(), described, all)
	}
	return errors.Join(append(failed, err)...)
}

func printTopics(w io.Writer, topics []Described, all bool) error {
	var out strings.Builder
	for i, t := range topics {
		if i > 0 {
			out.WriteByte('\n')
		}
		name := t.Name
		if t.Internal {
			name += " (internal)"
		}
		fmt.Fprintf(&out, "Topic:       %s\n", name)
		fmt.Fprintf(&out, "Topic id:    %s\n", t.ID)
		fmt.Fprintf(&out, "Partitions:  %d\n", len(t.Partitions))
		fmt.Fprintf(&out, "Records:     %s\n", cli.OrDash(t.Records, cli.FormatInt))
		fmt.Fprintf(&out, "Size:        %s\n", cli.OrDash(t.SizeBytes, words.Size))
		if err := errors.Join(printSettings(&out, t.Settings, all), printPartitions(&out, t.Partitions)); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func printSettings(w io.Writer, settings []cli.Setting, all bool) error {
	if len(settings) == 0 {
		fmt.Fprint(w, "Settings:    as the broker has them; --all shows them\n\n")
		return nil
	}
	fmt.Fprintln(w)
	t := cli.NewTable("SETTING", "VALUE")
	if all {
		t = cli.NewTable("SETTING", "VALUE", "FROM")
	}
	for _, s := range settings {
		value := "(hidden)" // Only passwords have no value, and topics have none.
		if s.Value != nil {
			value = *s.Value
		}
		if all {
			t.Add(s.Name, value, s.Source)
		} else {
			t.Add(s.Name, value)
		}
	}
	err := t.Print(w)
	fmt.Fprintln(w)
	return err
}

func printPartitions(w io.Writer, partitions []partitionState) error {
	t := cli.NewTable(">PARTITION", ">LEADER", ">EPOCH", ">LOG START", ">LOG END", ">SIZE")
	for _, p := range partitions {
		t.Add(p.Partition, p.Leader, p.LeaderEpoch, cli.OrDash(p.LogStartOffset, cli.FormatInt), cli.OrDash(p.LogEndOffset, cli.FormatInt), cli.OrDash(p.SizeBytes, words.Size))
	}
	return t.Print(w)
}
