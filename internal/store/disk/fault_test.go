package disk

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"muster/internal/store"
	"muster/internal/store/vfs"
)

// TestEveryFailure lets each operation on the file system fail once, while the
// workload goes on. Whatever fails, nothing that was acknowledged may be lost,
// and nothing that was refused may be stored, neither at once nor after a loss
// of power.
func TestEveryFailure(t *testing.T) {
	everyStop(t, seeds(6, 3), 1, 7, func(t *testing.T, seed uint64, k int) {
		kind := vfs.OpWrite
		for i, failure := range []error{syscall.EIO, vfs.PartialWrite{N: 70, Err: syscall.EIO}, vfs.PartialWrite{N: 1 << 20, Err: syscall.ENOSPC}} {
			if i > 0 && kind != vfs.OpWrite {
				break // Only writes fail in part.
			}
			var err error
			if kind, err = failOnce(seed, k, failure); err != nil {
				t.Errorf("workload %d, operation %d fails, %v: %v", seed, k, failure, err)
			}
		}
	})
}

// failOnce runs the workload while one operation fails, and then takes the
// power away in several ways. It returns what operation that was; the last
// comes after all of them.
func failOnce(seed uint64, k int, failure error) (kind vfs.OpKind, err error) {
	w := newWorld(vfs.NewMem(), seed)
	w.carryOn, kind = true, vfs.OpRead
	w.fs.SetHook(func(op vfs.Op) error {
		if op.Seq == k && !op.Kind.ReadOnly() {
			kind = op.Kind
			return failure
		}
		return nil
	})
	if err := w.run(); err != nil {
		return kind, err
	}
	for _, c := range crashes(2) {
		if err := w.crashed(c).recoverAndUse(); err != nil {
			return kind, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return kind, nil
}

// TestEveryFailureDuringRecovery lets each operation of a recovery fail once.
// The next attempt to open must succeed and lose nothing that was promised.
func TestEveryFailureDuringRecovery(t *testing.T) {
	everyCrash(t, []uint64{0, 1, 2, 3}, 11, 61, 1, func(w *world, _, _ int, c crash) error { return w.failRecovery(c) })
}

func (w *world) failRecovery(c crash) error {
	stopped := w
	for k := 0; ; k++ {
		w := stopped.crashed(c)
		w.fs.SetHook(func(op vfs.Op) error {
			if op.Seq == k && !op.Kind.ReadOnly() {
				return syscall.EIO
			}
			return nil
		})
		err := w.open()
		w.fs.SetHook(nil)
		if w.fs.Ops() <= k {
			return errors.Join(err, w.close()) // Recovery takes no more than this.
		}
		if err != nil && w.st != nil {
			// The store opened, a log did not: it can be opened in the same
			// process.
			err = errors.Join(w.openLog(w.tracks[0]), w.openLog(w.tracks[1]))
		} else if err != nil {
			err = w.open()
		}
		if err == nil {
			err = w.useRecovered()
		} else {
			err = errors.Join(err, w.close())
		}
		if err != nil {
			return fmt.Errorf("operation %d of the recovery fails: %w", k, err)
		}
	}
}

// failed deals with a step that has failed: it ends the workload, or, if that
// is to carry on, opens again what has failed and verifies it.
func (w *world) failed(tr *track, what string, err error) error {
	err = fmt.Errorf("%s: %w", what, err)
	if !w.carryOn {
		return err
	}
	if tr == nil {
		return w.startAnew()
	}
	if !errors.Is(err, store.ErrStorage) && !errors.Is(err, store.ErrFailed) {
		return fmt.Errorf("unexpected error: %w", err)
	}
	must := tr.end
	if l := tr.log.(*handle).log; l.failed.Load() {
		_, appendErr := tr.log.Append(context.Background(), sample(1, "refused"))
		if !errors.Is(appendErr, store.ErrFailed) {
			return fmt.Errorf("append to a failed log: %w", appendErr)
		}
		if l.doubtful {
			must = tr.durableEnd
		}
	}
	// What the log held before the failure can still be read.
	if !tr.deleting {
		if content, err := readContent(tr.log); err != nil {
			return fmt.Errorf("read after failure of %s: %w", what, err)
		} else if err := tr.check(content, tr.end); err != nil {
			return fmt.Errorf("after failure of %s: %w", what, err)
		}
	}
	if err := w.retry(func() error { return w.reopenLog(tr, must) }); err != nil {
		return fmt.Errorf("after failure of %s: %w", what, err)
	}
	return nil
}

// retry is for steps that may meet the one failure that is to come.
func (w *world) retry(step func() error) error {
	err := step()
	if errors.Is(err, syscall.EIO) || errors.Is(err, syscall.ENOSPC) {
		err = step()
	}
	return err
}

// reopenLog opens the log again under its epoch, and verifies it. Nothing that
// was refused may be there.
func (w *world) reopenLog(tr *track, must int64) error {
	end := tr.end
	if err := w.openLog(tr); err != nil {
		return err
	}
	if tr.end > end {
		return fmt.Errorf("log ended at %d, ends at %d after it was opened again", end, tr.end)
	}
	content, err := tr.verify(must)
	if err != nil {
		return err
	}
	before := *tr
	tr.adopt(content)
	// A trim or retention that failed may be half done, and take effect or be
	// undone when the power fails.
	tr.durableEnd = min(before.durableEnd, tr.end)
	tr.startAcked = min(before.startAcked, tr.startAcked)
	tr.startTried = max(before.startTried, tr.startTried)
	return nil
}

// startAnew opens the store after it failed to close or to open.
func (w *world) startAnew() error {
	logs := map[*track]*log{}
	for _, tr := range w.tracks {
		if h, ok := tr.log.(*handle); ok {
			logs[tr] = h.log
		}
	}
	_ = w.close()
	return w.retry(func() error {
		if err := w.openStore(); err != nil {
			return err
		}
		for _, tr := range w.tracks {
			must := tr.end
			if l := logs[tr]; l != nil && l.doubtful {
				must = tr.durableEnd
			}
			if err := w.reopenLog(tr, must); err != nil {
				return errors.Join(err, w.close())
			}
		}
		return nil
	})
}
