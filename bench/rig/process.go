package rig

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

// Process is a program under measurement.
type Process struct {
	Cmd       *exec.Cmd
	Addr      string
	Began     time.Time // just before exec
	stdin     io.WriteCloser
	Stderr    *tail
	Ready     chan struct{} // closed when it can be asked to stop; nil if whoever starts it knows that otherwise
	Exited    chan struct{} // closed when it is gone; then err is set
	Err       error
	Status143 bool        // it ends with this status when asked to stop, as Java programs do
	TLS       *tls.Config // to connect with, nil for plain text
}

// Start starts a program that will listen on addr. It gets a pipe as standard
// input, so that a bare program ends when this one does, however that ends.
func (b *Bench) Start(addr, program string, args ...string) (*Process, error) {
	return started(&Process{Cmd: exec.Command(program, args...), Addr: addr})
}

func started(p *Process) (_ *Process, err error) {
	p.Stderr, p.Exited = &tail{}, make(chan struct{})
	p.Cmd.Stderr = p.Stderr
	Tie(p.Cmd)
	if p.stdin, err = p.Cmd.StdinPipe(); err != nil {
		return nil, err
	}
	var said io.ReadCloser
	if p.Ready != nil {
		if said, err = p.Cmd.StdoutPipe(); err != nil {
			return nil, err
		}
	}
	p.Began = time.Now()
	if err := p.Cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		if said != nil {
			_, _ = said.Read(make([]byte, 1)) // That, or its end.
			close(p.Ready)
		}
		p.Err = p.Cmd.Wait()
		close(p.Exited)
	}()
	return p, nil
}

// StartSelf starts this program as one of the processes that are measured. It says on
// standard output when it listens to signals: before that, one would just end it.
func (b *Bench) StartSelf(addr string, args ...string) (*Process, error) {
	return started(&Process{Cmd: exec.Command(b.self, args...), Addr: addr, Ready: make(chan struct{})})
}

// StartBroker starts the broker on a data folder, with further settings.
func (b *Bench) StartBroker(data string, set ...string) (*Process, error) {
	if b.Embedded {
		return b.startEmbedded(data, set...)
	}
	addr, err := FreeAddr()
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
	return b.Start(addr, b.Broker, args...)
}

// startEmbedded starts the package muster inside this program.
func (b *Bench) startEmbedded(data string, set ...string) (*Process, error) {
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	return b.StartSelf(addr, append([]string{"_broker", addr, data}, set...)...)
}

// startBare starts one of the bare programs.
func (b *Bench) startBare(name string, args ...string) (*Process, error) {
	addr, err := FreeAddr()
	if err != nil {
		return nil, err
	}
	return b.StartSelf(addr, append([]string{name, addr}, args...)...)
}

func FreeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Dial connects, trying again until the process listens. The connection is
// closed when ctx ends.
func (p *Process) Dial(ctx context.Context) (net.Conn, error) {
	for {
		c, err := net.Dial("tcp", p.Addr)
		if err == nil {
			// Whoever waits for the connection then does so no longer.
			context.AfterFunc(ctx, func() { c.Close() })
			if p.TLS != nil {
				c = tls.Client(c, p.TLS) // The first write shakes hands.
			}
			return c, nil
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.Exited:
			return nil, fmt.Errorf("%s ended before it listened: %w\n%s", filepath.Base(p.Cmd.Path), p.Err, p.Stderr)
		case <-time.After(max(100*time.Microsecond, time.Since(p.Began)/200)): // A start should not be slowed down by those who wait for it.
		}
	}
}

// Stop asks the process to stop and waits until it has.
func (p *Process) Stop() error {
	if p.Ready != nil {
		<-p.Ready
	}
	if err := p.Cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.Exited:
	case <-time.After(stopTimeout):
		p.Kill()
		return fmt.Errorf("%s still ran %s after SIGTERM", filepath.Base(p.Cmd.Path), stopTimeout)
	}
	if p.Err != nil && !(p.Status143 && p.Cmd.ProcessState.ExitCode() == 143) {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(p.Cmd.Path), p.Err, p.Stderr)
	}
	return nil
}

// Kill ends the process if it still runs. It is for when something failed.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.Exited
}

// Profile runs fn, with a processor profile of it if profiles are wanted and p
// is the broker.
func (b *Bench) Profile(p *Process, name string, fn func() error) error {
	if b.Profiles == "" || !strings.HasPrefix(p.Cmd.Args[1], "_broker") {
		return fn()
	}
	folder, err := filepath.Abs(b.Profiles)
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

func (c cpu) Sub(d cpu) cpu        { return cpu{c.user - d.user, c.system - d.system} }
func (c cpu) Total() time.Duration { return c.user + c.system }

// Ticks is how many clock ticks /proc counts per second, the same on every
// Linux that Go runs on.
const Ticks = 100

// CPU returns the processor time that the process has used.
func (p *Process) CPU() (cpu, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
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
	return cpu{time.Duration(user) * time.Second / Ticks, time.Duration(system) * time.Second / Ticks}, err
}

// Status returns a size in MB from /proc/PID/status.
func (p *Process) Status(field string) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == field+":" {
			kb, err := strconv.ParseFloat(f[1], 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/%d/status", field, p.Cmd.Process.Pid)
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
