// Package disk is the engine that keeps partition logs in files.
//
// A log is a folder named <topic>-<partition>. It holds segment files named by
// their base offset, with record batches byte for byte as clients sent them
// (only base offset and leader epoch are written), one index file per closed
// segment, snapshots of producer state, log-start if records were deleted, and
// compacted, which says how far compaction came. Folder and files are made by
// the first append, so an empty partition costs nothing.
//
//	data/.lock              held while a broker has the folder
//	data/format             the version of all this
//	data/clean-shutdown     there only if the last stop was clean
//	data/journal/0.journal  small appends to all logs, until these are synced
//	data/orders-0/00000000000000000000.log
//	              00000000000000000000.index
//	              00000000000000004711.snapshot
//	              log-start
//	              compacted
//
// One write at a time goes to a log, at the end of its last (active) segment;
// a write becomes visible to readers only when it is complete. A segment is
// made durable before its successor is created, so only the active segment can
// be torn. docs/internals/storage.md has the formats and the argument for each crash.
package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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
	// noJournal has all logs synced by themselves; journalSize and journaledMost are
	// less in tests, and inline has everything happen in the order of calls.
	noJournal, inline          bool
	journalSize, journaledMost int64
	// indexEach has active segments indexed when they have grown by that much, and again.
	indexEach int64
	// boot names the life of the kernel. While it is the same, what was written to files is
	// there, synced or not. Empty: that of the machine, or if FS is set, it is not known.
	boot string
	// Flushed hears how long it took to make a log durable. It must not block. Nil if
	// no one wants to know.
	Flushed func(took time.Duration)
}

// Store is a folder of logs.
type Store struct {
	fs    vfs.FS
	root  string
	lock  io.Closer
	files *fileCache
	sync  *syncer
	// flushed is told how long flushes took; nil if no one wants to know.
	flushed func(time.Duration)
	// clean says that the last stop was clean, so that active segments need no
	// scan.
	clean bool
	boot  string // empty if it is not known
	// tightened counts what was readable for others when the store was opened.
	tightened  int
	tightenErr error
	// inline has nothing go on that no one waits for, in tests.
	inline bool
	// indexEach is by how much an active segment must grow to be indexed for the first time.
	indexEach int64
	// closers is how many logs are made durable at the same time by Close.
	closers int

	// life is read-locked by whatever works on the folder, so that Close comes
	// before or after it. Logs of different partitions do not wait for one
	// another.
	life   sync.RWMutex
	closed bool

	folder atomic.Uint64 // how many folders of logs were made since the start
	names  struct {
		sync.Mutex
		synced  uint64 // the last of these whose name is durable
		renamed bool   // a log was renamed, and that is not durable yet
	}

	mu    sync.Mutex // guards what follows; never held during I/O
	logs  map[store.TopicPartition]*log
	trash int
}

var _ store.Store = (*Store)(nil)

// Open takes the data folder, creating it if need be. It fails with ErrLocked
// if another process has it.
func Open(root string, opts Options) (*Store, error) {
	if opts.FS == nil {
		opts.FS = vfs.OS()
		opts.boot = vfs.Boot()
	}
	if opts.MaxOpenFiles <= 0 {
		opts.MaxOpenFiles = 1024
	}
	if err := makeRoot(opts.FS, root); err != nil {
		return nil, fmt.Errorf("create data folder: %w", err)
	}
	lock, err := opts.FS.Lock(path.Join(root, lockFile))
	if err != nil {
		return nil, fmt.Errorf("lock data folder %s: %w", root, err)
	}
	s := &Store{
		fs: opts.FS, root: root, lock: lock, closers: 16, indexEach: cmp.Or(opts.indexEach, 8<<20),
		files: newFileCache(opts.MaxOpenFiles), flushed: opts.Flushed, boot: opts.boot,
		logs: map[store.TopicPartition]*log{},
	}
	if s.inline = opts.inline; s.inline {
		s.closers = 1
	}
	s.tighten()
	note, err := s.start()
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	var j *journal
	if !opts.noJournal {
		j = newJournal(opts.FS, root, cmp.Or(opts.journalSize, journalFirst), opts.inline)
	}
	s.sync = newSyncer(j, cmp.Or(opts.journaledMost, journaledMost))
	if note != nil {
		if err := s.goOn(note); err != nil {
			return nil, errors.Join(fmt.Errorf("data folder: %w", err), s.Close())
		}
	}
	return s, nil
}

