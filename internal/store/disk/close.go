package disk

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"muster/internal/store"
)

// Close implements store.Store: it leaves the next start a note of how everything
// is, unless something failed. Where the kernel's boot is not known, it makes
// everything durable first.
func (s *Store) Close() error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	logs := s.loaded()
	if j := s.sync.journal; j != nil {
		j.close()
	}
	if s.boot != "" {
		return errors.Join(s.stopQuickly(logs), s.lock.Close())
	}
	err := s.shutAll(logs)
	s.sync.close()
	s.files.close()
	if j := s.sync.journal; j != nil {
		j.closeFiles()
	}
	if err == nil {
		// No log needs the journal. It goes before the note says that all is well.
		err = s.endJournal(journalDir)
	}
	if err == nil {
		err = s.leaveCleanNote(logs)
	}
	return errors.Join(err, s.lock.Close())
}

// shutAll shuts several logs at a time, since their syncs then share the file
// system's journal commits.
func (s *Store) shutAll(logs []*log) error {
	var mu sync.Mutex
	var errs []error
	eachOf(logs, s.closers, func(l *log) {
		if err := l.shutClean(); err != nil {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, fmt.Errorf("close log %s: %w", folderName(l.tp), err))
		}
	})
	return errors.Join(errs...)
}

// leaveCleanNote tells the next start that no active segment needs a scan. That
// is not so if the start before was not clean and a log has not been opened,
// and thereby scanned, since.
func (s *Store) leaveCleanNote(scanned []*log) error {
	if known, err := s.allKnown(scanned); !known {
		return err
	}
	f, err := s.fs.Create(path.Join(s.root, cleanFile))
	if err != nil {
		return fmt.Errorf("note clean stop: %w", err)
	}
	if err := errors.Join(f.Close(), s.fs.SyncDir(s.root)); err != nil {
		return fmt.Errorf("note clean stop: %w", err)
	}
	return nil
}

// allKnown says whether every log was scanned since the last stop, or need not be.
func (s *Store) allKnown(scanned []*log) (bool, error) {
	known := map[store.TopicPartition]bool{}
	for _, l := range scanned {
		known[l.tp] = true
	}
	for _, tp := range s.unsettled() {
		if !known[tp] {
			return false, nil
		}
	}
	if s.clean {
		return true, nil
	}
	left, err := s.folders()
	if err != nil {
		return false, fmt.Errorf("note clean stop: %w", err)
	}
	return !slices.ContainsFunc(left, func(tp store.TopicPartition) bool { return !known[tp] }), nil
}

// unsettled returns the logs that a quick stop left.
func (s *Store) unsettled() (out []store.TopicPartition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for tp, l := range s.logs {
		if l.left != nil {
			out = append(out, tp)
		}
	}
	return out
}
