package cli

import (
	"context"
	"errors"
	"sort"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func ListedOffset(l kadm.ListedOffsets, topic string, partition int32) *int64 {
	o, ok := l.Lookup(topic, partition)
	if !ok || o.Err != nil {
		return nil
	}
	return &o.Offset
}

// Setting is a topic setting with the place that its value comes from.
type Setting struct {
	Name   string  `json:"name"`
	Value  *string `json:"value"`
	Source string  `json:"source"`
}

// FindTopics returns the topics that exist, and an error for each other name.
func FindTopics(ctx context.Context, admin *kadm.Client, names []string) (found kadm.TopicDetails, missing []error, err error) {
	details, err := admin.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return nil, nil, Plain(err)
	}
	for _, d := range details.Sorted() {
		if d.Err != nil {
			missing = append(missing, TopicError(d.Topic, d.Err, ""))
			delete(details, d.Topic)
		}
	}
	return details, missing, nil
}

// LoadSettings returns the settings of topics in the order of their names: all
// of them, or those that are set on the topic itself.
func LoadSettings(ctx context.Context, admin *kadm.Client, topics []string, all bool) (map[string][]Setting, error) {
	configs, err := admin.DescribeTopicConfigs(ctx, topics...)
	if err != nil {
		return nil, Plain(err)
	}
	out := make(map[string][]Setting, len(configs))
	var failed []error
	for _, c := range configs {
		if c.Err != nil {
			failed = append(failed, TopicError(c.Name, c.Err, c.ErrMessage))
		}
		settings := []Setting{}
		for _, s := range c.Configs {
			if all || s.Source == kmsg.ConfigSourceDynamicTopicConfig {
				settings = append(settings, Setting{s.Key, s.Value, settingSource(s.Source)})
			}
		}
		sort.Slice(settings, func(i, j int) bool { return settings[i].Name < settings[j].Name })
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
