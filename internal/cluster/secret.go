package cluster

import (
	"crypto/rand"

	"muster/internal/metadata"
	"muster/internal/record"
)

// shareSecret gives a cluster that has none what its brokers know each other by.
// It is made once, and again only if the store has lost it.
func shareSecret(edit *metadata.Edit) []record.Record {
	if edit.Image().Secret != "" {
		return nil
	}
	secret := rand.Text()
	edit.SetSecret(secret)
	return []record.Record{secretRecord(secret)}
}
