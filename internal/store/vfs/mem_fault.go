package vfs

import (
	"errors"
	"fmt"
	"io"
)

// ErrStopped is the error of every operation in a stopped world.
var ErrStopped = errors.New("file system stopped")

// OpKind is a kind of operation.
type OpKind int

// The kinds of operation. OpRead is ReadAt, ReadDir and Stat.
const (
	OpCreate OpKind = iota
	OpWrite
	OpTruncate
	OpDatasync
	OpRename
	OpRemove
	OpMkdir
	OpSyncDir
	OpRead
	OpOpen
)

var opNames = [...]string{
	"create", "write", "truncate", "datasync", "rename", "remove", "mkdir", "syncdir", "read", "open",
}

func (k OpKind) String() string { return opNames[k] }

// ReadOnly tells OpRead and OpOpen from the operations that Ops counts.
func (k OpKind) ReadOnly() bool { return k == OpRead || k == OpOpen }

// Op is an operation that is about to happen.
type Op struct {
	Kind    OpKind
	Name    string // as the caller spelled it; of a file, the name it was opened by
	NewName string // of a rename
	Seq     int    // how many operations that are not ReadOnly began before this one
	Bytes   int    // the length of a read or write, the new size of a truncate
}

// PartialWrite is an error for a hook to return: the write writes N bytes and
// then fails with Err.
type PartialWrite struct {
	N   int
	Err error
}

func (p PartialWrite) Error() string { return fmt.Sprintf("after %d bytes: %v", p.N, p.Unwrap()) }

// Unwrap returns Err, or io.ErrShortWrite if there is none.
func (p PartialWrite) Unwrap() error {
	if p.Err == nil {
		return io.ErrShortWrite
	}
	return p.Err
}

// SetHook has hook called before every operation, reads included; nil ends
// that. If it returns an error then the operation fails with it and does
// nothing, save for PartialWrite, and for Datasync, whose failure is final for
// the writes it should have made durable.
//
// No lock is held during the call: the hook may use the file system, to take a
// Crash of the state before the operation for instance, and is called by
// several goroutines at once if they use the file system at once.
func (m *Mem) SetHook(hook func(op Op) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = hook
}

// Ops counts the changes and syncs that began, failed ones included, which are
// the points where a crash can make a difference.
func (m *Mem) Ops() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ops
}

// StopAfter stops the world once Ops is n: every operation but Close then
// fails with ErrStopped and has no effect. A negative n lets it go on.
func (m *Mem) StopAfter(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stopAt = n
}

// SetCapacity limits the sum of the sizes of all files: a write beyond it
// writes what fits and fails with ENOSPC. A removed file counts until its last
// handle is closed. A negative capacity is no limit.
func (m *Mem) SetCapacity(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.capacity = bytes
}

func (m *Mem) stopped() bool { return m.stopAt >= 0 && m.ops >= m.stopAt }

// begin admits an operation. It must be called without the lock.
func (m *Mem) begin(op Op) error {
	m.mu.Lock()
	if m.stopped() {
		m.mu.Unlock()
		return ErrStopped
	}
	op.Seq = m.ops
	if !op.Kind.ReadOnly() {
		m.ops++
	}
	hook := m.hook
	m.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(op)
}
