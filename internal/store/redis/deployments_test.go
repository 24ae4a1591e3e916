package redis

import (
	"testing"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/storetest"
)

// TestContractOnEveryDeployment runs the suite where keys are in slots and
// where the primary is found through others; TestContract runs it on a single
// server. With -short each runs it with one layout.
func TestContractOnEveryDeployment(t *testing.T) {
	t.Parallel()
	for _, kind := range []redistest.Kind{redistest.KindCluster, redistest.KindSentinel} {
		for _, layout := range []store.Layout{store.LayoutIndexed, store.LayoutLog} {
			if testing.Short() && (kind == redistest.KindCluster) != (layout == store.LayoutIndexed) {
				continue
			}
			t.Run(string(kind)+"-"+string(layout), func(t *testing.T) {
				t.Parallel()
				url := func(t *testing.T) string { return redistest.Shared(t, kind).URL() }
				storetest.Run(t, harness(url, store.LogConfig{Layout: layout}))
			})
		}
	}
}
