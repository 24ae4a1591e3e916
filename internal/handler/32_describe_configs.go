// DescribeConfigs (key 32) tells the settings of topics, brokers and groups.
//
//	v1   synonyms and sources    v3   types and documentation
//	v4   flexible
//
// Left out: loggers and client metrics, which have no settings here.

package handler

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/auth"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// Where a value comes from.
const (
	sourceTopic         = kmsg.ConfigSourceDynamicTopicConfig
	sourceGroup         = kmsg.ConfigSourceGroupConfig
	sourceDynamicBroker = kmsg.ConfigSourceDynamicDefaultBrokerConfig
	sourceStaticBroker  = kmsg.ConfigSourceStaticBrokerConfig
	sourceDefault       = kmsg.ConfigSourceDefaultConfig
)

func (h *Handler) describeConfigs(_ context.Context, c *call) (kmsg.Response, error) {
	req := c.req.(*kmsg.DescribeConfigsRequest)
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	groups := 0
	for _, r := range merged(req.Resources) {
		out := kmsg.NewDescribeConfigsResponseResource()
		out.ResourceType, out.ResourceName = r.ResourceType, r.ResourceName
		if r.ResourceType == kmsg.ConfigResourceTypeGroupConfig {
			groups++
		}
		configs, err := h.describeResource(c, &r, req, groups)
		out.ErrorCode, out.ErrorMessage = h.code(err)
		out.Configs = configs
		resp.Resources = append(resp.Resources, out)
	}
	return resp, nil
}

// resource is what settings belong to.
type resource struct {
	kind kmsg.ConfigResourceType
	name string
}

// mayConfigure says whether the client may see or alter the settings of a resource.
// Whatever is neither a topic nor a group belongs to the cluster.
func (c *call) mayConfigure(op auth.Operation, r resource) error {
	t, name := auth.Cluster, auth.ClusterName
	switch r.kind {
	case kmsg.ConfigResourceTypeTopic:
		t, name = auth.Topic, r.name
	case kmsg.ConfigResourceTypeGroupConfig:
		t, name = auth.Group, r.name
	}
	if c.may(op, t, name) {
		return nil
	}
	return t.Denied()
}

// merged has each resource once, with all the names of settings that were asked
// for; none for all of them, as in Kafka.
func merged(asked []kmsg.DescribeConfigsRequestResource) []kmsg.DescribeConfigsRequestResource {
	at := map[resource]int{}
	var out []kmsg.DescribeConfigsRequestResource
	for _, r := range asked {
		i, again := at[resource{r.ResourceType, r.ResourceName}]
		switch {
		case !again:
			at[resource{r.ResourceType, r.ResourceName}] = len(out)
			out = append(out, r)
		case len(r.ConfigNames) == 0 || len(out[i].ConfigNames) == 0:
			out[i].ConfigNames = nil
		default:
			out[i].ConfigNames = append(out[i].ConfigNames, r.ConfigNames...)
		}
	}
	return out
}

func (h *Handler) describeResource(c *call, r *kmsg.DescribeConfigsRequestResource, req *kmsg.DescribeConfigsRequest, groups int) ([]kmsg.DescribeConfigsResponseResourceConfig, error) {
	if err := c.mayConfigure(auth.DescribeConfigs, resource{r.ResourceType, r.ResourceName}); err != nil {
		return nil, err
	}
	image := c.image
	switch r.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		t := image.Topic(r.ResourceName)
		if t == nil {
			return nil, metadata.Refuse(kerr.UnknownTopicOrPartition, "there is no topic %q", r.ResourceName)
		}
		return describeDefs(config.TopicDefs(), r.ConfigNames, req, func(d *config.Def) []setting { return topicSettings(image, t, d) }), nil
	case kmsg.ConfigResourceTypeBroker:
		if err := h.checkBroker(r.ResourceName); err != nil {
			return nil, err
		}
		out := describeDefs(config.BrokerDefs(), r.ConfigNames, req, func(d *config.Def) []setting { return settingsOfBroker(image, r.ResourceName, d) })
		return append(out, describeUnknown(image, r, req)...), nil
	case kmsg.ConfigResourceTypeGroupConfig:
		return describeGroup(image, r, req, groups)
	}
	return nil, metadata.Refuse(kerr.InvalidRequest, "there are no settings of resource type %d", r.ResourceType)
}

// checkBroker says whether a resource name means this broker, or all brokers.
func (h *Handler) checkBroker(name string) error {
	if name == "" {
		return nil
	}
	if id, err := strconv.ParseInt(name, 10, 32); err != nil || id != int64(h.opts.NodeID) {
		return metadata.Refuse(kerr.InvalidRequest, "there is no broker %q; this is %d", name, h.opts.NodeID)
	}
	return nil
}

// setting is a value with its name and where it comes from.
type setting struct {
	name, value string
	source      kmsg.ConfigSource
	unlisted    bool // it is no synonym
}

// listed returns those that are told as synonyms.
func listed(settings []setting) []setting {
	return slices.DeleteFunc(slices.Clone(settings), func(s setting) bool { return s.unlisted })
}

