package records

import (
	"context"
	"testing"
	"testing/synctest"

	"muster/internal/assert"
)

// Who waits for memory goes on when another gives some back, or gives up with its request.
func TestSearchesWaitForMemoryUntilItIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(100)
		give, err := b.take(t.Context(), 1000) // More than there will ever be: it gets all.
		assert.Must(t, err)
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := b.take(ended, 1); err == nil {
			t.Error("there is memory after all was taken")
		}
		took := make(chan error, 1)
		go func() {
			_, err := b.take(t.Context(), 60)
			took <- err
		}()
		synctest.Wait()
		give()
		synctest.Wait()
		select {
		case err := <-took:
			assert.True(t, err == nil && b.free == 40, "%v; %d bytes are free", err, b.free)
		default:
			t.Fatal("it still waits")
		}
	})
}
