package broker

import (
	"context"
	"time"

	"muster/internal/group"
	"muster/internal/journal"
	"muster/internal/metadata"
	"muster/internal/metadata/config"
)

// tellOfGroups passes on what happened to a group. What is told after it waits for it, and
// who caused it: so it must not block.
func (b *Broker) tellOfGroups(entries []journal.Entry) {
	b.watch.Observe(entries) // First: it takes out what only the watch needs, which the queue would keep.
	b.journal.Add(entries)
	b.facts.Happened(entries)
	b.countRebalances(entries)
	if b.redis != nil && b.redis.native != nil {
		b.redis.native.Happened(entries)
	}
}

// changed passes a change of the metadata on: partitions first, then
// coordinators, whose logs must be open. What could not be opened concerns whoever
// made the change; the coordinators hear of it all the same, and load when they
// can.
func (b *Broker) changed(ctx context.Context, before, after *metadata.Image, topics []string) error {
	err := b.manager.Apply(ctx, before, after, topics)
	b.reviseShares(after)
	for _, c := range b.coordinators {
		if e := c.configured(before, after); e != nil {
			c.Tell(e)
		}
	}
	if before.Config != after.Config {
		b.server.SetLimits(int(after.Config.Int("max.connections")), int(after.Config.Int("max.connections.per.ip")))
		if err := b.limitAddresses(after.Config); err != nil {
			b.logger.Warn("a setting has no effect", "error", err)
		}
	}
	for _, c := range b.coordinators {
		c.Changed(before, after, topics)
		b.lead(c.Coordinator, before.Topic(c.topic), after.Topic(c.topic))
	}
	return err
}

func groupConfig(c *config.Broker, own *metadata.GroupSettings) *group.Config {
	return &group.Config{
		InitialDelay:     c.Duration("group.initial.rebalance.delay.ms"),
		MinSession:       c.Duration("group.min.session.timeout.ms"),
		MaxSession:       c.Duration("group.max.session.timeout.ms"),
		MaxSize:          int(c.Int("group.max.size")),
		OffsetsRetention: time.Duration(c.Int("offsets.retention.minutes")) * time.Minute,
		SweepInterval:    c.Duration("offsets.retention.check.interval.ms"),
		MaxMetadata:      int(c.Int("offset.metadata.max.bytes")),
		MaxBytes:         c.Int("muster.groups.max.bytes"),
		Consumer: group.ConsumerConfig{
			KindConfig: kindConfig("consumer", c, own), Assignors: group.Assignors(),
			Migration: group.MigrationPolicy(c.Get("group.consumer.migration.policy")),
		},
		Share:   kindConfig("share", c, own),
		Streams: streamsConfig(c, own),
	}
}

// streamsConfig is the settings of streams groups.
func streamsConfig(c *config.Broker, own *metadata.GroupSettings) group.KindConfig {
	out := kindConfig("streams", c, own)
	out.Settings = streamsSettings(out.Settings, c, nil)
	for _, id := range own.Groups() {
		out.Groups[id] = streamsSettings(out.Groups[id], c, own.Of(id))
	}
	return out
}

// streamsSettings adds those that only streams groups have.
func streamsSettings(s group.Settings, c *config.Broker, set map[string]string) group.Settings {
	s.Standbys = int(config.GroupInt(c, set, "streams.num.standby.replicas"))
	s.InitialDelay = config.GroupDuration(c, set, "streams.initial.rebalance.delay.ms")
	return s
}

// kindConfig is the settings that each kind of group has, of one of them.
func kindConfig(kind string, c *config.Broker, own *metadata.GroupSettings) group.KindConfig {
	out := group.KindConfig{
		Settings: settingsOf(kind, c, nil), MaxSize: int(c.Int("group." + kind + ".max.size")), Groups: make(map[string]group.Settings, own.Len()),
	}
	for _, id := range own.Groups() {
		out.Groups[id] = settingsOf(kind, c, own.Of(id))
	}
	return out
}

// settingsOf is what a group with these settings of its own has.
func settingsOf(kind string, c *config.Broker, set map[string]string) group.Settings {
	return group.Settings{
		Session:   config.GroupDuration(c, set, kind+".session.timeout.ms"),
		Heartbeat: config.GroupDuration(c, set, kind+".heartbeat.interval.ms"),
		Interval:  config.GroupDuration(c, set, kind+".assignment.interval.ms"),
	}
}
