package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
)

// Lock takes a lock that ends with its Close, or with a crash.
func (m *Mem) Lock(name string) (io.Closer, error) {
	key := rooted(name)
	m.mu.Lock()
	held := m.locks[key]
	m.locks[key] = true
	m.mu.Unlock()
	if held {
		return nil, fmt.Errorf("lock %s: %w", name, ErrLocked)
	}
	lock := &memLock{m: m, key: key}
	f, err := m.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = m.Create(name)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return lock, f.Close()
}

type memLock struct {
	m    *Mem
	key  string
	once sync.Once
}

func (l *memLock) Close() error {
	l.once.Do(func() {
		l.m.mu.Lock()
		defer l.m.mu.Unlock()
		delete(l.m.locks, l.key)
	})
	return nil
}
