package coordinator

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// restartingLog is a log whose server is started again, without the last that it had.
type restartingLog struct {
	*gatedLog
	restarted atomic.Bool
	runs      atomic.Int32
}

func (l *restartingLog) Run() machine.Run { return machine.Run{Began: int64(l.runs.Load())} }

func (l *restartingLog) HasRestarted() bool { return l.restarted.Load() }

// lose takes everything from the log.
func (l *restartingLog) lose() {
	l.set(func(l *gatedLog) { l.data, l.next = nil, 0 })
	l.runs.Add(1)
	l.restarted.Store(true)
}

// What a shard knows may be what the log has lost. It is not told any more, and the shard
// is loaded again: when someone asks, or when the coordinator is told to look.
func TestAShardIsLoadedAgainWhenItsServerWasStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &restartingLog{gatedLog: &gatedLog{}}
		opts := options(t, log.gatedLog)
		opts.Log = func(int32) Log { return log }
		c := New(opts)
		c.Lead([]int32{0})
		synctest.Wait()
		commit := func() {
			t.Helper()
			if code := commitCode(<-async(t, c, commitRequest(5))); code != 0 {
				t.Fatalf("commit: %d", code)
			}
		}
		commit()
		c.Reload()
		synctest.Wait()
		if log.reopens != 1 {
			t.Errorf("loaded %d times, though nothing happened", log.reopens)
		}
		log.lose()
		resp := <-async(t, c, fetchRequest())
		if code := kerr.TypedErrorForCode(groupCode(resp)); code != kerr.CoordinatorLoadInProgress {
			t.Errorf("what is lost is told: %+v", resp)
		}
		log.restarted.Store(false) // It was opened again.
		synctest.Wait()
		if at := fetched(<-async(t, c, fetchRequest())); at != -1 || log.reopens != 2 {
			t.Errorf("the offset is %d after %d loads", at, log.reopens)
		}
		commit()
		log.lose()
		c.Reload()
		log.restarted.Store(false)
		synctest.Wait()
		if at := fetched(<-async(t, c, fetchRequest())); at != -1 || log.reopens != 3 {
			t.Errorf("the offset is %d after %d loads", at, log.reopens)
		}
		c.Close()
	})
}

func groupCode(r kmsg.Response) int16 { return r.(*kmsg.OffsetFetchResponse).Groups[0].ErrorCode }
