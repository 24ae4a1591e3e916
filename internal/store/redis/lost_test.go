package redis

import (
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
	"muster/internal/store/storetest"
)

// TestLostTail starts a server again with what it had earlier.
func TestLostTail(t *testing.T) {
	t.Parallel()
	for name, cfg := range layouts {
		t.Run(name, func(t *testing.T) {
			server := redistest.Single(t)
			storetest.RunLosing(t, func(t *testing.T) storetest.Losing {
				h := harness(func(*testing.T) string { return server.URL() }, cfg)(t)
				reopen := h.Reopen
				h.Reopen = func(t *testing.T) store.Store {
					h.Store = reopen(t)
					return h.Store
				}
				var older redistest.Snapshot
				return storetest.Losing{
					Harness: h,
					Mark:    func(t *testing.T) { older = server.Nodes[0].Snapshot(t) },
					Lose: func(t *testing.T) store.Store {
						server.Nodes[0].Restore(t, older)
						must(t, redistest.Poll(time.Minute, func() error {
							_, err := h.Store.List(t.Context())
							return err
						}))
						return h.Store
					},
				}
			})
		})
	}
}

// TestAnIncarnationIsNotGivenTwice has a server forget that a log was opened: an
// append of that handle must not pass for one of the next.
func TestAnIncarnationIsNotGivenTwice(t *testing.T) {
	server := redistest.Single(t)
	b := newBedAt(t, server.URL(), store.LogConfig{Layout: store.LayoutLog})
	b.open(1)
	older := server.Nodes[0].Snapshot(t)
	b.open(1)
	lost, err := server.Nodes[0].Text("HGET", b.keys().meta, "n")
	must(t, err)
	server.Nodes[0].Restore(t, older)
	must(t, redistest.Poll(time.Minute, func() error {
		_, err := b.store.Open(b.ctx, b.at, 1, b.cfg)
		return err
	}))
	again, err := server.Nodes[0].Text("HGET", b.keys().meta, "n")
	must(t, err)
	if lost == again {
		t.Errorf("token %s was given twice", lost)
	}
}
