// Package disk is the engine that keeps partition logs in files.
//
// A log is a folder named <topic>-<partition>. It holds segment files named by
// their base offset, with record batches byte for byte as clients sent them
// (only base offset and leader epoch are written), one index file per closed
// segment, snapshots of producer state, and log-start if records were deleted.
// Folder and files are made by the first append, so an empty partition costs
// nothing.
//
//	data/.lock              held while a broker has the folder
//	data/clean-shutdown     there only if the last stop was clean
//	data/orders-0/00000000000000000000.log
//	              00000000000000000000.index
//	              00000000000000004711.snapshot
//	              log-start
//
// One write at a time goes to a log, at the end of its last (active) segment;
// a write becomes visible to readers only when it is complete. A segment is
// made durable before its successor is created, so only the active segment can
// be torn. docs/storage.md has the formats and the argument for each crash.
package disk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"muster/internal/store"
	"muster/internal/store/vfs"
)

const (
	lockFile    = ".lock"
	cleanFile   = "clean-shutdown"
	trashPrefix = "~"
)

// ErrLocked says that another broker uses the data folder.
var ErrLocked = vfs.ErrLocked

// Options of a store.
type Options struct {
	FS vfs.FS
	// MaxOpenFiles bounds how many segment files stay open.
	MaxOpenFiles int
}

// Store is a folder of logs.
type Store struct {
	fs    vfs.FS
	root  string
	lock  io.Closer
	files *fileCache
	sync  *syncer
	// clean says that the last stop was clean, so that active segments need no
	// scan.
	clean bool

	mu     sync.Mutex
	logs   map[store.TopicPartition]*log
	trash  int
	closed bool
}

var _ store.Store = (*Store)(nil)

// Open takes the data folder, creating it if need be. It fails with ErrLocked
// if another process has it.
func Open(root string, opts Options) (*Store, error) {
	if opts.FS == nil {
		opts.FS = vfs.OS()
	}
	if opts.MaxOpenFiles <= 0 {
		opts.MaxOpenFiles = 1024
	}
	if err := opts.FS.MkdirAll(root); err != nil {
		return nil, fmt.Errorf("create data folder: %w", err)
	}
	lock, err := opts.FS.Lock(path.Join(root, lockFile))
	if err != nil {
		return nil, fmt.Errorf("lock data folder %s: %w", root, err)
	}
	s := &Store{
		fs: opts.FS, root: root, lock: lock,
		files: newFileCache(opts.MaxOpenFiles), sync: newSyncer(),
		logs: map[store.TopicPartition]*log{},
	}
	if err := s.start(); err != nil {
		s.sync.close()
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// start takes note of a clean stop, and takes the note away before anything
// can be written; then it empties the trash.
func (s *Store) start() error {
	err := s.fs.Remove(path.Join(s.root, cleanFile))
	switch {
	case err == nil:
		s.clean = true
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("data folder: %w", err)
	}
	entries, err := s.fs.ReadDir(s.root)
	if err != nil {
		return fmt.Errorf("read data folder: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), trashPrefix) {
			if err := s.fs.RemoveAll(path.Join(s.root, e.Name())); err != nil {
				return fmt.Errorf("remove deleted log: %w", err)
			}
		}
	}
	if err := s.fs.SyncDir(s.root); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return nil
}

// WasClean says whether the stop before this start was clean.
func (s *Store) WasClean() bool { return s.clean }

func folderName(tp store.TopicPartition) string {
	return tp.Topic + "-" + strconv.Itoa(int(tp.Partition))
}

func parseFolderName(name string) (store.TopicPartition, bool) {
	i := strings.LastIndexByte(name, '-')
	if i <= 0 {
		return store.TopicPartition{}, false
	}
	p, err := strconv.ParseInt(name[i+1:], 10, 32)
	if err != nil || p < 0 {
		return store.TopicPartition{}, false
	}
	return store.TopicPartition{Topic: name[:i], Partition: int32(p)}, true
}

// Open implements store.Store.
func (s *Store) Open(_ context.Context, tp store.TopicPartition, leaderEpoch int32, cfg store.LogConfig) (store.Log, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	l := s.logs[tp]
	if l == nil {
		l = newLog(s, tp)
		if err := l.load(s.clean, noLimit); err != nil {
			return nil, fmt.Errorf("open log %s: %w", folderName(tp), err)
		}
	}
	h, err := l.own(leaderEpoch, cfg)
	if err != nil {
		return nil, fmt.Errorf("open log %s: %w", folderName(tp), err)
	}
	s.logs[tp] = l
	return h, nil
}

// Delete implements store.Store. The folder is renamed first, so that a crash
// cannot leave half a log behind.
func (s *Store) Delete(_ context.Context, tp store.TopicPartition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	if l := s.logs[tp]; l != nil {
		l.shut()
		delete(s.logs, tp)
	}
	s.trash++
	gone := path.Join(s.root, trashPrefix+strconv.Itoa(s.trash))
	err := s.fs.Rename(path.Join(s.root, folderName(tp)), gone)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = s.fs.SyncDir(s.root)
	}
	if err == nil {
		err = s.fs.RemoveAll(gone)
	}
	if err != nil {
		return fmt.Errorf("delete log %s: %w: %w", folderName(tp), store.ErrStorage, err)
	}
	return nil
}

// List implements store.Store.
func (s *Store) List(context.Context) ([]store.TopicPartition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	entries, err := s.fs.ReadDir(s.root)
	if err != nil {
		return nil, fmt.Errorf("list logs: %w: %w", store.ErrStorage, err)
	}
	var out []store.TopicPartition
	seen := map[store.TopicPartition]bool{}
	for _, e := range entries {
		if tp, ok := parseFolderName(e.Name()); ok && e.IsDir() {
			out = append(out, tp)
			seen[tp] = true
		}
	}
	for tp := range s.logs {
		if !seen[tp] {
			out = append(out, tp)
		}
	}
	return out, nil
}

// Close implements store.Store: it makes everything durable and leaves the
// note of a clean stop, unless something failed.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for tp, l := range s.logs {
		if err := l.shutClean(); err != nil {
			errs = append(errs, fmt.Errorf("close log %s: %w", folderName(tp), err))
		}
	}
	s.sync.close()
	s.files.closeAll()
	if len(errs) == 0 {
		errs = append(errs, s.leaveCleanNote())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

func (s *Store) leaveCleanNote() error {
	f, err := s.fs.Create(path.Join(s.root, cleanFile))
	if err != nil {
		return fmt.Errorf("note clean stop: %w", err)
	}
	if err := errors.Join(f.Close(), s.fs.SyncDir(s.root)); err != nil {
		return fmt.Errorf("note clean stop: %w", err)
	}
	return nil
}
