package listener

import (
	"context"
	"sync/atomic"
	"testing"

	"muster/internal/assert"
	"muster/internal/protocol"
)

func TestAPanicEndsItsConnectionAndNoOther(t *testing.T) {
	var panics atomic.Int32
	s, addr := start(t, Options{Panicked: func() { panics.Add(1) }}, func(ctx context.Context, frame []byte) (*protocol.Response, error) {
		if string(frame) == "boom" {
			panic("a defect")
		}
		return echo(ctx, frame)
	})
	good, bad := dial(t, addr), dial(t, addr)
	sendFrame(t, good, []byte("a"))
	readFrame(t, good)
	sendFrame(t, bad, []byte("boom"))
	assert.True(t, ended(bad), "its connection goes on")
	sendFrame(t, good, []byte("b"))
	assert.Equal(t, string(readFrame(t, good)), "b", "another connection gets")
	waitFor(t, "it is gone", func() bool { return s.Connections() == 1 })
	assert.Equal(t, panics.Load(), 1, "panics are counted")
	assert.Equal(t, s.budget.free, s.budget.total, "its memory is still counted")
}
