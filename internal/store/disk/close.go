package disk

import (
	"errors"
	"fmt"
	"path"
	"sync"

	"muster/internal/store"
)

// Close implements store.Store: it makes everything durable and leaves the
// note of a clean stop, unless something failed.
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
	if !s.clean {
		left, err := s.folders()
		if err != nil {
			return fmt.Errorf("note clean stop: %w", err)
		}
		known := map[store.TopicPartition]bool{}
		for _, l := range scanned {
			known[l.tp] = true
		}
		for _, tp := range left {
			if !known[tp] {
				return nil
			}
		}
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
