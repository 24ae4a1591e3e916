package rig

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// BeChild ends the program after it was one of the processes that are measured, if its first
// argument says that it is one.
func BeChild() {
	if len(os.Args) < 2 || !strings.HasPrefix(os.Args[1], "_") {
		return
	}
	if err := child(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child runs this program as one of the processes that are measured. They end
// at SIGTERM, or when their parent is gone.
func child(name string, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("ready") // For the signal, if for nothing else.
	if name == "_broker" {
		return brokerChild(ctx, stop, args)
	}
	if name == "_hog" {
		size, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return err
		}
		go stopWithParent(stop)
		time.AfterFunc(hogTime, stop)
		return Hog(args[0], size, ctx.Done())
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	var handle func(net.Conn) error
	switch name {
	case "_sink":
		handle, err = sink(args[1], args[2])
	case "_source":
		handle = func(c net.Conn) error { return source(c, args[1]) }
	case "_echo":
		handle = echo
	case "_open":
		handle, err = echo, openAll(args[1])
	default:
		handle, err = groupsBare(name, args)
	}
	if err != nil {
		return err
	}
	go accept(l, handle)
	go stopWithParent(stop)
	<-ctx.Done()
	return nil
}

// stopWithParent waits until the parent, which holds the other end of standard input,
// is gone.
func stopWithParent(stop func()) {
	defer stop()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func accept(l net.Listener, handle func(net.Conn) error) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer c.Close()
			if err := handle(c); err != nil && !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
}

// sinkFile is a file that batches are appended to.
type sinkFile struct {
	*os.File
	mu      sync.Mutex
	size    int64
	waiting []*sinkRequest
	wake    chan struct{}
}

// sinkRequest is a request that waits for its files to be durable.
type sinkRequest struct {
	conn net.Conn
	id   []byte
	left atomic.Int32
}

// sink stores what comes in: it reads a request, computes the checksum of each
// batch, writes the batches to their files, and answers. To be like acks=all it
// syncs the files before it answers, four at a time, and a sync serves all
// requests that came while the one before it ran. To be like acks=1
// it never syncs; the broker does, once a second, and that counts.
func sink(folder, flush string) (func(net.Conn) error, error) {
	files := make([]*sinkFile, Partitions)
	for i := range files {
		f, err := os.Create(filepath.Join(folder, fmt.Sprintf("%d.log", i)))
		if err != nil {
			return nil, err
		}
		files[i] = &sinkFile{File: f, wake: make(chan struct{}, 1)}
		if flush == flushFirst {
			go files[i].syncWaiting()
		}
	}
	l := newLoad(topicFor(flush), -1)
	return func(c net.Conn) error { return receive(c, l, files, flush) }, nil
}

func receive(c net.Conn, l *Load, files []*sinkFile, flush string) error {
	frame := make([]byte, len(l.Frame))
	for {
		if _, err := io.ReadFull(c, frame); err != nil {
			return err
		}
		body := frame[4:]
		for i, f := range files {
			batch := body[l.positions[i]:][:l.BatchSize]
			if crc32.Checksum(batch[21:], Castagnoli) != binary.BigEndian.Uint32(batch[17:]) {
				return fmt.Errorf("batch %d has a wrong checksum", i)
			}
			if err := f.append(batch); err != nil {
				return err
			}
		}
		r := &sinkRequest{conn: c, id: binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(frame[8:]))}
		if flush != flushFirst {
			if err := r.answer(); err != nil {
				return err
			}
			continue
		}
		r.left.Store(int32(len(files)))
		for _, f := range files {
			f.wait(r)
		}
	}
}

func (r *sinkRequest) answer() error {
	_, err := r.conn.Write(append([]byte{0, 0, 0, 4}, r.id...))
	return err
}

func (f *sinkFile) append(batch []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.WriteAt(batch, f.size)
	f.size += int64(n)
	return err
}

func (f *sinkFile) wait(r *sinkRequest) {
	f.mu.Lock()
	f.waiting = append(f.waiting, r)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// syncs bounds how many files are synced at the same time to the broker's own
// number. Without it the bare program makes up to 40 % more syncs, and would
// look dearer than it need be.
var syncs = make(chan struct{}, 4)

func (f *sinkFile) syncWaiting() {
	for range f.wake {
		f.syncOnce()
	}
}

func (f *sinkFile) syncOnce() {
	syncs <- struct{}{}
	defer func() { <-syncs }()
	f.mu.Lock()
	waiting := f.waiting
	f.waiting = nil
	f.mu.Unlock()
	if len(waiting) == 0 {
		return
	}
	if err := Datasync(f.File); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, r := range waiting {
		if r.left.Add(-1) == 0 {
			_ = r.answer() // The reader notices.
		}
	}
}

// source answers each request with the next piece of every file, sent from the
// file by sendfile, and starts over at the end.
func source(c net.Conn, folder string) error {
	files, size, err := openSource(folder)
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	piece := int64(pieceSize(newLoad("", -1).BatchSize))
	var buf []byte
	for pos := int64(0); ; {
		id, body, err := ReadFrame(c, buf)
		if err != nil {
			return err
		}
		buf = body
		n := min(piece, size-pos)
		head := binary.BigEndian.AppendUint32(nil, uint32(4+Partitions*n))
		if _, err := c.Write(binary.BigEndian.AppendUint32(head, uint32(id))); err != nil {
			return err
		}
		for _, f := range files {
			if _, err := f.Seek(pos, io.SeekStart); err != nil {
				return err
			}
			if _, err := io.CopyN(c, f, n); err != nil { // which is sendfile
				return err
			}
		}
		if pos += n; pos == size {
			pos = 0
		}
	}
}

func openSource(folder string) (files []*os.File, size int64, err error) {
	for i := range Partitions {
		f, err := os.Open(filepath.Join(folder, fmt.Sprintf("%d.log", i)))
		if err != nil {
			return files, 0, err
		}
		files = append(files, f)
		info, err := f.Stat()
		if err != nil {
			return files, 0, err
		}
		size = info.Size()
	}
	return files, size, nil
}

// echo answers each byte with itself. Its buffer is as large as the one that
// the broker keeps for a connection.
func echo(c net.Conn) error {
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return err
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return err
		}
	}
}

// openAll looks into the first file of every folder below folder, which is the
// least that a program can do to know what it has.
func openAll(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	buf := make([]byte, 4096)
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		sub := filepath.Join(folder, e.Name())
		files, err := os.ReadDir(sub)
		if err != nil || len(files) == 0 {
			return errors.Join(err, fmt.Errorf("nothing in %s", sub))
		}
		f, err := os.Open(filepath.Join(sub, files[0].Name()))
		if err != nil {
			return err
		}
		_, err = f.ReadAt(buf, 0)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// hogTime is how long the other program goes on at most.
const hogTime = 5 * time.Minute

// Hog writes a file of a size and reads it, again and again until it is to stop. The
// file has no name from the beginning, so nothing is left of it.
func Hog(name string, size int64, stopped <-chan struct{}) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // What is in it is of no use.
	if err := os.Remove(name); err != nil {
		return err
	}
	piece := make([]byte, 1<<20)
	for i := range piece {
		piece[i] = byte(i * 7)
	}
	for {
		for _, move := range []func([]byte, int64) (int, error){f.WriteAt, f.ReadAt} {
			for at := int64(0); at < size; at += int64(len(piece)) {
				select {
				case <-stopped:
					return nil
				default:
				}
				if _, err := move(piece, at); err != nil && !errors.Is(err, io.EOF) {
					return err
				}
			}
		}
	}
}
