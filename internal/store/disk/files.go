package disk

import (
	"container/list"
	"errors"
	"sync"

	"muster/internal/store"
	"muster/internal/store/vfs"
)

// fileCache keeps segment files open up to a limit, least recently used ones
// go first. A file in use is never closed, so the limit may be passed for a
// while.
type fileCache struct {
	max int

	mu     sync.Mutex
	closed bool
	files  map[*segment]*openFile
	idle   *list.List // of *openFile with no users, least recently used first
}

// openFile is a segment's open file, with its index if the segment is closed.
type openFile struct {
	vfs.File
	seg   *segment
	users int
	gone  bool          // to be closed when its last user is done
	place *list.Element // in idle

	load    sync.Mutex // guards what follows
	entries []indexEntry
	loaded  bool
}

// errGone says that a segment was removed or replaced after the reader had
// looked it up; it looks again.
var errGone = errors.New("segment is gone")

func newFileCache(limit int) *fileCache {
	return &fileCache{max: limit, files: map[*segment]*openFile{}, idle: list.New()}
}

// acquire returns the open file of a segment; release must follow.
func (c *fileCache) acquire(seg *segment, open func(name string) (vfs.File, error)) (*openFile, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, store.ErrClosed
	}
	if seg.gone {
		return nil, errGone
	}
	of := c.files[seg]
	if of == nil {
		c.shrink(c.max - 1)
		f, err := open(seg.path)
		if err != nil {
			return nil, err
		}
		of = &openFile{File: f, seg: seg}
		c.files[seg] = of
	}
	if of.place != nil {
		c.idle.Remove(of.place)
		of.place = nil
	}
	of.users++
	return of, nil
}

func (c *fileCache) release(of *openFile) {
	c.mu.Lock()
	defer c.mu.Unlock()
	of.users--
	if of.users > 0 {
		return
	}
	if of.gone {
		closeQuietly(of.File)
		return
	}
	of.place = c.idle.PushBack(of)
	c.shrink(c.max)
}

// drop forgets a segment's file, because the segment is gone. Readers of
// it may finish.
func (c *fileCache) drop(seg *segment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seg.gone = true
	if of := c.files[seg]; of != nil {
		c.forget(of)
	}
}

// move gives a segment's file another name while no one can open it.
func (c *fileCache) move(seg *segment, rename func(from, to string) error, to string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := rename(seg.path, to); err != nil {
		return err
	}
	seg.path = to
	return nil
}

func (c *fileCache) shrink(limit int) {
	for len(c.files) > limit && c.idle.Len() > 0 {
		c.forget(c.idle.Front().Value.(*openFile))
	}
}

func (c *fileCache) forget(of *openFile) {
	delete(c.files, of.seg)
	if of.place != nil {
		c.idle.Remove(of.place)
		of.place = nil
	}
	if of.users > 0 {
		of.gone = true
		return
	}
	closeQuietly(of.File)
}

// close closes every file, those in use when they are no longer.
func (c *fileCache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, of := range c.files {
		c.forget(of)
	}
}

// closeQuietly closes a file whose content does not depend on the outcome:
// what had to be durable was synced before.
func closeQuietly(f vfs.File) { _ = f.Close() }
