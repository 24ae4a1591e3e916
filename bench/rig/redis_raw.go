package rig

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// rawRedis sends plain commands, encoded in advance, and reads the answers
// without keeping them: as fast as the server can be asked.
type rawRedis struct {
	*redisSession
	frame   []byte // XADD of the records of one request
	adds    int    // commands in it
	entries int    // in each stream for one request
}

func rawKey(i int) string { return "raw:" + strconv.Itoa(i) }

func newRawRedis(r *redisSession) *rawRedis {
	w := &rawRedis{redisSession: r}
	now := strconv.FormatInt(time.Now().UnixMilli(), 10)
	for i := range r.Partitions {
		batch := NewBatch(r.Records, r.Record, uint64(i))
		if r.layout == "log" {
			w.add("XADD", rawKey(i), "*", "b", string(batch))
			w.entries = 1
			continue
		}
		records := batch[HeaderSize:]
		for range r.Records {
			var one kmsg.Record
			if err := one.ReadFrom(records); err != nil {
				panic(err) // We have just made it.
			}
			records = records[len(one.AppendTo(nil)):]
			w.add("XADD", rawKey(i), "*", "value", string(one.Value), "timestamp", now)
		}
		w.entries = r.Records
	}
	return w
}

func (w *rawRedis) add(args ...string) {
	w.frame = appendCommand(w.frame, args...)
	w.adds++
}

func appendCommand(b []byte, args ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

func (w *rawRedis) produce(m redisMetrics) error {
	conns, err := w.Connect(w.server, Connections)
	if err != nil {
		return err
	}
	defer CloseAll(conns)
	if err := w.pump(conns, w.warm()); err != nil {
		return err
	}
	return w.measure(m, bare, w.sent*w.Partitions*w.Records, func() error { return w.pump(conns, w.sent) })
}

// pump sends the commands n times, with as much under way as a producer has.
func (w *rawRedis) pump(conns []net.Conn, n int) error { return spread(conns, n, w.pumpOne) }

func (w *rawRedis) pumpOne(c net.Conn, n int) error {
	slots, sent, stop := make(chan struct{}, InFlight), make(chan error, 1), make(chan struct{})
	defer close(stop)
	go func() {
		for range n {
			select {
			case slots <- struct{}{}:
			case <-stop:
				sent <- nil
				return
			}
			if _, err := c.Write(w.frame); err != nil {
				sent <- err
				return
			}
		}
		sent <- nil
	}()
	in := bufio.NewReaderSize(c, 64<<10)
	for range n {
		for range w.adds {
			if _, err := readReply(in); err != nil {
				return err
			}
		}
		<-slots
	}
	return <-sent
}

// fetch reads all streams with XRANGE, all of them at a time and as much of
// each as a consumer takes, like a consumer.
func (w *rawRedis) fetch(m redisMetrics) error {
	c, err := w.server.Dial(w.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	in := bufio.NewReaderSize(c, 1<<20)
	if err := w.pass(c, in); err != nil {
		return err
	}
	return w.measure(m, bare, redisPasses*w.total()*w.Partitions*w.Records, func() error {
		for range redisPasses {
			if err := w.pass(c, in); err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *rawRedis) pass(c net.Conn, in *bufio.Reader) error {
	per := w.Record // bytes in an entry
	if w.layout == "log" {
		per *= w.Records
	}
	count := strconv.Itoa(PartitionMaxBytes / per)
	from := slices.Repeat([]string{"-"}, w.Partitions)
	for left := w.total() * w.entries; left > 0; {
		var request []byte
		for i := range w.Partitions {
			request = appendCommand(request, "XRANGE", rawKey(i), from[i], "+", "COUNT", count)
		}
		if _, err := c.Write(request); err != nil {
			return err
		}
		got := 0
		for i := range w.Partitions {
			n, last, err := readEntries(in)
			if err != nil {
				return err
			}
			from[i], got = "("+last, n
		}
		if got == 0 {
			return fmt.Errorf("%d entries are missing", left)
		}
		left -= got
	}
	return nil
}

// checkLengths checks that both sides have stored every record.
func (w *rawRedis) checkLengths() error {
	c, err := w.server.Dial(w.Context)
	if err != nil {
		return err
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for i := range w.Partitions {
		for _, key := range []string{rawKey(i), fmt.Sprintf("muster:%s:%d", w.topic(), i)} {
			if _, err := c.Write(appendCommand(nil, "XLEN", key)); err != nil {
				return err
			}
			n, err := readReply(in)
			if err != nil {
				return err
			}
			if n != w.total()*w.entries {
				return fmt.Errorf("%d entries in %s, expected %d", n, key, w.total()*w.entries)
			}
		}
	}
	return nil
}

// readEntries reads an answer to XRANGE: how many entries, and the last one's
// id.
func readEntries(in *bufio.Reader) (n int, last string, err error) {
	if n, err = readHead(in, '*'); err != nil {
		return 0, "", err
	}
	for range n {
		if _, err := readHead(in, '*'); err != nil {
			return 0, "", err
		}
		size, err := readHead(in, '$')
		if err != nil {
			return 0, "", err
		}
		id := make([]byte, size+2)
		if _, err := io.ReadFull(in, id); err != nil {
			return 0, "", err
		}
		last = string(id[:size])
		fields, err := readHead(in, '*')
		if err != nil {
			return 0, "", err
		}
		for range fields {
			if _, err := readReply(in); err != nil {
				return 0, "", err
			}
		}
	}
	return n, last, nil
}

// readReply reads past a simple answer, and returns it if it is a number.
func readReply(in *bufio.Reader) (int, error) {
	kind, err := in.ReadByte()
	if err != nil {
		return 0, err
	}
	if err := in.UnreadByte(); err != nil {
		return 0, err
	}
	switch kind {
	case '$':
		size, err := readHead(in, '$')
		if err != nil {
			return 0, err
		}
		_, err = in.Discard(size + 2)
		return 0, err
	case ':':
		return readHead(in, ':')
	}
	line, err := in.ReadSlice('\n')
	return 0, errors.Join(err, fmt.Errorf("the server answers %q", bytes.TrimSpace(line)))
}

// readHead reads a line with a number.
func readHead(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("the server answers %q", bytes.TrimSpace(line))
	}
	return strconv.Atoi(string(bytes.TrimSpace(line[1:])))
}
