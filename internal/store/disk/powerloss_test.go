package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"muster/internal/assert"
	"muster/internal/store"
	"muster/internal/store/storetest"
	"muster/internal/store/vfs"
)

// A crash is a way for the power to fail.
type crash struct {
	name string
	do   func(*vfs.Mem) *vfs.Mem
	same bool // the kernel lives
}

// hit has the crash happen.
func (w *world) hit(c crash) {
	w.fs = c.do(w.fs)
	if w.boot != "" && !c.same {
		w.boot += "+"
	}
}

// crashes returns the two plain ways, and several that rng would choose.
func crashes(random int) []crash {
	out := []crash{
		{"all that was not synced is lost", (*vfs.Mem).CrashStrict, false},
		{"the process is killed, the kernel lives", (*vfs.Mem).CrashKeepAll, true},
	}
	for seed := range uint64(random) {
		out = append(out, crash{fmt.Sprintf("crash seed %d", seed), func(m *vfs.Mem) *vfs.Mem {
			return m.Crash(rand.New(rand.NewPCG(seed, 1)))
		}, false})
	}
	return out
}

// TestPowerLoss stops a workload at every operation on the file system, takes
// the power away in several ways, and demands that what was promised is there
// when the store opens again, and that the store is fit for use. With -short
// it looks at some of the stops only.
func TestPowerLoss(t *testing.T) {
	everyCrash(t, seeds(6, 4), 1, 5, 4, func(w *world, _, _ int, c crash) error { return w.crashed(c).recoverAndUse() })
}

// everyStop calls try for the operations that the workload of each seed makes on the file
// system: for every one if stride is 1, and with -short for fewer. Which ones differs from
// seed to seed, if not all are tried.
func everyStop(t *testing.T, seeds []uint64, stride, short int, try func(t *testing.T, seed uint64, stop int)) {
	if testing.Short() {
		stride = short
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("Workload%d", seed), func(t *testing.T) {
			t.Parallel()
			fs := vfs.NewMem()
			assert.Must(t, newWorld(fs, seed).run(), "the workload fails by itself")
			for stop := int(seed) % stride; stop <= fs.Ops(); stop += stride {
				try(t, seed, stop)
			}
		})
	}
}

// runUntil runs the workload until the file system stops.
func runUntil(seed uint64, stop int) (*world, error) {
	w := newWorld(vfs.NewMem(), seed)
	w.fs.StopAfter(stop)
	// A log that a sync in the background failed says so, and not why.
	if err := w.run(); err != nil && !errors.Is(err, vfs.ErrStopped) && !errors.Is(err, store.ErrFailed) {
		return nil, fmt.Errorf("workload: %w", err)
	}
	return w, nil
}

// everyCrash stops workloads as everyStop does, and calls try for each way in which the
// power may fail then.
func everyCrash(t *testing.T, seeds []uint64, stride, short, random int, try func(w *world, stop, way int, c crash) error) {
	everyStop(t, seeds, stride, short, func(t *testing.T, seed uint64, stop int) {
		w, err := runUntil(seed, stop)
		assert.Must(t, err, "workload %d, stopped after %d operations", seed, stop)
		for i, c := range crashes(random) {
			assert.NoError(t, try(w, stop, i, c), "workload %d, stopped after %d operations, %s", seed, stop, c.name)
		}
	})
}

// crashed returns the world as a crash leaves it. This one stays as it was, so that one
// run of a workload does for all that may happen then.
func (w *world) crashed(c crash) *world {
	after := *w
	after.carryOn, after.tracks, after.rng = false, nil, rand.New(rand.NewPCG(w.seed, 2))
	for _, tr := range w.tracks {
		after.tracks = append(after.tracks, tr.clone())
	}
	after.hit(c)
	return &after
}

// recoverAndUse opens the store after a crash and holds it against what was
// promised. Then it appends, loses the power once more, and wants all of that.
func (w *world) recoverAndUse() error {
	if err := w.open(); err != nil {
		return errors.Join(fmt.Errorf("open after the crash: %w", err), w.close())
	}
	return w.useRecovered()
}

func (w *world) useRecovered() (err error) {
	defer func() { err = errors.Join(err, w.close()) }()
	for _, tr := range w.tracks {
		content, err := tr.verify(tr.durableEnd)
		if err != nil {
			return fmt.Errorf("log %s: %w", tr.tp.Topic, err)
		}
		if err := tr.checkSearch(content); err != nil {
			return fmt.Errorf("log %s: %w", tr.tp.Topic, err)
		}
		tr.adopt(content)
		if err := w.appendAndFlush(tr); err != nil {
			return fmt.Errorf("log %s, use after the crash: %w", tr.tp.Topic, err)
		}
	}
	w.fs.StopAfter(w.fs.Ops())
	if err := w.close(); !errors.Is(err, vfs.ErrStopped) {
		return fmt.Errorf("close without power: %w", err)
	}
	w.hit(crashes(0)[0])
	if err := w.open(); err != nil {
		return fmt.Errorf("open after the second crash: %w", err)
	}
	for _, tr := range w.tracks {
		if _, err := tr.verify(tr.durableEnd); err != nil {
			return fmt.Errorf("log %s after the second crash: %w", tr.tp.Topic, err)
		}
	}
	return w.close()
}

// TestPowerLossDuringRecovery stops the recovery from a crash at every
// operation, crashes again, and demands the same of the next recovery.
func TestPowerLossDuringRecovery(t *testing.T) {
	everyCrash(t, []uint64{0, 1, 2, 3}, 11, 61, 2, func(w *world, stop, way int, first crash) error {
		return w.losePowerTwice(first, crashes(2)[(stop+way)%4])
	})
}

func (w *world) losePowerTwice(first, second crash) error {
	stopped := w
	for again := 0; ; again++ {
		w := stopped.crashed(first)
		w.fs.StopAfter(again)
		err := errors.Join(w.open(), w.close())
		if err == nil {
			return nil // Recovery takes no more than this.
		}
		if !errors.Is(err, vfs.ErrStopped) {
			return fmt.Errorf("recovery: %w", err)
		}
		w.hit(second)
		if err := w.recoverAndUse(); err != nil {
			return fmt.Errorf("recovery stopped after %d operations, %s: %w", again, second.name, err)
		}
	}
}

// TestLostTail takes the power away without a sync of the last appends.
func TestLostTail(t *testing.T) {
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			storetest.RunLosing(t, func(t *testing.T) storetest.Losing {
				fs := vfs.NewMem()
				var h storetest.Harness
				open := func(t *testing.T) store.Store {
					h = harness(func(*testing.T) (vfs.FS, string) { return fs, "data" }, cfg)(t)
					return h.Store
				}
				open(t)
				return storetest.Losing{
					Harness: storetest.Harness{
						Store: h.Store, Config: h.Config, Slack: h.Slack,
						Reopen: func(t *testing.T) store.Store { return h.Reopen(t) },
					},
					Mark: func(*testing.T) {},
					Lose: func(t *testing.T) store.Store {
						fs = fs.CrashStrict()
						return open(t)
					},
				}
			})
		})
	}
}