// makeRoot creates the data folder so that a loss of power cannot take it. Its
// parents are synced even if they were there: an earlier start may have made
// them and died.
func makeRoot(fsys vfs.FS, root string) error {
	if err := fsys.MkdirAll(root); err != nil {
		return err
	}
	for dir := path.Clean(root); dir != path.Dir(dir); {
		dir = path.Dir(dir)
		// A parent that this user may not read is none that it has made.
		if err := fsys.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// start takes note of a clean stop, and takes the note away before anything
// can be written; then it empties the trash. The sync comes between, since a
// process may have died after it renamed a log into the trash: if the power
// failed after that, the log must not come back with files missing.
//
// The note of a quick stop it returns.
func (s *Store) start() (*stopNote, error) {
	if err := s.checkFormat(); err != nil {
		return nil, fmt.Errorf("data folder %s: %w", s.root, err)
	}
	note, err := s.takeNote()
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	err = s.fs.Remove(path.Join(s.root, cleanFile))
	switch {
	case err == nil:
		s.clean, note = true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := s.fs.SyncDir(s.root); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	if err := s.emptyTrash(); err != nil {
		return nil, err
	}
	if note != nil {
		s.clean = true
		return note, nil
	}
	if err := s.replay(); err != nil {
		return nil, fmt.Errorf("replay the journal: %w", err)
	}
	return nil, nil
}

func (s *Store) emptyTrash() error {
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
	return nil
}

// syncFolder makes the name of a log's folder durable, given its number. Those that ask
// meanwhile share the next sync.
func (s *Store) syncFolder(number uint64) error {
	s.names.Lock()
	defer s.names.Unlock()
	if s.names.synced >= number {
		return nil
	}
	return s.syncNames()
}

// nameGone makes it durable that a log has no folder any more. Also if there was none: an
// earlier attempt may have failed in that.
func (s *Store) nameGone(renamed bool) error {
	s.names.Lock()
	defer s.names.Unlock()
	s.names.renamed = s.names.renamed || renamed
	if !s.names.renamed {
		return nil
	}
	return s.syncNames()
}

// syncNames makes the names in the data folder durable. The lock of names is held.
func (s *Store) syncNames() error {
	made := s.folder.Load()
	if err := s.fs.SyncDir(s.root); err != nil {
		return err
	}
	s.names.synced, s.names.renamed = made, false
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
	tp := store.TopicPartition{Topic: name[:i], Partition: int32(p)}
	// Names that the engine would not give, like orders-007, are not its own.
	return tp, err == nil && p >= 0 && folderName(tp) == name
}

// Open implements store.Store.
func (s *Store) Open(_ context.Context, tp store.TopicPartition, leaderEpoch int32, cfg store.LogConfig) (store.Log, error) {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	for {
		l := s.log(tp)
		h, err := l.own(leaderEpoch, cfg)
		if errors.Is(err, store.ErrFailed) {
			if err = l.reopen(leaderEpoch); err == nil {
				continue
			}
		}
		if errors.Is(err, errGone) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open log %s: %w", folderName(tp), err)
		}
		h.catchUp()
		return h, nil
	}
}

// log returns the log of a partition, which may have to be loaded yet.
func (s *Store) log(tp store.TopicPartition) *log {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logs[tp]
	if l == nil {
		l = newLog(s, tp)
		s.logs[tp] = l
	}
	return l
}

// replace puts another log in the place of one that has ended, or none.
func (s *Store) replace(tp store.TopicPartition, l *log) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l == nil {
		delete(s.logs, tp)
		return
	}
	s.logs[tp] = l
}

// Delete implements store.Store. The folder is renamed first, so that a crash
// cannot leave half a log behind.
func (s *Store) Delete(_ context.Context, tp store.TopicPartition) error {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	gone := s.trashName()
	had, err := s.log(tp).remove(gone)
	for errors.Is(err, errGone) {
		had, err = s.log(tp).remove(gone)
	}
	if err == nil && had {
		err = s.fs.RemoveAll(gone)
	}
	if err != nil {
		return fmt.Errorf("delete log %s: %w: %w", folderName(tp), store.ErrStorage, err)
	}
	return nil
}

func (s *Store) trashName() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trash++
	return path.Join(s.root, trashPrefix+strconv.Itoa(s.trash))
}

// List implements store.Store.
func (s *Store) List(context.Context) ([]store.TopicPartition, error) {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	out, err := s.folders()
	if err != nil {
		return nil, fmt.Errorf("list logs: %w: %w", store.ErrStorage, err)
	}
	seen := map[store.TopicPartition]bool{}
	for _, tp := range out {
		seen[tp] = true
	}
	for _, l := range s.loaded() {
		if !seen[l.tp] {
			out = append(out, l.tp)
		}
	}
	return out, nil
}

// folders returns the logs that have a folder.
func (s *Store) folders() ([]store.TopicPartition, error) {
	entries, err := s.fs.ReadDir(s.root)
	if err != nil {
		return nil, err
	}
	var out []store.TopicPartition
	for _, e := range entries {
		if tp, ok := parseFolderName(e.Name()); ok && e.IsDir() {
			out = append(out, tp)
		}
	}
	return out, nil
}

// loaded returns the logs that were opened, in the order of their names.
func (s *Store) loaded() []*log {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*log
	for _, l := range s.logs {
		if l.loaded.Load() {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *log) int { return strings.Compare(a.dir, b.dir) })
	return out
}
