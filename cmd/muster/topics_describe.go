package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/words"
)

// describedTopic has the fields of muster topics describe --json.
type describedTopic struct {
	Name       string           `json:"name"`
	ID         string           `json:"id"`
	Internal   bool             `json:"internal"`
	Records    *int64           `json:"records"`
	SizeBytes  *int64           `json:"size_bytes"`
	Settings   []setting        `json:"settings"`
	Partitions []partitionState `json:"partitions"`
}

// setting is a topic setting with the place that its value comes from.
type setting struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	Source string  `json:"source"`
}

func topicsDescribeCommand() *cobra.Command {
	var client clientFlags
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
		Args:              someTopics,
		ValidArgsFunction: completeTopics(&client, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			return describeTopics(cmd, &client, unique(args), all)
		},
	}
	client.add(cmd, "print a JSON array")
	cmd.Flags().BoolVar(&all, "all", false, "show the settings that have their default, too")
	return cmd
}

func describeTopics(cmd *cobra.Command, client *clientFlags, names []string, all bool) error {
	ctx := cmd.Context()
	admin, err := client.admin(ctx)
	if err != nil {
		return err
	}
	defer admin.Close()
	details, failed, err := findTopics(ctx, admin, names)
	if err != nil {
		return err
	}
	states, err := loadTopics(ctx, admin, details)
	if err != nil {
		return err
	}
	settings, err := loadSettings(ctx, admin, details.Names(), all)
	if err != nil {
		failed = append(failed, err)
	}
	described := make([]describedTopic, 0, len(states))
	for _, t := range states {
		described = append(described, describedTopic{
			Name: t.Topic, ID: topicID(t.ID), Internal: t.IsInternal, Records: t.records(), SizeBytes: t.size(),
			Settings: settings[t.Topic], Partitions: t.partitions,
		})
	}
	slices.SortStableFunc(described, func(a, b describedTopic) int {
		return slices.Index(names, a.Name) - slices.Index(names, b.Name)
	})
	if client.json {
		err = writeJSON(cmd.OutOrStdout(), described)
	} else {
		err = printTopics(cmd.OutOrStdout(), described, all)
	}
	return errors.Join(append(failed, err)...)
}

// findTopics returns the topics that exist, and an error for each other name.
func findTopics(ctx context.Context, admin *kadm.Client, names []string) (found kadm.TopicDetails, missing []error, err error) {
	details, err := admin.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return nil, nil, plain(err)
	}
	for _, d := range details.Sorted() {
		if d.Err != nil {
			missing = append(missing, topicError(d.Topic, d.Err, ""))
			delete(details, d.Topic)
		}
	}
	return details, missing, nil
}

// loadSettings returns the settings of topics in the order of their names: all
// of them, or those that are set on the topic itself.
func loadSettings(ctx context.Context, admin *kadm.Client, topics []string, all bool) (map[string][]setting, error) {
	configs, err := admin.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return nil, plain(err)
	}
	out := make(map[string][]setting, len(configs))
	var failed []error
	for _, c := range configs {
		if c.Err != nil {
			failed = append(failed, topicError(c.Name, c.Err, c.ErrMessage))
		}
		settings := []setting{}
		for _, s := range c.Configs {
			if all || s.Source == kmsg.ConfigSourceDynamicTopicConfig {
				settings = append(settings, setting{s.Key, s.Value, settingSource(s.Source)})
			}
		}
		slices.SortFunc(settings, func(a, b setting) int { return strings.Compare(a.Name, b.Name) })
		out[c.Name] = settings
	}
	return out, errors.Join(failed...)
}

func settingSource(s kmsg.ConfigSource) string {
	switch s {
	case kmsg.ConfigSourceDynamicTopicConfig:
		return "topic"
	case kmsg.ConfigSourceDefaultConfig:
		return "default"
	default:
		return "broker"
	}
}

func printTopics(w io.Writer, topics []describedTopic, all bool) error {
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
		fmt.Fprintf(&out, "Records:     %s\n", orDash(t.Records, formatInt))
		fmt.Fprintf(&out, "Size:        %s\n", orDash(t.SizeBytes, words.Size))
		if err := errors.Join(printSettings(&out, t.Settings, all), printPartitions(&out, t.Partitions)); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func printSettings(w io.Writer, settings []setting, all bool) error {
	if len(settings) == 0 {
		fmt.Fprint(w, "Settings:    as the broker has them; --all shows them\n\n")
		return nil
	}
	fmt.Fprintln(w)
	t := newTable("SETTING", "VALUE")
	if all {
		t = newTable("SETTING", "VALUE", "FROM")
	}
	for _, s := range settings {
		value := "(hidden)" // Only passwords have no value, and topics have none.
		if s.Value != nil {
			value = *s.Value
		}
		if all {
			t.add(s.Name, value, s.Source)
		} else {
			t.add(s.Name, value)
		}
	}
	err := t.print(w)
	fmt.Fprintln(w)
	return err
}

func printPartitions(w io.Writer, partitions []partitionState) error {
	t := newTable(">PARTITION", ">LEADER", ">EPOCH", ">LOG START", ">LOG END", ">SIZE")
	for _, p := range partitions {
		t.add(p.Partition, p.Leader, p.LeaderEpoch, orDash(p.LogStartOffset, formatInt), orDash(p.LogEndOffset, formatInt), orDash(p.SizeBytes, words.Size))
	}
	return t.print(w)
}
