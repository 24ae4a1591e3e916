package exact

import (
	"time"

	"muster/internal/txn"
)

// txnConfig is the settings of transaction coordinators.
func (w *world) txnConfig() txn.Config {
	cfg := txn.DefaultConfig()
	cfg.SweepInterval = 2 * time.Second
	return cfg
}

// checkDigests: what the live cores hold is what a replay of their logs gives.
func (w *world) checkDigests() {}

// checkAdmin: what administrators are told agrees with the logs.
func (w *world) checkAdmin() {}

// administer has an administrator ask for something.
func (w *world) administer() {}

// prefill writes what is there before the run begins.
func (w *world) prefill() {}
