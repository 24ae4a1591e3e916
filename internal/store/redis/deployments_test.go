package redis

import (
	"testing"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/storetest"
)

// TestContractOnEveryDeployment runs the suite where keys are in slots and
// where the primary is found through others; TestContract runs it on a single
// server.
func TestContractOnEveryDeployment(t *testing.T) {
	for _, kind := range []redistest.Kind{redistest.KindCluster, redistest.KindSentinel} {
		for _, layout := range []store.Layout{store.LayoutLog, store.LayoutStream} {
			t.Run(string(kind)+"-"+string(layout), func(t *testing.T) {
				url := func(t *testing.T) string { return redistest.Shared(t, kind).URL() }
				storetest.Run(t, harness(url, store.LogConfig{Layout: layout}))
			})
		}
	}
}
