package disk

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"muster/internal/store/vfs"
)

// replayingDir is the name of the journal's folder from when a replay begins. If it is
// there at a start, a replay has failed, maybe in a sync: what the kernel shows of the
// segments may not be on the disk then, so that all of them is written again.
const replayingDir = "replaying"

// replay writes what the journal holds to the segments it belongs to, durably, and ends
// the journal. That happens before any log is opened.
func (s *Store) replay() error {
	// After a clean stop there is no journal. If there is, a broker of before there were
	// journals has used the folder since.
	if s.clean {
		return errors.Join(s.endJournal(replayingDir), s.endJournal(journalDir))
	}
	dir, again := path.Join(s.root, replayingDir), true
	entries, err := s.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.fs.Rename(path.Join(s.root, journalDir), dir); err != nil {
			return ifThere(err)
		}
		again = false
		entries, err = s.fs.ReadDir(dir)
	}
	if err != nil {
		return err
	}
	if err := s.replayFiles(dir, entries, again); err != nil {
		return err
	}
	return s.endJournal(replayingDir)
}

// endJournal takes a folder of the journal away, all at once, when no log needs it.
func (s *Store) endJournal(name string) error {
	gone := path.Join(s.root, trashPrefix+journalDir)
	if err := s.fs.Rename(path.Join(s.root, name), gone); err != nil {
		return ifThere(err)
	}
	if err := s.fs.SyncDir(s.root); err != nil {
		return err
	}
	return s.fs.RemoveAll(gone)
}

// ifThere takes it for no error that a thing is not there.
func ifThere(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (s *Store) replayFiles(dir string, entries []fs.DirEntry, again bool) error {
	files, err := s.openJournal(dir, entries)
	defer func() {
		for _, f := range files {
			closeQuietly(f.File)
		}
	}()
	if err != nil {
		return err
	}
	found, err := findFrames(files)
	if err != nil || len(found) == 0 {
		return err
	}
	names := slices.Sorted(maps.Keys(found))
	errs := make(chan error, len(names))
	eachOf(names, s.closers, func(name string) {
		if err := s.replayLog(name, found[name], again); err != nil {
			errs <- fmt.Errorf("log %s: %w", name, err)
		}
	})
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	return s.fs.SyncDir(s.root)
}

// openJournal opens the files of the journal, in the order of their use.
func (s *Store) openJournal(dir string, entries []fs.DirEntry) (files []*journalFile, err error) {
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), journalSuffix) {
			continue
		}
		f, err := s.fs.Open(path.Join(dir, e.Name()))
		if err != nil {
			return files, err
		}
		jf := &journalFile{File: f}
		files = append(files, jf)
		if jf.size, err = f.Size(); err != nil {
			return files, err
		}
		head := make([]byte, min(jf.size, roundHeadSize))
		if _, err := f.ReadAt(head, 0); err != nil {
			return files, err
		}
		if h, _, err := decodeRoundHead(head); err == nil {
			jf.use = h.use
		}
	}
	slices.SortFunc(files, func(a, b *journalFile) int { return cmp.Compare(a.use, b.use) })
	return files, nil
}

// found is where in the journal bytes of a segment are.
type found struct {
	file          *journalFile
	at            int64
	size          int
	base, pos     int64
	unsyncedNames bool
}

