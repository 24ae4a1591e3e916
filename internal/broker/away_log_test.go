package broker

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"muster/internal/assert"
	"muster/internal/store"
)

func TestWhatFollowsFromARedisThatIsAwayIsNotSaidAgain(t *testing.T) {
	var text bytes.Buffer
	var away atomic.Pointer[redisAway]
	var out atomic.Int64
	logger := slog.New(quietly{slog.NewTextHandler(&text, nil), &away, &out}).With("node", 1)
	follows := fmt.Errorf("append: %w", store.ErrUnavailable)
	logger.Warn("before", "error", follows)
	away.Store(&redisAway{})
	logger.Warn("follows", "topic", "a", "error", follows)
	logger.Error("other trouble", "error", errors.New("disk on fire"))
	logger.Info("told anyway", "error", follows)
	away.Store(nil)
	logger.Warn("after", "error", follows)
	got := text.String()
	for what, want := range map[string]bool{"before": true, "follows": false, "other trouble": true, "told anyway": true, "after": true} {
		assert.True(t, strings.Contains(got, what) == want, "%q in the log, want %v:\n%s", what, want, got)
	}
	assert.Equal(t, out.Load(), 1, "lines left out")
}
