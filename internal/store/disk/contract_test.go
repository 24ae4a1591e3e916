package disk

import (
	"fmt"
	"testing"

	"muster/internal/assert"
	"muster/internal/store"
	"muster/internal/store/mem"
	"muster/internal/store/storetest"
	"muster/internal/store/vfs"
)

// harness opens stores on a file system for the suite.
func harness(fsys func(t *testing.T) (fsys vfs.FS, root string), cfg store.LogConfig) func(t *testing.T) storetest.Harness {
	return func(t *testing.T) storetest.Harness {
		fsys, root := fsys(t)
		var s *Store
		open := func(t *testing.T) {
			t.Helper()
			var err error
			// Few open files, so that they are closed and opened all the time.
			if s, err = Open(root, Options{FS: fsys, MaxOpenFiles: 5}); err != nil {
				t.Fatal(err)
			}
		}
		open(t)
		t.Cleanup(func() {
			assert.NoError(t, s.Close())
		})
		reopen := func(t *testing.T) store.Store {
			t.Helper()
			must(t, s.Close())
			open(t)
			return s
		}
		// What stays is the active segment, and a closed one that holds both
		// what may go and what may not.
		slack := 2 * cfg.SegmentBytes
		if slack == 0 {
			slack = -1
		}
		return storetest.Harness{Store: s, Reopen: reopen, Config: cfg, Slack: slack}
	}
}

func onMem(*testing.T) (vfs.FS, string)    { return vfs.NewMem(), "data" }
func onDisk(t *testing.T) (vfs.FS, string) { return vfs.OS(), t.TempDir() }

var configs = map[string]store.LogConfig{
	"DefaultSegments":        {},
	"SegmentsOf1KB":          {SegmentBytes: 1 << 10},
	"SegmentsOf4KB":          {SegmentBytes: 4 << 10},
	"SegmentsOfOneBatch":     {SegmentBytes: 1},
	"EveryBatchIndexed":      {SegmentBytes: 2 << 10, IndexInterval: 1},
	"FirstBatchIndexedOnly":  {SegmentBytes: 4 << 10, IndexInterval: 1 << 20},
	"SegmentsOfThreeSeconds": {SegmentBytes: 8 << 10, SegmentAge: 3000000000},
}

func TestContractInMemory(t *testing.T) {
	for name, cfg := range configs {
		if testing.Short() && name != "EveryBatchIndexed" {
			continue
		}
		t.Run(name, func(t *testing.T) { storetest.Run(t, harness(onMem, cfg)) })
	}
}

func TestContractOnDisk(t *testing.T) {
	for _, name := range []string{"DefaultSegments", "SegmentsOf4KB"} {
		if testing.Short() && name != "SegmentsOf4KB" {
			continue
		}
		t.Run(name, func(t *testing.T) { storetest.Run(t, harness(onDisk, configs[name])) })
	}
}

func TestSameAsMemoryEngine(t *testing.T) {
	model := func(t *testing.T) storetest.Harness {
		s := mem.New()
		t.Cleanup(func() { s.Close() })
		return storetest.Harness{Store: s}
	}
	seeds := uint64(8)
	if testing.Short() {
		seeds = 1
	}
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					storetest.Metamorphic(t, model, harness(onMem, cfg), seed)
				})
			}
		})
	}
}
