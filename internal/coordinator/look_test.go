package coordinator

import (
	"slices"
	"testing"
	"testing/synctest"

	"muster/internal/group"
	"muster/internal/machine"
)

func TestALookIsAtWhatIsLedAndLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leads := true
		o := options(t, &gatedLog{})
		o.Leads = func(int32, int32) bool { return leads }
		c := New(o)
		defer c.Close()
		names := func(partition int32) (names []string, ok bool) {
			ok = c.Look(partition, func(core machine.Core) { names = core.(*group.Shard).Names().List() })
			return names, ok
		}
		if _, ok := names(0); ok || c.Led() != nil {
			t.Error("there are no shards")
		}
		c.Lead([]int32{3, NotLed, 5})
		synctest.Wait()
		if !slices.Equal(c.Led(), []int32{0, 2}) {
			t.Errorf("it leads %v", c.Led())
		}
		if _, ok := names(0); !ok {
			t.Error("a shard that is led and loaded is not seen")
		}
		for _, partition := range []int32{-1, 1, 3} {
			if _, ok := names(partition); ok {
				t.Errorf("shard %d is seen", partition)
			}
		}
		leads = false
		if _, ok := names(0); ok {
			t.Error("a shard that another broker leads by now is seen")
		}
		leads = true
		c.Lead([]int32{3, NotLed, NotLed})
		if _, ok := names(2); ok {
			t.Error("a shard that has ended is seen")
		}
	})
}

func TestAShardThatLoadsIsNotSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &gatedLog{slow: 1}
		c := New(options(t, log))
		defer c.Close()
		c.Lead([]int32{0})
		if c.Look(0, func(machine.Core) {}) {
			t.Error("it is seen")
		}
		pass(10)
		synctest.Wait()
		if !c.Look(0, func(machine.Core) {}) {
			t.Error("when it has loaded it is not seen")
		}
	})
}
