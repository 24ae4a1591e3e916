package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// startTimeout is how long a server may take to answer its first command.
const startTimeout = 2 * time.Minute

// Node is one server process, which can be ended and started again with the
// same port and data.
type Node struct {
	Port int

	binary string
	args   []string
	dir    string

	mu     sync.Mutex
	cmd    *exec.Cmd
	done   chan struct{} // closed when the process is gone
	paused bool
}

// newNode writes a server's configuration into a folder of its own.
func newNode(binary, dir, name string, port int, lines []string, args ...string) (*Node, error) {
	n := &Node{Port: port, binary: binary, dir: filepath.Join(dir, name)}
	if err := os.Mkdir(n.dir, 0o700); err != nil {
		return n, err
	}
	lines = append([]string{
		"bind 127.0.0.1",
		"port " + strconv.Itoa(port),
		"dir " + strconv.Quote(n.dir),
		"daemonize no",
	}, lines...)
	file := filepath.Join(n.dir, "redis.conf")
	n.args = append([]string{file}, args...)
	return n, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// Addr returns host and port.
func (n *Node) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.Port)) }

// Start starts the process again, if it does not run, and waits until it
// answers.
func (n *Node) Start(t testing.TB) {
	t.Helper()
	if err := n.start(); err != nil {
		t.Fatal(err)
	}
}

func (n *Node) start() error {
	if err := n.launch(); err != nil {
		return err
	}
	return n.awaitReady()
}

// launch starts the process.
func (n *Node) launch() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd != nil {
		return nil
	}
	out, err := os.OpenFile(filepath.Join(n.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // The child has its own.
	cmd := exec.Command(n.binary, n.args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = endWithParent()
	if err := onLauncher(cmd.Start); err != nil {
		return fmt.Errorf("starting %s: %w", n.binary, err)
	}
	done := make(chan struct{})
	n.cmd, n.done = cmd, done
	go func() {
		_ = cmd.Wait() // How it ended is in its log.
		close(done)
	}()
	return nil
}

// awaitReady waits until the server answers, or is gone.
func (n *Node) awaitReady() error {
	err := Poll(startTimeout, func() error {
		_, err := n.Do("PING")
		var refusal ErrorReply
		if errors.As(err, &refusal) && strings.HasPrefix(string(refusal), "NOAUTH") || !n.running() {
			return nil // It wants a password, so it is there.
		}
		return err
	})
	if err == nil && !n.running() {
		err = errors.New("it ended at once")
	}
	if err != nil {
		return fmt.Errorf("redis on port %d: %w\n%s", n.Port, err, n.logTail())
	}
	return nil
}

func (n *Node) running() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cmd == nil {
		return false
	}
	select {
	case <-n.done:
		return false
	default:
		return true
	}
}

func (n *Node) isPaused() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.paused
}

// Kill ends the process as a power cut would, and waits until it is gone.
func (n *Node) Kill() { n.end(syscall.SIGKILL) }

// Stop asks the process to end, and waits until it is gone.
func (n *Node) Stop() { n.end(syscall.SIGTERM) }

func (n *Node) end(signal syscall.Signal) {
	n.mu.Lock()
	cmd, done := n.cmd, n.done
	n.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(signal) // It may have ended by itself.
	select {
	case <-done:
	case <-time.After(startTimeout):
		_ = cmd.Process.Kill()
		<-done
	}
	endChildren(cmd.Process.Pid)
	n.mu.Lock()
	n.cmd, n.paused = nil, false
	n.mu.Unlock()
}

func (n *Node) signal(signal syscall.Signal, paused bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.paused = paused
	if n.cmd != nil {
		_ = n.cmd.Process.Signal(signal) // It may have ended by itself.
	}
}

// logTail returns the end of what the server wrote.
func (n *Node) logTail() string {
	text, err := os.ReadFile(filepath.Join(n.dir, "log"))
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-15):], []byte("\n")))
}

// dump writes the ends of all logs into a failed test's output.
func (s *Server) dump(t testing.TB) {
	for _, n := range append(s.Nodes, s.Sentinels...) {
		t.Logf("redis on port %d:\n%s", n.Port, n.logTail())
	}
}

var (
	launcherOnce sync.Once
	launches     = make(chan func())
)

// onLauncher runs a function on a thread that lives as long as this process.
// The kernel ends a child when the thread that started it ends, and Go ends
// threads as it likes.
func onLauncher(start func() error) error {
	launcherOnce.Do(func() { go launcher() })
	result := make(chan error)
	launches <- func() { result <- start() }
	return <-result
}

func launcher() {
	runtime.LockOSThread()
	for launch := range launches {
		launch()
	}
}

// lookup finds the server's executable.
func lookup() (string, error) {
	for _, name := range []string{os.Getenv("MUSTER_REDIS_SERVER"), "redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil && name != "" {
			return path, nil
		}
	}
	return "", errors.New("neither redis-server nor valkey-server is in PATH: scripts/setup installs one")
}
