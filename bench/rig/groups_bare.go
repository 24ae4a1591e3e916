package rig

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"strconv"
	"sync"
)

// groupsBare returns what the bare programs for groups do with a connection.
//
//	_answer ADDRESS SIZE              answers each request
//	_meet   ADDRESS SIZE CONNECTIONS  answers one request of each connection, and
//	                                  the next two when all have sent theirs
//	_keep   ADDRESS SIZE FILE RECORD  answers when a record is durable
//
// An answer is the correlation id followed by SIZE zeros, so that the same bytes
// go over the connection as to and from the broker.
func groupsBare(name string, args []string) (func(net.Conn) error, error) {
	size, err := strconv.Atoi(args[1])
	switch {
	case err != nil:
		return nil, err
	case name == "_answer":
		return func(c net.Conn) error {
			return eachRequest(c, func(id []byte) error { return answerZeros(c, id, size) })
		}, nil
	case name == "_meet":
		n, err := strconv.Atoi(args[2])
		m := &meeting{size: n, all: make(chan struct{})}
		return func(c net.Conn) error { return m.attend(c, size) }, err
	case name == "_keep":
		k := &keeper{size: size, wake: make(chan struct{}, 1)}
		n, err := strconv.Atoi(args[3])
		if err != nil {
			return nil, err
		}
		k.record = make([]byte, n)
		if k.file, err = os.Create(args[2]); err != nil {
			return nil, err
		}
		go k.run()
		return func(c net.Conn) error {
			return eachRequest(c, func(id []byte) error { k.add(c, id); return nil })
		}, nil
	}
	return nil, fmt.Errorf("no program %s", name)
}

// eachRequest reads requests and passes on their correlation ids.
func eachRequest(c net.Conn, fn func(id []byte) error) error {
	in := bufio.NewReaderSize(c, 4096)
	for {
		// What ReadFrame takes for the correlation id is key and version.
		_, body, err := ReadFrame(in, nil)
		if err != nil {
			return err
		}
		if err := fn(body[:4]); err != nil {
			return err
		}
	}
}

func answerZeros(c net.Conn, id []byte, size int) error {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+size))
	frame = append(append(frame, id...), make([]byte, size)...)
	_, err := c.Write(frame)
	return err
}

// meeting lets connections wait for each other.
type meeting struct {
	size int

	mu   sync.Mutex
	here int
	all  chan struct{} // closed when all are here
}

func (m *meeting) attend(c net.Conn, size int) error {
	n := 0
	return eachRequest(c, func(id []byte) error {
		if n++; n%3 != 1 {
			<-m.wait()
		}
		return answerZeros(c, id, size)
	})
}

// wait counts one in and returns what is closed when all are here.
func (m *meeting) wait() chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.all
	if m.here++; m.here == m.size {
		close(all)
		m.here, m.all = 0, make(chan struct{})
	}
	return all
}

// keeper appends a record to a file for each request. What comes while a sync
// runs is written and synced together.
type keeper struct {
	size   int // of an answer
	record []byte
	file   *os.File
	wake   chan struct{}

	mu      sync.Mutex
	waiting []keptRequest
}

type keptRequest struct {
	conn net.Conn
	id   []byte
}

func (k *keeper) add(c net.Conn, id []byte) {
	k.mu.Lock()
	k.waiting = append(k.waiting, keptRequest{c, id})
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *keeper) run() {
	at := int64(0)
	for range k.wake {
		k.mu.Lock()
		waiting := k.waiting
		k.waiting = nil
		k.mu.Unlock()
		n, err := k.keep(len(waiting), at)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		at += int64(n)
		for _, r := range waiting {
			_ = answerZeros(r.conn, r.id, k.size) // The reader notices.
		}
	}
}

// keep writes a batch of records with a checksum and syncs it.
func (k *keeper) keep(records int, at int64) (int, error) {
	batch := make([]byte, HeaderSize, HeaderSize+records*len(k.record))
	for range records {
		batch = append(batch, k.record...)
	}
	binary.BigEndian.PutUint32(batch[17:], crc32.Checksum(batch[21:], Castagnoli))
	n, err := k.file.WriteAt(batch, at)
	if err != nil {
		return n, err
	}
	return n, Datasync(k.file)
}
