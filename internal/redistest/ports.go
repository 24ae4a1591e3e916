package redistest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports are taken from below the range that the kernel gives to outgoing
// connections, so that none of those takes a port while its server is down. Nor
// does another test process: each has blocks of its own, whose first ports it
// listens on as long as it lives.
const (
	firstPort = 12000
	lastPort  = 32000
	blockSize = 50
)

var ports struct {
	sync.Mutex
	blocks []net.Listener
	next   int // the port to give out next, unless it is the first of a block
}

// FreePort returns a loopback port that no one listens on, and that is given
// out once only.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func freePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for range lastPort - firstPort {
		port := ports.next
		if port%blockSize == 0 {
			if err := takeBlock(); err != nil {
				return 0, err
			}
			continue
		}
		ports.next++
		if l := listen(port); l != nil {
			_ = l.Close() // No one connected to it.
			return port, nil
		}
	}
	return 0, errors.New("found no free port")
}

// takeBlock takes a block that no other process has.
func takeBlock() error {
	for range 10_000 {
		port := firstPort + rand.IntN((lastPort-firstPort)/blockSize)*blockSize
		if l := listen(port); l != nil {
			ports.blocks, ports.next = append(ports.blocks, l), port+1
			return nil
		}
	}
	return errors.New("all ports are taken")
}

// listen returns nil if it can't.
func listen(port int) net.Listener {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil
	}
	return l
}
