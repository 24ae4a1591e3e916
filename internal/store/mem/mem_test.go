package mem

import (
	"fmt"
	"testing"

	"muster/internal/store"
	"muster/internal/store/disk"
	"muster/internal/store/storetest"
	"muster/internal/store/vfs"
)

func open(t *testing.T) storetest.Harness {
	s := New()
	t.Cleanup(func() { s.Close() })
	return storetest.Harness{Store: s}
}

func TestContract(t *testing.T) { storetest.Run(t, open) }

// An engine that is the same as itself proves nothing, so this one is compared
// with one that shares no code with it.
func TestSameAsTheDiskEngine(t *testing.T) {
	onDisk := func(t *testing.T) storetest.Harness {
		s, err := disk.Open("data", disk.Options{FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return storetest.Harness{Store: s, Config: store.LogConfig{SegmentBytes: 2 << 10}, Slack: 4 << 10}
	}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { storetest.Metamorphic(t, open, onDisk, seed) })
	}
}
