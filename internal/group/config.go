package group

import (
	"muster/internal/group/kind"
	"muster/internal/migration"
)

// The settings of the coordinator.
type (
	Config          = kind.Config
	ConsumerConfig  = kind.ConsumerConfig
	KindConfig      = kind.KindConfig
	Settings        = kind.Settings
	MigrationPolicy = migration.Policy
	// Look is a group as seen by whoever watches all groups.
	Look = kind.Look
)

// The policies of migration.
const (
	MigrateBoth      = migration.Both
	MigrateUpgrade   = migration.Upgrade
	MigrateDowngrade = migration.Downgrade
	MigrateNever     = migration.Never
)

// The timers.
const (
	TimerSession = kind.TimerSession
	TimerJoin    = kind.TimerJoin
	TimerSync    = kind.TimerSync
	TimerSweep   = kind.TimerSweep
	TimerAsk     = kind.TimerAsk
	TimerRevoke  = kind.TimerRevoke
	TimerReset   = kind.TimerReset
)

// DefaultConfig returns Kafka's defaults.
func DefaultConfig() Config { return kind.DefaultConfig() }

// Assignors returns the assignors that there are, the default first.
func Assignors() []string { return kind.Assignors() }
