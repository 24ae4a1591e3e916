package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"sync"
	"time"

	"muster/internal/store"
)

const (
	// stopFile is what a quick stop leaves.
	stopFile = "stopped"
	// stopPatience is how long a quick stop waits for syncs that someone waits for.
	stopPatience = 200 * time.Millisecond
	// stopIndexAfter is by how much a segment must have grown since it was last indexed for a
	// quick stop to index it.
	stopIndexAfter = 1 << 20
)

// stopNote says how a quick stop left the store, so that the next start goes on from
// there: the journal is used on, and logs are synced when it wants them to be. That is so
// only while the kernel lives that has what was written, so the note has the boot's id.
type stopNote struct {
	Boot  string     `json:"boot"`
	Files []leftFile `json:"files"` // of the journal, by number
	Full  []int      `json:"full"`  // numbers of the files that are full, in the order of use
	Free  []int      `json:"free"`
	Now   int        `json:"now"` // the file in use, -1 if none
	Uses  uint64     `json:"uses"`
	Logs  []leftLog  `json:"logs"`
}

// leftFile is a file of the journal.
type leftFile struct {
	Size   int64  `json:"size"`
	Use    uint64 `json:"use"`
	At     int64  `json:"at"`
	Rounds uint32 `json:"rounds"`
	Spoilt bool   `json:"spoilt,omitempty"`
}

// leftLog is a log, its active segment, and how much of that is durable.
type leftLog struct {
	Name      string `json:"name"`
	Base      int64  `json:"base"`
	Size      int64  `json:"size"`
	Durable   int64  `json:"durable"`
	End       int64  `json:"end"` // the offset that Durable is of
	Synced    int64  `json:"synced"`
	Loose     bool   `json:"loose,omitempty"`
	Journaled uint64 `json:"journaled,omitempty"`
}

// stopQuickly ends the logs without a sync of what a crash would not take either: what was
// acknowledged is durable, if only in the journal. Whoever waits for a sync is answered
// first, if that does not take long.
func (s *Store) stopQuickly(logs []*log) error {
	eachOf(logs, s.closers, (*log).refuse)
	s.sync.drain(stopPatience)
	var mu sync.Mutex
	var errs []error
	left := make([]leftLog, 0, len(logs))
	eachOf(logs, s.closers, func(l *log) {
		note, err := l.shutQuickly()
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, fmt.Errorf("close log %s: %w", l.name, err))
		}
		if note != nil {
			left = append(left, *note)
		}
	})
	s.sync.close()
	s.files.close()
	note := stopNote{Boot: s.boot, Now: -1}
	if j := s.sync.journal; j != nil {
		j.leave(&note)
		j.closeFiles()
	}
	if known, err := s.allKnown(logs); len(errs) > 0 || !known {
		return errors.Join(append(errs, err)...) // The next start is one after a crash.
	}
	sort.Slice(left, func(i, j int) bool { return left[i].Name < left[j].Name })
	note.Logs = left
	b, err := json.Marshal(note)
	if err == nil {
		err = writeFile(s.fs, path.Join(s.root, stopFile), b, false)
	}
	if err != nil {
		return fmt.Errorf("note how the store was left: %w", err)
	}
	return nil
}

// refuse has the log take no more changes.
func (l *log) refuse() {
	l.haltMaintenance()
	defer l.resumeMaintenance()
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	l.shutDown = true
}

// shutQuickly ends the log as it is, and says how that is; nil if it has no records. One
// that has failed is cut back, and one that was cut back is synced, lest what was refused come
// back with the power.
func (l *log) shutQuickly() (*leftLog, error) {
	defer l.failFlushes(store.ErrClosed)
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	defer l.endReads(true)
	if len(l.segments) == 0 {
		return nil, nil
	}
	if l.failed.Load() || l.mustRoll || l.wasCut {
		return nil, l.shut()
	}
	l.syncMu.Lock()
	defer l.syncMu.Unlock()
	l.roundMu.Lock()
	defer l.roundMu.Unlock()
	if s := l.toIndex; s.seg != nil && s.sum.size >= l.indexed+stopIndexAfter {
		l.writeIndex(s.seg, encodeIndex(s.sum, s.index))
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	return &leftLog{
		Name: l.name, Base: l.active().base, Size: l.active().sum.size,
		Durable: l.durableSize, End: l.durableEnd, Synced: l.syncedSize, Loose: l.unsyncedNames, Journaled: l.journaled,
	}, nil
}

// leave notes how the journal is. Nothing is written to it any more.
func (j *journal) leave(n *stopNote) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n.Uses = j.uses
	n.Files = make([]leftFile, j.made)
	note := func(f *journalFile) int {
		n.Files[f.number] = leftFile{Size: f.size, Use: f.use, At: f.at, Rounds: f.rounds, Spoilt: f.failed}
		return f.number
	}
	for _, f := range j.full {
		n.Full = append(n.Full, note(f))
	}
	for _, f := range j.free {
		n.Free = append(n.Free, note(f))
	}
	if j.current != nil {
		n.Now = note(j.current)
	}
}

