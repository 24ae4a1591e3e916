package broker

import (
	"context"
	"testing"

	"muster/internal/assert"
	"muster/internal/handler"
	"muster/internal/protocol"
	"muster/internal/store/redis"
	"muster/internal/watch"
	"muster/internal/watch/lag"
)

// counts says how many records there are from some places on.
type counts []*protocol.Behind

func (c counts) CountFrom(context.Context, []handler.Place) []*protocol.Behind { return c }

// Of what was counted in part, because there was no more time, nothing is known.
func TestWhatIsCountedInPartIsNotKnown(t *testing.T) {
	b := &Broker{counter: counts{
		{Records: 5}, {Records: redis.CountLimit - 1, AtLeast: true}, {Records: redis.CountLimit, AtLeast: true}, nil, {Records: redis.CountLimit + 1},
	}}
	got := b.countFrom(t.Context(), make([]watch.PartitionOffset, 5))
	for i, want := range []*lag.Count{{Records: 5}, nil, {Records: redis.CountLimit, Approximate: true}, nil, {Records: redis.CountLimit + 1}} {
		assert.DeepEqual(t, got[i], want, "number %d", i)
	}
}