// findFrames returns the frames of each log that are not void, in order.
func findFrames(files []*journalFile) (map[string][]found, error) {
	out := map[string][]found{}
	for _, file := range files {
		err := eachRound(file, func(at int64, frames []frame) {
			for _, f := range frames {
				switch {
				case f.kind == voidFrame:
					delete(out, f.name)
				case f.kind == dataFrame, f.kind == unsyncedNamesFrame:
					out[f.name] = append(out[f.name], found{file, at + int64(f.at), len(f.data), f.base, f.pos, f.kind == unsyncedNamesFrame})
				}
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// eachRound calls fn with the rounds of a file's last use.
func eachRound(file *journalFile, fn func(at int64, frames []frame)) error {
	head := make([]byte, roundHeadSize)
	var buf []byte
	for at, number := int64(0), uint32(0); at+roundHeadSize <= file.size; number++ {
		if _, err := file.ReadAt(head, at); err != nil {
			return err
		}
		h, size, err := decodeRoundHead(head)
		if err != nil || h.use != file.use || h.number != number || size > file.size-at {
			return nil
		}
		buf = extend(buf[:0], int(size))
		if _, err := file.ReadAt(buf, at); err != nil {
			return err
		}
		frames, err := decodeRound(buf)
		if err != nil {
			return nil // Torn: no one was told that it is durable.
		}
		fn(at, frames)
		at += wholeBlocks(size)
	}
	return nil
}

// replayLog writes frames to a log's active segment. Those of earlier segments are not
// needed: a segment is durable before the next is made. The file is made if its name was
// not durable yet. If it was, and is missing, someone has taken it away: the log was
// being deleted.
func (s *Store) replayLog(name string, frames []found, again bool) error {
	if _, ok := parseFolderName(name); !ok {
		return nil
	}
	dir := path.Join(s.root, name)
	base, exists, err := s.lastSegment(dir)
	if err != nil {
		return err
	}
	for _, f := range frames {
		if f.base > base {
			base, exists = f.base, false
		}
	}
	frames = slices.DeleteFunc(frames, func(f found) bool { return f.base != base })
	synced := func(f found) bool { return !f.unsyncedNames }
	if len(frames) == 0 || !exists && slices.ContainsFunc(frames, synced) {
		return nil
	}
	f, err := s.openSegment(dir, base, exists)
	if err != nil {
		return err
	}
	err = writeFrames(f, frames, again)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return s.fs.SyncDir(dir)
}

// openSegment opens a segment's file, or makes it.
func (s *Store) openSegment(dir string, base int64, exists bool) (vfs.File, error) {
	if exists {
		return s.fs.Open(segmentPath(dir, base))
	}
	if err := s.fs.MkdirAll(dir); err != nil {
		return nil, err
	}
	return createFile(s.fs, segmentPath(dir, base))
}

// lastSegment returns the base of the last segment in a folder, and whether there is one.
func (s *Store) lastSegment(dir string) (base int64, exists bool, err error) {
	entries, err := s.fs.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	for _, e := range entries {
		if b, ok := parseOffsetName(e.Name(), logSuffix); ok {
			base, exists = max(base, b), true
		}
	}
	return base, exists, err
}

func writeFrames(f vfs.File, frames []found, again bool) error {
	var buf []byte
	for _, x := range frames {
		buf = extend(buf[:0], x.size)
		if _, err := x.file.ReadAt(buf, x.at); err != nil {
			return err
		}
		if _, err := f.WriteAt(buf, x.pos); err != nil {
			return err
		}
	}
	if again {
		size, err := f.Size()
		if err != nil {
			return err
		}
		if err := writeAgain(f, size); err != nil {
			return err
		}
	}
	return f.Datasync()
}

// restore writes what the journal holds of a log to its active segment again, after a
// sync of that has failed. syncMu and roundMu of the log are held.
func (j *journal) restore(l *log) error {
	j.round.Lock()
	defer j.round.Unlock()
	if len(l.segments) == 0 || !j.holds(l) {
		return nil
	}
	j.mu.Lock()
	files := slices.Clone(j.full)
	if j.current != nil {
		files = append(files, j.current)
	}
	j.mu.Unlock()
	frames, err := findFrames(files)
	if err != nil {
		return err
	}
	seg := l.active()
	f, err := l.acquire(seg)
	if errors.Is(err, errGone) {
		return nil // The log was deleted, and the journal does not know it yet.
	}
	if err != nil {
		return err
	}
	defer l.release(f)
	for _, x := range frames[l.name] {
		if x.base != seg.base {
			continue
		}
		b := make([]byte, x.size)
		if _, err := x.file.ReadAt(b, x.at); err != nil {
			return err
		}
		if _, err := f.WriteAt(b, x.pos); err != nil {
			return err
		}
	}
	return nil
}
