package kind

import (
	"time"

	"muster/internal/migration"
)

// ConsumerConfig is the settings of consumer groups.
type ConsumerConfig struct {
	KindConfig
	Assignors []string        // group.consumer.assignors, the default first
	Migration MigrationPolicy // group.consumer.migration.policy
}

// Assignors returns the assignors that there are, the default first.
func Assignors() []string { return []string{assignorUniform, AssignorRange} }

func DefaultConsumerConfig() ConsumerConfig {
	return ConsumerConfig{
		KindConfig: KindConfig{Settings: Settings{Session: 45 * time.Second, Heartbeat: 5 * time.Second, Interval: time.Second}, MaxSize: 1<<31 - 1},
		Assignors:  Assignors(), Migration: MigrateBoth,
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
