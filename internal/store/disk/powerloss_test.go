package disk

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"muster/internal/store"
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
	everyStop(t, seeds(6, 4), 1, 5, func(t *testing.T, seed uint64, stop int) {
		for _, c := range crashes(4) {
			if err := losePower(seed, stop, c); err != nil {
				t.Errorf("workload %d, stopped after %d operations, %s: %v", seed, stop, c.name, err)
			}
		}
	})
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
			if err := newWorld(fs, seed).run(); err != nil {
				t.Fatalf("the workload fails by itself: %v", err)
			}
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

func losePower(seed uint64, stop int, c crash) error {
	w, err := runUntil(seed, stop)
	if err != nil {
		return err
	}
	w.hit(c)
	return w.recoverAndUse()
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
	everyStop(t, []uint64{0, 1, 2, 3}, 11, 61, func(t *testing.T, seed uint64, stop int) {
		for i, first := range crashes(2) {
			second := crashes(2)[(stop+i)%4]
			if err := losePowerTwice(seed, stop, first, second); err != nil {
				t.Errorf("workload %d, stopped after %d operations, %s: %v", seed, stop, first.name, err)
			}
		}
	})
}

func losePowerTwice(seed uint64, stop int, first, second crash) error {
	for again := 0; ; again++ {
		w, err := runUntil(seed, stop)
		if err != nil {
			return err
		}
		w.hit(first)
		w.fs.StopAfter(again)
		err = errors.Join(w.open(), w.close())
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
