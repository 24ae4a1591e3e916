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
// connections, so that none of those takes a port while its server is down.
const (
	firstPort = 12000
	lastPort  = 32000
)

var ports struct {
	sync.Mutex
	given map[int]bool
}

// FreePort returns a loopback port that nobody listens on, and that is given
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
	if ports.given == nil {
		ports.given = make(map[int]bool)
	}
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if ports.given[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		_ = l.Close() // Nobody connected to it.
		ports.given[port] = true
		return port, nil
	}
	return 0, errors.New("found no free port")
}
