package redis

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"muster/internal/redistest"
	"muster/internal/store"
)

func TestChangedLogsAreToldApart(t *testing.T) {
	redistest.Each(t, func(t *testing.T, url string) {
		b := newBedAt(t, url, inStreams)
		var logs []store.Refresher
		for b.at.Partition = range int32(5) {
			l := b.open(1)
			b.append(l, b.valued("a"))
			logs = append(logs, l.(store.Refresher))
		}
		want := func(wait time.Duration, want ...int) {
			t.Helper()
			began := time.Now()
			changed, err := b.store.AwaitChange(b.ctx, logs, wait)
			for err == nil && len(changed) > 0 && len(changed) < len(want) { // It has not heard of the others yet.
				changed, err = b.store.AwaitChange(b.ctx, logs, wait)
			}
			if slices.Sort(changed); err != nil || !slices.Equal(changed, want) {
				t.Errorf("logs %v changed, not %v (%v)", changed, want, err)
			}
			if took := time.Since(began); len(want) == 0 && took < wait {
				t.Errorf("it waited for %v, not %v", took, wait)
			}
		}
		want(120 * time.Millisecond)
		for _, i := range []int{4, 1} {
			// The first offset that the broker does not know.
			_, end := logs[i].Bounds()
			id := numbering{bits: defaultBits}.id(end)
			b.do("XADD", fmt.Sprintf("%s:orders:%d", b.prefix, i), id.String(), "value", "theirs")
		}
		want(time.Minute, 1, 4)
		_, err := logs[1].Refresh(b.ctx)
		must(t, err)
		want(time.Minute, 4)
		go b.do("XADD", b.prefix+":orders:2", "*", "value", "later")
		_, err = logs[4].Refresh(b.ctx)
		must(t, err)
		want(time.Minute, 2)
		must(t, b.store.Close())
		if _, err := b.store.AwaitChange(b.ctx, logs, time.Minute); err == nil {
			t.Error("a closed store waits")
		}
	})
}

func TestAwaitChangeSaysThatRedisIsAway(t *testing.T) {
	s := redistest.Single(t)
	b := newBedAt(t, s.URL(), inStreams)
	l := b.open(1).(store.Refresher)
	go s.Nodes[0].Kill()
	redistest.Eventually(t, "an error", func() bool {
		_, err := b.store.AwaitChange(b.ctx, []store.Refresher{l}, 10*time.Millisecond)
		return err != nil
	})
}
