package conn

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Runs tells the lives of servers apart. A server that is started again may have lost the
// last that it acknowledged, and so may one that takes another's place. Whoever wants to
// write what rests on an earlier answer of a server does so between Enter and Leave, and
// not if the generation is another than it was then: no connection to another run carries
// a command of an earlier generation.
//
// That holds because a connection to another run is the first to know of it. It is
// given up until everybody has left who entered before.
type Runs struct {
	// Changed, if it is not nil, is called when the generation changes. It must not block.
	Changed func()

	generation atomic.Uint64
	inside     [2]atomic.Int64 // who has entered, by the last bit of the generation

	mu       sync.Mutex
	last     map[string]string // the run of each server
	draining bool              // someone may be inside who entered in the generation before
}

// errOtherRun is told to those whose command would be the first on a connection.
var errOtherRun = errors.New("the server was started again, or is another one")

// Generation counts the changes. It is 0 for a nil Runs.
func (r *Runs) Generation() uint64 {
	if r == nil {
		return 0
	}
	return r.generation.Load()
}

// Enter returns the generation, and keeps connections of the next from being used until
// Leave. Who is inside of it when a server was started again is told an error soon.
func (r *Runs) Enter() uint64 {
	if r == nil {
		return 0
	}
	for {
		g := r.generation.Load()
		r.inside[g&1].Add(1)
		if r.generation.Load() == g {
			return g
		}
		r.inside[g&1].Add(-1)
	}
}

// Leave ends what Enter began.
func (r *Runs) Leave(generation uint64) {
	if r != nil {
		r.inside[generation&1].Add(-1)
	}
}

// connected takes in which run of a server a connection leads to. An error means that the
// connection must not be used.
func (r *Runs) connected(server, run string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	was, known := r.last[server]
	if was != run || run == "" {
		if r.draining && r.occupied() {
			return errOtherRun
		}
		if r.last == nil {
			r.last = map[string]string{}
		}
		first := len(r.last) == 0 && !known
		r.last[server] = run
		if !first {
			r.generation.Add(1)
			r.draining = true
			if r.Changed != nil {
				r.Changed()
			}
		}
	}
	if r.draining && r.occupied() {
		return errOtherRun
	}
	r.draining = false
	return nil
}

// occupied says whether someone is inside who entered in the generation before.
func (r *Runs) occupied() bool { return r.inside[(r.generation.Load()-1)&1].Load() > 0 }

// dial connects to a server, and asks it who it is before anybody else says anything.
func (r *Runs) dial(t target) func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
	return func(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (net.Conn, error) {
		var c net.Conn
		var err error
		if config != nil {
			c, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
		} else {
			c, err = dialer.DialContext(ctx, "tcp", address)
		}
		if err != nil {
			return nil, err
		}
		if err := r.greet(c, t, address, dialer.Timeout); err != nil {
			_ = c.Close()
			return nil, fmt.Errorf("connecting to %s: %w", address, err)
		}
		return c, nil
	}
}

// greet asks a server for its run. One that does not tell because we may not ask is left
// to the client, which will be told the same.
func (r *Runs) greet(c net.Conn, t target, address string, patience time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	var ask []byte
	questions := 1
	if t.password != "" {
		words := []string{"AUTH", t.user, t.password}
		if t.user == "" {
			words = []string{"AUTH", t.password}
		}
		ask = command(ask, words...)
		questions++
	}
	ask = command(ask, "INFO", "server")
	if _, err := c.Write(ask); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	var info string
	for range questions {
		var err error
		if info, err = readReply(in); err != nil {
			return err
		}
	}
	if err := c.SetDeadline(time.Time{}); err != nil {
		return err
	}
	switch mode := field(info, "redis_mode"); {
	case strings.HasPrefix(info, "-NOAUTH"), mode == "sentinel":
		return nil
	case mode == "cluster":
		return r.connected(address, field(info, "run_id"))
	}
	// Of one server and its replicas only one is asked for anything.
	return r.connected("", address+" "+field(info, "run_id"))
}

// command writes a command.
func command(b []byte, words ...string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(words))
	for _, w := range words {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b
}

// maxGreeting is how long a reply may be.
const maxGreeting = 64 << 10

// readReply reads a line, or a string of some length.
func readReply(in *bufio.Reader) (string, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	if !strings.HasPrefix(line, "$") {
		return line, nil
	}
	n, err := strconv.Atoi(line[1:])
	if err != nil || n < 0 || n > maxGreeting {
		return "", fmt.Errorf("a reply of %q bytes", line[1:])
	}
	b := make([]byte, n+2)
	_, err = io.ReadFull(in, b)
	return string(b), err
}

// field reads a field of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
