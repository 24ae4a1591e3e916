package vfs

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"syscall"
)

// inode is a file without its name: what programs read, what is on disk, and
// the edits that were made since the last sync.
type inode struct {
	data    []byte
	durable []byte
	edits   []edit
	opens   int  // handles
	removed bool // no name is left
}

// edit is a write or a truncate.
type edit struct {
	off      int64 // of a write
	data     []byte
	truncate bool
	size     int64 // of a truncate
	// lost marks data that a failed sync gave up. The kernel then regards the
	// pages as clean: they can be read, but no later sync writes them.
	lost bool
}

func (e edit) apply(content []byte) []byte {
	if e.truncate {
		return resize(content, e.size)
	}
	return overwrite(content, e.off, e.data)
}

// end is the size that a write asks for at least.
func (e edit) end() int64 { return e.off + int64(len(e.data)) }

func overwrite(content []byte, off int64, p []byte) []byte {
	if len(p) == 0 {
		return content
	}
	content = extend(content, off+int64(len(p)))
	copy(content[off:], p)
	return content
}

func extend(content []byte, size int64) []byte {
	return resize(content, max(size, int64(len(content))))
}

// resize fills up with zeros.
func resize(content []byte, size int64) []byte {
	old := len(content)
	if grow := int(size) - old; grow > 0 {
		content = slices.Grow(content, grow)[:size]
		clear(content[old:])
	}
	return content[:size]
}

// sync makes the edits durable, but for the data that was lost. The size is
// not lost with it, because the journal writes that: a hole remains.
func (n *inode) sync() {
	for _, e := range n.edits {
		if e.lost {
			n.durable = extend(n.durable, e.end())
			continue
		}
		n.durable = e.apply(n.durable)
	}
	n.edits = nil
}

func (n *inode) syncFailed() {
	for i := range n.edits {
		n.edits[i].lost = !n.edits[i].truncate
	}
}

type memFile struct {
	m      *Mem
	n      *inode
	name   string
	closed bool // guarded by m.mu
}

func (m *Mem) handle(n *inode, name string) File {
	n.opens++
	return &memFile{m: m, n: n, name: name}
}

// unlink is for a name that is removed or replaced.
func (m *Mem) unlink(at ref) {
	if at.file == nil {
		return
	}
	at.file.removed = true
	m.free(at.file)
}

func (m *Mem) free(n *inode) {
	if n.removed && n.opens == 0 {
		m.used -= int64(len(n.data))
	}
}

func (f *memFile) begin(kind OpKind, bytes int) error {
	f.m.mu.Lock()
	closed := f.closed
	f.m.mu.Unlock()
	if closed {
		return fs.ErrClosed
	}
	return f.m.begin(Op{Kind: kind, Name: f.name, Bytes: bytes})
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, pathError(OpRead, f.name, syscall.EINVAL)
	}
	if err := f.begin(OpRead, len(p)); err != nil {
		return 0, pathError(OpRead, f.name, err)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	n := 0
	if off < int64(len(f.n.data)) {
		n = copy(p, f.n.data[off:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, pathError(OpWrite, f.name, syscall.EINVAL)
	}
	if len(p) == 0 {
		return 0, nil
	}
	allowed := len(p)
	err := f.begin(OpWrite, len(p))
	if err != nil {
		var partial PartialWrite
		if !errors.As(err, &partial) {
			return 0, pathError(OpWrite, f.name, err)
		}
		allowed = min(max(partial.N, 0), len(p))
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	n := f.m.fit(f.n, off, allowed)
	if n < allowed {
		err = syscall.ENOSPC
	}
	if n > 0 {
		f.edit(edit{off: off, data: slices.Clone(p[:n])})
	}
	if err != nil {
		return n, pathError(OpWrite, f.name, err)
	}
	return n, nil
}

// fit says how much of a write of size bytes there is room for.
func (m *Mem) fit(n *inode, off int64, size int) int {
	if m.capacity < 0 || off+int64(size) <= int64(len(n.data)) {
		return size
	}
	last := int64(len(n.data)) + max(m.capacity-m.used, 0)
	return int(min(int64(size), max(last-off, 0)))
}

func (f *memFile) Truncate(size int64) error {
	if size < 0 {
		return pathError(OpTruncate, f.name, syscall.EINVAL)
	}
	if err := f.begin(OpTruncate, int(size)); err != nil {
		return pathError(OpTruncate, f.name, err)
	}
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if grow := int(size) - len(f.n.data); grow > 0 && f.m.fit(f.n, int64(len(f.n.data)), grow) < grow {
		return pathError(OpTruncate, f.name, syscall.ENOSPC)
	}
	f.edit(edit{truncate: true, size: size})
	return nil
}

func (f *memFile) edit(e edit) {
	before := len(f.n.data)
	f.n.data = e.apply(f.n.data)
	f.n.edits = append(f.n.edits, e)
	f.m.used += int64(len(f.n.data) - before)
}

// Datasync that is made to fail gives the edits up for good, as Linux does:
// a second try succeeds and makes nothing of the first durable.
func (f *memFile) Datasync() error {
	err := f.begin(OpDatasync, 0)
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case err == nil:
		f.n.sync()
		return nil
	case !errors.Is(err, ErrStopped) && !errors.Is(err, fs.ErrClosed):
		f.n.syncFailed()
	}
	return pathError(OpDatasync, f.name, err)
}

func (f *memFile) Size() (int64, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	switch {
	case f.closed:
		return 0, pathError(OpRead, f.name, fs.ErrClosed)
	case f.m.stopped():
		return 0, pathError(OpRead, f.name, ErrStopped)
	}
	return int64(len(f.n.data)), nil
}

func (f *memFile) Fd() (uintptr, bool) { return 0, false }

// Close works in a stopped world too, so that tests can clean up.
func (f *memFile) Close() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if f.closed {
		return pathError(OpRead, f.name, fs.ErrClosed)
	}
	f.closed = true
	f.n.opens--
	f.m.free(f.n)
	return nil
}
