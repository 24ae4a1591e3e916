package handler

import (
	"testing"
	"time"

	"muster/internal/assert"
	"muster/internal/partition"
	"muster/internal/protocol"
	"muster/internal/quota"
)

// A request is counted once as it came. What is stored counts only as far as it is more than that.
func TestWhatIsStoredCountsBeyondWhatCame(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		stored   []int64 // by partition; 0 where it is what came
		throttle int32
	}{
		"as it came":     {[]int64{0, 0}, 700},
		"less than came": {[]int64{400, 500}, 700},
		"unpacked":       {[]int64{1000, 2500}, 2500},
		"a little more":  {[]int64{1500, 0}, 700},
	} {
		t.Run(name, func(t *testing.T) {
			limit := quota.Limit{PerSecond: 1000, Windows: 11, Window: time.Second}
			own := &share{limits: newLimits(), limit: limit, now: func() time.Time { return now }}
			own.book = own.limits.known
			p := &produceCall{request: protocol.Request{Size: 1000}, share: own, throttle: 700}
			assert.Equal(t, own.take(p.request.Size), 0, "the request has to wait") // There is a second's worth.
			for _, n := range c.stored {
				p.outcomes = append(p.outcomes, &produceOutcome{result: partition.Appended{Stored: n}})
			}
			p.chargeStored()
			assert.Equal(t, p.throttle, c.throttle, "milliseconds to wait")
		})
	}
}
