package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"muster/internal/metadata"
	"muster/internal/metadata/config"
	"muster/internal/record"
)

// kind is what settings of brokers, topics and groups differ in.
type kind struct {
	def   func(name string) *config.Def
	check func(name, value string) error
	// open says that names which no one knows are kept, as Kafka does with those
	// of brokers, where plug-ins may read them.
	open bool
	// invalid is the code for a bad value.
	invalid *kerr.Error
}

var (
	topicKind  = kind{def: config.TopicDef, check: config.CheckTopic, invalid: kerr.InvalidConfig}
	groupKind  = kind{def: config.GroupDef, check: config.CheckGroup, invalid: kerr.InvalidConfig}
	brokerKind = kind{def: config.BrokerDef, check: config.CheckBroker, invalid: kerr.InvalidRequest, open: true}
)

// maxAltered bounds what the altered settings of a broker take together, whose
// names anyone can make up.
const maxAltered = 256 << 10

// AlterTopic changes settings of a topic: all of them if replace is set, those
// named otherwise.
func (c *Controller) AlterTopic(ctx context.Context, name string, changes []metadata.ConfigChange, replace, validateOnly bool) error {
	return c.durably(ctx, func() error {
		image := c.image.Load()
		old := image.Topic(name)
		if old == nil {
			return metadata.Refuse(kerr.UnknownTopicOrPartition, "there is no topic %q", name)
		}
		current := func(n string) string { return config.TopicValue(image.Config, old.Set, n) }
		set, err := apply(topicKind, old.Set, current, changes, replace)
		if err == nil {
			err = errors.Join(c.checkReplicas(set), checkFixed(old, set, current))
		}
		if err != nil || validateOnly {
			return err
		}
		t := *old
		t.Set = set
		edit := image.Edit()
		edit.PutTopic(t)
		return c.change(ctx, edit, topicRecord(t, c.shared != nil))
	})
}

// SetLayout writes down that the store has all partitions of a topic in another layout by now. That is the
// only way in which the setting changes.
func (c *Controller) SetLayout(ctx context.Context, name, layout string) error {
	return c.durably(ctx, func() error {
		image := c.image.Load()
		old := image.Topic(name)
		if old == nil {
			return metadata.Refuse(kerr.UnknownTopicOrPartition, "there is no topic %q", name)
		}
		t := *old
		t.Set = map[string]string{}
		maps.Copy(t.Set, old.Set)
		t.Set[layoutSetting] = layout
		edit := image.Edit()
		edit.PutTopic(t)
		return c.change(ctx, edit, topicRecord(t, c.shared != nil))
	})
}

const layoutSetting = "muster.redis.layout"

// fixed are the topic settings that say what the stored records look like.
var fixed = []string{layoutSetting, "muster.redis.sequence.bits"}

// checkFixed refuses to change how a topic's records are laid out, and what an
// internal topic cannot do without.
func checkFixed(t *metadata.Topic, set map[string]string, current func(string) string) error {
	for _, name := range slices.Concat(metadata.FixedSettings(t.Name), fixed) {
		switch v, ok := set[name]; {
		case ok && v != current(name) && t.Internal:
			return metadata.Refuse(kerr.InvalidConfig, "%s cannot change: topic %q is internal, and needs it to be %s", name, t.Name, current(name))
		case ok && v != current(name):
			return metadata.Refuse(kerr.InvalidConfig, "%s cannot change once topic %q exists", name, t.Name)
		case !ok && t.Set[name] != "":
			set[name] = t.Set[name] // Also if all settings are replaced.
		}
	}
	return nil
}

// AlterBroker changes settings of the broker that may change while it runs.
func (c *Controller) AlterBroker(ctx context.Context, changes []metadata.ConfigChange, replace, validateOnly bool) error {
	return c.durably(ctx, func() error {
		image := c.image.Load()
		for _, ch := range changes {
			switch d := config.BrokerDef(ch.Name); {
			case config.IsOfListener(ch.Name):
				return metadata.Refuse(kerr.InvalidRequest, "setting %q of a listener is read at start and cannot be altered", ch.Name)
			case d == nil && ch.Op != metadata.ConfigDelete:
				c.opts.Logger.Warn("a broker setting is kept, and has no effect", "reason", config.CheckBroker(ch.Name, ""))
			case d != nil && d.Static:
				return metadata.Refuse(kerr.InvalidRequest, "broker setting %q is read at start and cannot be altered", ch.Name)
			}
		}
		set, err := apply(brokerKind, image.Set, image.Config.Get, changes, replace)
		if err == nil {
			err = errors.Join(c.checkReplicas(set), checkSize(set), c.checkDrained(image, set))
		}
		if err != nil || validateOnly {
			return err
		}
		edit := image.Edit()
		edit.SetBrokerConfig(set)
		recs := []record.Record{configRecord(set)}
		if set[metadata.DrainedSetting] != image.Set[metadata.DrainedSetting] {
			recs = append(recs, assign(edit, metadata.NoBroker)...)
		}
		return c.change(ctx, edit, recs...)
	})
}

func checkSize(set map[string]string) error {
	size := 0
	for name, value := range set {
		size += len(name) + len(value)
	}
	if size > maxAltered {
		return metadata.Refuse(kerr.InvalidRequest, "the altered settings would take %d bytes, which is more than %d", size, maxAltered)
	}
	return nil
}

// apply computes the settings after the changes.
func apply(k kind, old map[string]string, current func(string) string, changes []metadata.ConfigChange, replace bool) (map[string]string, error) {
	next := map[string]string{}
	if !replace {
		maps.Copy(next, old)
	}
	seen := map[string]bool{}
	for _, ch := range changes {
		if seen[ch.Name] {
			return nil, metadata.Refuse(kerr.InvalidRequest, "setting %q is named twice", ch.Name)
		}
		seen[ch.Name] = true
		d := k.def(ch.Name)
		if d == nil && (!k.open || ch.Name == "") {
			return nil, metadata.Refuse(k.invalid, "%s", k.check(ch.Name, ""))
		}
		if ch.Op == metadata.ConfigDelete {
			delete(next, ch.Name)
			continue
		}
		value, err := newValue(d, ch, current)
		if err != nil {
			return nil, err
		}
		if d != nil {
			if err := d.Check(value); err != nil {
				return nil, metadata.Refuse(k.invalid, "%s", err)
			}
		}
		next[ch.Name] = value
	}
	return next, nil
}

func newValue(d *config.Def, ch metadata.ConfigChange, current func(string) string) (string, error) {
	if ch.Value == nil {
		return "", metadata.Refuse(kerr.InvalidConfig, "setting %q needs a value", ch.Name)
	}
	if ch.Op == metadata.ConfigSet {
		return *ch.Value, nil
	}
	if ch.Op != metadata.ConfigAppend && ch.Op != metadata.ConfigSubtract {
		return "", metadata.Refuse(kerr.InvalidRequest, "unknown operation %d on setting %q", ch.Op, ch.Name)
	}
	if d == nil || d.Type != config.List {
		return "", metadata.Refuse(kerr.InvalidConfig, "setting %q is not a list", ch.Name)
	}
	list := config.SplitList(current(ch.Name))
	for _, e := range config.SplitList(*ch.Value) {
		list = slices.DeleteFunc(list, func(have string) bool { return have == e })
		if ch.Op == metadata.ConfigAppend {
			list = append(list, e)
		}
	}
	return strings.Join(list, ","), nil
}
