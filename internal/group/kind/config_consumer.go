package kind

import (
	"time"

	"muster/internal/migration"
)

// ConsumerConfig is the settings of consumer groups.
type ConsumerConfig struct {
	ConsumerSettings
	MaxSize   int             // group.consumer.max.size
	Assignors []string        // group.consumer.assignors, the default first
	Migration MigrationPolicy // group.consumer.migration.policy
	// Groups has the settings of groups that have their own.
	Groups map[string]ConsumerSettings
	// AtOnce is up to how many members and partitions the assignor is run in the step
	// itself, zero for as many as a step has time for. Tests have a smaller one.
	AtOnce int
}

// ConsumerSettings are those that a group may have for itself.
type ConsumerSettings struct {
	Session   time.Duration // group.consumer.session.timeout.ms
	Heartbeat time.Duration // group.consumer.heartbeat.interval.ms
	Interval  time.Duration // group.consumer.assignment.interval.ms
}

// Of returns the settings of a group.
func (c *ConsumerConfig) Of(group string) ConsumerSettings {
	if own, ok := c.Groups[group]; ok {
		return own
	}
	return c.ConsumerSettings
}

// Assignors returns the assignors that there are, the default first.
func Assignors() []string { return []string{assignorUniform, AssignorRange} }

func DefaultConsumerConfig() ConsumerConfig {
	return ConsumerConfig{
		ConsumerSettings: ConsumerSettings{Session: 45 * time.Second, Heartbeat: 5 * time.Second, Interval: time.Second},
		MaxSize:          1<<31 - 1, Assignors: Assignors(), Migration: MigrateBoth,
	}
}

// MigrationPolicy says in which directions groups that have members go over from one
// protocol to the other: group.consumer.migration.policy.
type MigrationPolicy = migration.Policy

// The policies.
const (
	MigrateBoth      = migration.Both
	MigrateUpgrade   = migration.Upgrade
	MigrateDowngrade = migration.Downgrade
	MigrateNever     = migration.Never
)

// The assignors.
const (
	AssignorRange   = "range"
	assignorUniform = "uniform"
)
