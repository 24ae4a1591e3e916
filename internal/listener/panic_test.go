package listener

import (
	"context"
	"sync/atomic"
	"testing"

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
	if !ended(bad) {
		t.Error("its connection goes on")
	}
	sendFrame(t, good, []byte("b"))
	if got := readFrame(t, good); string(got) != "b" {
		t.Errorf("another connection gets %q", got)
	}
	waitFor(t, "it is gone", func() bool { return s.Connections() == 1 })
	if panics.Load() != 1 {
		t.Errorf("%d panics are counted", panics.Load())
	}
	if s.budget.free != s.budget.total {
		t.Error("its memory is still counted")
	}
}
