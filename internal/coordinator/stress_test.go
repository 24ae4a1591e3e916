package coordinator

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/group"
)

// moody is a log that is slow, fails now and then, and may store what it says
// that it did not.
type moody struct {
	gatedLog
	ends sync.WaitGroup
}

func (l *moody) Append(ctx context.Context, batch []byte, done func(int64, error)) {
	switch rand.IntN(8) {
	case 0:
		done(-1, errors.New("no"))
	case 1:
		l.gatedLog.Append(ctx, batch, func(int64, error) {})
		done(-1, errors.New("stored, but nobody knows"))
	case 2:
		l.gatedLog.Append(ctx, batch, done)
	default:
		l.ends.Go(func() {
			for range rand.IntN(50) {
				runtime.Gosched()
			}
			l.gatedLog.Append(ctx, batch, done)
		})
	}
}

// Everybody does everything at once: each request is answered, and the end waits
// for all that goes on.
func TestManyAtOnceWhileTheLogFailsAndLeadersChange(t *testing.T) {
	log := &moody{}
	opts := Options{
		Core: group.Definition(group.DefaultConfig), Log: func(int32) Log { return log }, Logger: slog.New(slog.DiscardHandler), Image: log.image.Load,
	}
	c := New(opts)
	c.Lead([]int32{0})
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for n := range 150 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(20))*time.Millisecond)
				var req kmsg.Request = commitRequest(int64(n))
				if n%2 == 0 {
					req = fetchRequest()
				}
				if resp := c.Do(ctx, "g", Client{}, req); resp == nil {
					t.Errorf("client %d got no answer", i)
				}
				cancel()
			}
		})
	}
	clients.Go(func() {
		for epoch := range int32(20) {
			c.Lead([]int32{epoch})
			c.Tell(group.Configured{Config: group.DefaultConfig()})
			log.change(c, imageOf(byte(epoch%3)), imageOf(byte((epoch+1)%3)))
		}
	})
	clients.Wait()
	c.Close()
	c.Lead([]int32{99})
	log.ends.Wait()
	log.mu.Lock()
	appends := log.appends
	log.mu.Unlock()
	if commitCode(c.Do(t.Context(), "g", Client{}, commitRequest(1))) == 0 || log.appends != appends {
		t.Error("a coordinator that is closed accepts a commit")
	}
	if s := (*c.shards.Load())[0]; len(s.waiting) > 0 {
		t.Errorf("%d wait for ever", len(s.waiting))
	}
}
