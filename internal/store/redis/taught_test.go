package redis

import (
	"fmt"
	"slices"
	"testing"

	"muster/internal/store"
)

// TestAServerThatForgotTheScriptsAddsNothingUnguarded has the server forget the scripts that
// appends name by their hash, with transactions under way: each record is stored once, in order.
func TestAServerThatForgotTheScriptsAddsNothingUnguarded(t *testing.T) {
	const appends, records = 8, fullGroupEntries
	for name, cfg := range allLayouts {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			l := b.open(1)
			var want []string
			for round := range 5 {
				b.do("SCRIPT", "FLUSH")
				done := make(chan error, appends)
				for i := range appends {
					var values []string
					for k := range records {
						values = append(values, fmt.Sprintf("%d.%d.%d", round, i, k))
					}
					want = append(want, values...)
					l.Begin(b.ctx, b.valued(values...), func(_ store.Appended, err error) { done <- err })
				}
				for range appends {
					must(t, <-done)
				}
			}
			if got := b.values(l); !slices.Equal(got, want) {
				t.Errorf("%d records are stored, and %d were appended", len(got), len(want))
			}
		})
	}
}
