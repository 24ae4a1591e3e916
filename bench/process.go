package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long a process may take to stop when asked to.
const stopTimeout = time.Minute

// process is a program under measurement.
type process struct {
	cmd       *exec.Cmd
	addr      string
	began     time.Time // just before exec
	stdin     io.WriteCloser
	stderr    *tail
	ready     chan struct{} // closed when it can be asked to stop; nil if whoever starts it knows that otherwise
	exited    chan struct{} // closed when it is gone; then err is set
	err       error
	status143 bool        // it ends with this status when asked to stop, as Java programs do
	tls       *tls.Config // to connect with, nil for plain text
}

// start starts a program that will listen on addr. It gets a pipe as standard
// input, so that a bare program ends when this one does, however that ends.
func (b *bench) start(addr, program string, args ...string) (*process, error) {
	return started(&process{cmd: exec.Command(program, args...), addr: addr})
}

func started(p *process) (_ *process, err error) {
	p.stderr, p.exited = &tail{}, make(chan struct{})
	p.cmd.Stderr = p.stderr
	tie(p.cmd)
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	var said io.ReadCloser
	if p.ready != nil {
		if said, err = p.cmd.StdoutPipe(); err != nil {
			return nil, err
		}
	}
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		if said != nil {
			_, _ = said.Read(make([]byte, 1)) // That, or its end.
			close(p.ready)
		}
		p.err = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// startSelf starts this program as one of the processes that are measured. It says on
// standard output when it listens to signals: before that, one would just end it.
func (b *bench) startSelf(addr string, args ...string) (*process, error) {
	return started(&process{cmd: exec.Command(b.self, args...), addr: addr, ready: make(chan struct{})})
}

// startBroker starts the broker on a data folder, with further settings.
func (b *bench) startBroker(data string, set ...string) (*process, error) {
	if b.embedded {
		return b.startEmbedded(data, set...)
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--listen", addr}
	if data != "" {
		args = append(args, "--data", data)
	}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	return b.start(addr, b.broker, args...)
}

// startEmbedded starts the package muster inside this program.
func (b *bench) startEmbedded(data string, set ...string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	return b.startSelf(addr, append([]string{"_broker", addr, data}, set...)...)
}

// startBare starts one of the bare programs.
func (b *bench) startBare(name string, args ...string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	return b.startSelf(addr, append([]string{name, addr}, args...)...)
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// dial connects, trying again until the process listens. The connection is
// closed when ctx ends.
func (p *process) dial(ctx context.Context) (net.Conn, error) {
	for {
		c, err := net.Dial("tcp", p.addr)
		if err == nil {
			// Whoever waits for the connection then does so no longer.
			context.AfterFunc(ctx, func() { c.Close() })
			if p.tls != nil {
				c = tls.Client(c, p.tls) // The first write shakes hands.
			}
			return c, nil
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.exited:
			return nil, fmt.Errorf("%s ended before it listened: %w\n%s", filepath.Base(p.cmd.Path), p.err, p.stderr)
		case <-time.After(max(100*time.Microsecond, time.Since(p.began)/200)): // A start should not be slowed down by those who wait for it.
		}
	}
}

// stop asks the process to stop and waits until it has.
func (p *process) stop() error {
	if p.ready != nil {
		<-p.ready
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		p.kill()
		return fmt.Errorf("%s still ran %s after SIGTERM", filepath.Base(p.cmd.Path), stopTimeout)
	}
	if p.err != nil && !(p.status143 && p.cmd.ProcessState.ExitCode() == 143) {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(p.cmd.Path), p.err, p.stderr)
	}
	return nil
}

// kill ends the process if it still runs. It is for when something failed.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// profile runs fn, with a processor profile of it if profiles are wanted and p
// is the broker.
func (b *bench) profile(p *process, name string, fn func() error) error {
	if b.profiles == "" || !strings.HasPrefix(p.cmd.Args[1], "_broker") {
		return fn()
	}
	folder, err := filepath.Abs(b.profiles)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(p.stdin, "profile %s\n", filepath.Join(folder, name+".pprof")); err != nil {
		return err
	}
	defer fmt.Fprintln(p.stdin, "stop")
	return fn()
}

// cpu is processor time.
type cpu struct{ user, system time.Duration }

func (c cpu) sub(d cpu) cpu        { return cpu{c.user - d.user, c.system - d.system} }
func (c cpu) total() time.Duration { return c.user + c.system }

// ticks is how many clock ticks /proc counts per second, the same on every
// Linux that Go runs on.
const ticks = 100

// cpu returns the processor time that the process has used.
func (p *process) cpu() (cpu, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return cpu{}, err
	}
	// The second field is the program's name in brackets, which may hold spaces.
	f := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(f) < 13 {
		return cpu{}, fmt.Errorf("cannot read processor time from %q", stat)
	}
	user, err := strconv.ParseInt(string(f[11]), 10, 64)
	if err != nil {
		return cpu{}, err
	}
	system, err := strconv.ParseInt(string(f[12]), 10, 64)
	return cpu{time.Duration(user) * time.Second / ticks, time.Duration(system) * time.Second / ticks}, err
}

// status returns a size in MB from /proc/PID/status.
func (p *process) status(field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == field+":" {
			kb, err := strconv.ParseFloat(f[1], 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/%d/status", field, p.cmd.Process.Pid)
}

// tail keeps the end of what a process writes to standard error.
type tail struct {
	mu sync.Mutex
	b  []byte
}

const tailSize = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - tailSize; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
