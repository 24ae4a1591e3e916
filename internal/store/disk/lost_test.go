package disk

import (
	"testing"

	"muster/internal/store"
	"muster/internal/store/storetest"
	"muster/internal/store/vfs"
)

// TestLostTail takes the power away without a sync of the last appends.
func TestLostTail(t *testing.T) {
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			storetest.RunLosing(t, func(t *testing.T) storetest.Losing {
				fs := vfs.NewMem()
				var h storetest.Harness
				open := func(t *testing.T) store.Store {
					h = harness(func(*testing.T) (vfs.FS, string) { return fs, "data" }, cfg)(t)
					return h.Store
				}
				open(t)
				return storetest.Losing{
					Harness: storetest.Harness{
						Store: h.Store, Config: h.Config, Slack: h.Slack,
						Reopen: func(t *testing.T) store.Store { return h.Reopen(t) },
					},
					Mark: func(*testing.T) {},
					Lose: func(t *testing.T) store.Store {
						fs = fs.CrashStrict()
						return open(t)
					},
				}
			})
		})
	}
}
