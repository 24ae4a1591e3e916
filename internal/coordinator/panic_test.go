package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/machine"
)

// fragile is a core that panics at requests of a client.
type fragile struct {
	machine.Core
	replays *int // how often a replay panics
}

func (f fragile) Replay(s machine.Stored) {
	if *f.replays > 0 {
		*f.replays--
		panic("a defect")
	}
	f.Core.Replay(s)
}

func (f fragile) Step(in machine.Input) machine.Effects {
	if r, ok := in.Event.(machine.Request); ok && r.ClientID == "boom" {
		panic("a defect")
	}
	return f.Core.Step(in)
}

func TestAPanicOfTheCoreHasTheShardLoadedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &gatedLog{}
		opts := options(t, log)
		sound := opts.Core.New
		replays, panics := 0, 0
		opts.Core.New = func() machine.Core { return fragile{sound(), &replays} }
		opts.Panicked = func() { panics++ }
		c := New(opts)
		defer c.Close()
		c.Lead([]int32{0})
		synctest.Wait()
		if code := commitCode(c.Do(t.Context(), "g", Client{ID: "c"}, commitRequest(7))); code != 0 {
			t.Fatalf("error %d", code)
		}
		before := log.reopens
		replays = 2
		hurt := c.Do(t.Context(), "g", Client{ID: "boom"}, kmsg.NewPtrHeartbeatRequest())
		if hurt != nil && hurt.(*kmsg.HeartbeatResponse).ErrorCode == 0 {
			t.Error("the request is answered as if it were handled")
		}
		time.Sleep(time.Second) // Of the fast clock: loads that fail are tried again.
		synctest.Wait()
		if panics != 3 {
			t.Errorf("%d panics are counted", panics)
		}
		if log.reopens != before+3 {
			t.Errorf("the shard was loaded %d times", log.reopens-before)
		}
		if got := fetched(c.Do(t.Context(), "g", Client{ID: "c"}, fetchRequest())); got != 7 {
			t.Errorf("offset %d is committed", got)
		}
	})
}
