package web

import (
	"muster/internal/auth"
	"muster/internal/metadata/config"
	"muster/internal/web/problem"
)

var readsTopicSettings = need{operation: auth.DescribeConfigs, kind: auth.Topic, param: "topic"}

// TopicConfigs is all settings of a topic.
type TopicConfigs struct {
	Configs []TopicConfig `json:"configs" csv:"rows" doc:"by name"`
}

// TopicConfig is a setting that a topic can have.
type TopicConfig struct {
	Name    string   `json:"name"`
	Value   string   `json:"value" doc:"that holds"`
	Default string   `json:"default" doc:"that holds if the topic has none of its own: the broker's"`
	Set     bool     `json:"set" doc:"it was set for this topic"`
	OneOf   []string `json:"oneOf" doc:"the values that it can have, each of them if it is a list; empty if they are not counted"`
	Doc     string   `json:"doc"`
}

// topicConfigs lists the settings that a topic has, and what they would be by default.
func (a *api) topicConfigs(c *call, _ *None) (*TopicConfigs, error) {
	image, name := a.reads.Image(), c.param("topic")
	t := image.Topic(name)
	if t == nil {
		return nil, problem.NotFound("there is no topic %q", name)
	}
	out := &TopicConfigs{Configs: []TopicConfig{}}
	for _, d := range config.TopicDefs() {
		_, set := t.Set[d.Name]
		if d.Inert && !set {
			continue // It means nothing here.
		}
		out.Configs = append(out.Configs, TopicConfig{
			Name: d.Name, Value: config.TopicValue(image.Config, t.Set, d.Name), Default: config.TopicValue(image.Config, nil, d.Name),
			Set: set, OneOf: some(d.OneOf), Doc: d.Doc,
		})
	}
	return out, nil
}