// topicSettings lists the values that could be a topic setting's, the one in
// force first.
func topicSettings(image *metadata.Image, t *metadata.Topic, d *config.Def) []setting {
	var out []setting
	if v, ok := t.Set[d.Name]; ok {
		out = append(out, setting{name: d.Name, value: v, source: sourceTopic})
	}
	if d.Synonym == "" {
		return append(out, setting{name: d.Name, value: d.Default, source: sourceDefault})
	}
	return append(out, brokerSettings(image, d.Synonym)...)
}

func topicSetting(image *metadata.Image, t *metadata.Topic, d *config.Def) (string, kmsg.ConfigSource) {
	s := topicSettings(image, t, d)[0]
	return s.value, s.source
}

// brokerSettings does the same for a broker setting.
func brokerSettings(image *metadata.Image, name string) []setting {
	var out []setting
	if v, ok := image.Set[name]; ok {
		out = append(out, setting{name: name, value: v, source: sourceDynamicBroker})
	}
	d := config.BrokerDef(name)
	if image.Defaults.IsSet(name) {
		out = append(out, setting{name: name, value: image.Defaults.Get(name), source: sourceStaticBroker})
	}
	for _, f := range d.Fallbacks {
		if image.Defaults.IsSet(f.Name) {
			out = append(out, setting{name: f.Name, value: image.Defaults.Get(name), source: sourceStaticBroker})
		}
	}
	value := d.Default
	if len(out) == 0 {
		value = image.Defaults.Get(name)
	}
	// Of a setting that has coarser ones (log.retention.ms), the default belongs to
	// one of those, and Kafka does not tell it.
	return append(out, setting{name: name, value: value, source: sourceDefault, unlisted: len(d.Fallbacks) > 0})
}

// settingsOfBroker does so for one broker or, without a name, for all brokers,
// of which Kafka tells only what was altered. What is altered is always the
// setting of all brokers, but Kafka's tools show for one broker only what is its
// own: there it is shown as that.
func settingsOfBroker(image *metadata.Image, broker string, d *config.Def) []setting {
	settings := brokerSettings(image, d.Name)
	altered := settings[0].source == sourceDynamicBroker
	switch {
	case broker == "" && !altered:
		return nil
	case broker != "" && altered:
		settings[0].source = kmsg.ConfigSourceDynamicBrokerConfig
	case d.Name == superUsers:
		return withAllSuperUsers(image, settings)
	case d.Inert && d.Static && settings[0].source == sourceDefault:
		return nil // No one set it, and it would have no effect.
	}
	return settings
}

// wanted says whether a setting was asked for: an empty list asks for all, as in
// Kafka.
func wanted(names []string, name string) bool { return len(names) == 0 || slices.Contains(names, name) }

// describeUnknown describes altered settings of a broker that no one knows. As in
// Kafka their values are not told: they might be secrets.
func describeUnknown(image *metadata.Image, r *kmsg.DescribeConfigsRequestResource, req *kmsg.DescribeConfigsRequest) []kmsg.DescribeConfigsResponseResourceConfig {
	source := kmsg.ConfigSourceDynamicBrokerConfig
	if r.ResourceName == "" {
		source = sourceDynamicBroker
	}
	var out []kmsg.DescribeConfigsResponseResourceConfig
	for _, name := range slices.Sorted(maps.Keys(image.Set)) {
		if config.BrokerDef(name) != nil || !wanted(r.ConfigNames, name) {
			continue
		}
		c := kmsg.NewDescribeConfigsResponseResourceConfig()
		c.Name, c.Source, c.IsSensitive, c.ReadOnly = name, source, true, true
		if req.IncludeSynonyms {
			syn := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			syn.Name, syn.Source = name, source
			c.ConfigSynonyms = append(c.ConfigSynonyms, syn)
		}
		out = append(out, c)
	}
	return out
}

func describeDefs(defs []config.Def, names []string, req *kmsg.DescribeConfigsRequest, values func(*config.Def) []setting) []kmsg.DescribeConfigsResponseResourceConfig {
	var out []kmsg.DescribeConfigsResponseResourceConfig
	for i := range defs {
		d := &defs[i]
		if !wanted(names, d.Name) {
			continue
		}
		all := values(d)
		if len(all) == 0 {
			continue
		}
		c := kmsg.NewDescribeConfigsResponseResourceConfig()
		c.Name, c.Value, c.Source = d.Name, &all[0].value, all[0].source
		c.IsDefault = all[0].source == sourceDefault
		c.ReadOnly = d.Static
		c.ConfigType = kmsg.ConfigType(d.Type)
		if d.Type == config.Password {
			// Kafka's rule: that it is set may be known, what it is may not.
			c.IsSensitive, c.Value = true, nil
			all = nil
		}
		if req.IncludeDocumentation {
			c.Documentation = &d.Doc
		}
		if req.IncludeSynonyms {
			for _, s := range listed(all) {
				syn := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
				syn.Name, syn.Value, syn.Source = s.name, &s.value, s.source
				c.ConfigSynonyms = append(c.ConfigSynonyms, syn)
			}
		}
		out = append(out, c)
	}
	return out
}