// takeNote returns what a quick stop left, nil if the last stop was none, or the store or
// the kernel is not the same any more. The note is taken away: it holds once.
func (s *Store) takeNote() (*stopNote, error) {
	name := path.Join(s.root, stopFile)
	b, err := readFile(s.fs, name, -1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := s.fs.Remove(name); err != nil {
		return nil, err
	}
	var n stopNote
	if json.Unmarshal(b, &n) != nil || s.boot == "" || n.Boot != s.boot || !s.fits(&n) {
		return nil, nil
	}
	return &n, nil
}

// fits says whether files are as the note has them. They are not if another version of the
// broker has used the folder since, or the medium was taken away.
func (s *Store) fits(n *stopNote) bool {
	if _, err := s.fs.Stat(path.Join(s.root, replayingDir)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	numbers := append(slices.Concat(n.Full, n.Free), n.Now)
	slices.Sort(numbers)
	if n.Now < 0 {
		numbers = numbers[1:]
	}
	for i, number := range numbers {
		if i != number {
			return false
		}
	}
	if len(numbers) != len(n.Files) {
		return false
	}
	for i, f := range n.Files {
		if info, err := s.fs.Stat(journalPath(path.Join(s.root, journalDir), i)); err != nil || info.Size() != f.Size {
			return false
		}
	}
	var mu sync.Mutex
	same := true
	eachOf(n.Logs, s.closers, func(l leftLog) {
		dir := path.Join(s.root, l.Name)
		base, _, err := s.lastSegment(dir)
		if err == nil && base == l.Base {
			if info, err := s.fs.Stat(segmentPath(dir, base)); err == nil && info.Size() == l.Size {
				return
			}
		}
		mu.Lock()
		defer mu.Unlock()
		same = false
	})
	return same
}

// goOn has the store go on from where a quick stop left it.
func (s *Store) goOn(n *stopNote) error {
	var journaled []*log
	for i := range n.Logs {
		tp, ok := parseFolderName(n.Logs[i].Name)
		if !ok {
			continue
		}
		l := s.log(tp)
		l.left, l.journaled = &n.Logs[i], n.Logs[i].Journaled
		if l.journaled > 0 {
			journaled = append(journaled, l)
		}
	}
	if len(n.Files) == 0 {
		return nil
	}
	if s.sync.journal == nil {
		return errors.New("it was left with a journal, and none is to be used")
	}
	return s.sync.journal.goOn(n, journaled)
}

// goOn takes the files of the journal as they were left. Any of the logs may have frames in
// any of them.
func (j *journal) goOn(n *stopNote, logs []*log) error {
	files := make([]*journalFile, len(n.Files))
	for i, f := range n.Files {
		opened, err := j.fs.Open(journalPath(j.dir, i))
		if err != nil {
			return err
		}
		files[i] = &journalFile{File: opened, number: i, size: f.Size, use: f.Use, at: f.At, rounds: f.Rounds, failed: f.Spoilt, logs: slices.Clone(logs)}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, i := range n.Full {
		j.full = append(j.full, files[i])
	}
	for _, i := range n.Free {
		files[i].logs = nil
		j.free = append(j.free, files[i])
	}
	if n.Now >= 0 {
		j.current = files[n.Now]
	}
	j.made, j.uses = len(files), n.Uses
	j.on.Store(true)
	return nil
}

// loadLeft loads the active segment of a log that a quick stop left. What was written is
// there; if it is not, only a start as after a crash can help, and the next one is.
func (l *log) loadLeft(seg *segment, size int64) error {
	l.dirty = true
	f, err := l.acquire(seg)
	if err != nil {
		return err
	}
	defer l.release(f)
	if err := l.salvageFrom(seg, f, size); err != nil {
		return err
	}
	if seg.sum.size != l.left.Size {
		return fmt.Errorf("%w: it was left with %d good bytes, and has %d", store.ErrCorrupt, l.left.Size, seg.sum.size)
	}
	return nil
}

// resumeLeft makes the log as durable as it was left, not more. Only the name of its folder
// is: the start has synced the data folder.
func (l *log) resumeLeft() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.durableSize, l.durableEnd, l.syncedSize, l.unsyncedNames = l.left.Durable, l.left.End, l.left.Synced, l.left.Loose
}

// catchUp begins to make durable what the log had that was not when a quick stop left it.
// The process before would have.
func (h *handle) catchUp() {
	h.mu.RLock()
	behind := h.durableEnd < h.logEnd
	h.mu.RUnlock()
	if h.store.boot == "" || !behind {
		return
	}
	done := make(chan error, 1)
	h.Flush(func(err error) { done <- err })
	if h.store.inline {
		<-done
	}
}

// know loads a log that was not opened since a quick stop left it.
func (l *log) know() error {
	if l.loaded.Load() {
		return nil
	}
	l.appendMu.Lock()
	defer l.appendMu.Unlock()
	if l.loaded.Load() || l.shutDown || l.replaced {
		return nil
	}
	if err := l.load(l.store.clean, noLimit); err != nil {
		return err
	}
	l.loaded.Store(true)
	return nil
}
