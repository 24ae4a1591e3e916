package listener

import (
	"net"
	"syscall"

	"muster/internal/buffer"
)

// inputSize is how much is read at once of small requests.
const inputSize = 4 << 10

// input reads a connection through a buffer, which it has only while something lies in
// it: a connection that rests has none, unless it speaks TLS, which takes more anyway.
type input struct {
	net net.Conn
	raw syscall.RawConn       // of what is read once there is something; nil for none
	try func(fd uintptr) bool // tryRead
	err error                 // that it met

	buffer *[]byte // nil if nothing is in it
	bytes  []byte  // of it, that are not read yet
}

// init begins to read a connection, which is tcp itself, or over it.
func (in *input) init(c net.Conn, tcp *net.TCPConn) {
	in.net = c
	if raw, err := tcp.SyscallConn(); err == nil && c == net.Conn(tcp) && canTry {
		in.raw, in.try = raw, in.tryRead
	}
}

// Read implements io.Reader. What is as large as the buffer does not go through it.
func (in *input) Read(p []byte) (int, error) {
	if len(in.bytes) == 0 {
		if len(p) >= inputSize {
			return in.net.Read(p)
		}
		if err := in.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, in.bytes)
	if in.bytes = in.bytes[n:]; len(in.bytes) == 0 {
		buffer.Put(in.buffer)
		in.buffer = nil
	}
	return n, nil
}

// Buffered returns how many bytes can be read at once.
func (in *input) Buffered() int { return len(in.bytes) }

// fill waits until there is something to read, and reads it.
func (in *input) fill() error {
	if in.raw != nil {
		if err := in.raw.Read(in.try); err != nil {
			return err
		}
		return in.err
	}
	b, kept := buffer.Get(inputSize)
	n, err := in.net.Read(b)
	if n == 0 {
		buffer.Put(kept)
		return err
	}
	in.buffer, in.bytes = kept, b[:n] // An error comes again.
	return nil
}
