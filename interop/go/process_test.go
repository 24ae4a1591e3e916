package interop

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster"
	"muster/internal/redistest"
)

const (
	startTimeout = 20 * time.Second
	stopTimeout  = 30 * time.Second
)

// process is a `muster serve` that runs as a process of its own.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	addrs  map[string]string // where it listens, by the listener's name
	exited chan struct{}     // closed when the process is gone; then err is set
	err    error
	logs   *logTail
	// ended is set when the test ended the process on purpose.
	ended bool
}

// serve starts a broker on a data folder, and returns when it listens. It is
// killed at the end of the test if it still runs then. Settings and flags are
// as on the command line.
func serve(t testing.TB, data string, flags ...string) *process {
	t.Helper()
	listeners := 1
	if i := slices.IndexFunc(flags, func(f string) bool { return strings.HasPrefix(f, "listeners=") }); i >= 0 {
		listeners = len(strings.Split(flags[i], ","))
	} else if !slices.Contains(flags, "--listen") {
		flags = append(flags, "--listen", "127.0.0.1:0")
	}
	return start(t, exec.Command(musterPath, slices.Concat([]string{"serve"}, storeFlags(t, data), flags)...), listeners)
}

// startMuster starts a broker with one listener, with these flags alone.
func startMuster(t testing.TB, flags ...string) *process {
	t.Helper()
	return start(t, exec.Command(musterPath, append([]string{"serve"}, flags...)...), 1)
}

// start runs a command that becomes a broker, and returns when it listens on as
// many listeners as it should have.
func start(t testing.TB, cmd *exec.Cmd, listeners int) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, addrs: map[string]string{}, exited: make(chan struct{}), logs: &logTail{}}
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	listening := make(chan [2]string, listeners)
	go p.follow(stderr, listening)
	t.Cleanup(p.cleanup)
	timeout := time.After(startTimeout)
	for len(p.addrs) < listeners {
		select {
		case l := <-listening:
			p.addrs[l[0]] = l[1]
		case <-p.exited:
			t.Fatalf("the broker ended before it listened: %v\n%s", p.err, p.logs)
		case <-timeout:
			t.Fatalf("the broker does not listen after %s\n%s", startTimeout, p.logs)
		}
	}
	return p
}

var (
	listeningLine = regexp.MustCompile(`msg="?listening"?.*\baddress=(\S+)`)
	listenerName  = regexp.MustCompile(`\blistener=(\S+)`)
)

// follow reads the log until the process ends, and then waits for it.
func (p *process) follow(stderr io.Reader, listening chan<- [2]string) {
	if dir := os.Getenv("INTEROP_LOGS"); dir != "" {
		// For looking into a failure: all of every broker's log.
		if f, err := os.CreateTemp(dir, fmt.Sprintf("broker-%d-*.log", p.pid())); err == nil {
			defer f.Close()
			stderr = io.TeeReader(stderr, f)
		}
	}
	lines := bufio.NewScanner(stderr)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p.logs.add(lines.Text())
		if m := listeningLine.FindStringSubmatch(lines.Text()); m != nil {
			name := ""
			if n := listenerName.FindStringSubmatch(lines.Text()); n != nil {
				name = n[1]
			}
			select {
			case listening <- [2]string{name, m[1]}:
			default: // Nobody asked for that many.
			}
		}
	}
	_, _ = io.Copy(io.Discard, stderr)
	p.err = p.cmd.Wait()
	close(p.exited)
}

func (p *process) cleanup() {
	if p.ended {
		return
	}
	p.kill()
	if p.t.Failed() {
		p.t.Logf("the broker's log:\n%s", p.logs)
	}
}

// addr is the address of the only listener.
func (p *process) addr() string {
	for _, a := range p.addrs {
		return a
	}
	return ""
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process as kill -9 does.
func (p *process) kill() {
	p.ended = true
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// terminate asks the process to end and returns how it did.
func (p *process) terminate() error {
	p.signal(syscall.SIGTERM)
	return p.wait()
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	must(p.t, p.cmd.Process.Signal(s))
}

// wait returns how the process ended, once it has.
func (p *process) wait() error {
	select {
	case <-p.exited:
		p.ended = true
		return p.err
	case <-time.After(stopTimeout):
		return fmt.Errorf("still running %s after SIGTERM", stopTimeout)
	}
}

// stopped says whether all threads of the process stand still. After a SIGSTOP
// that takes a moment on a busy machine.
func (p *process) stopped() error {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.pid()))
	if err != nil {
		return err
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // A thread that has ended.
		}
		// The second field is the name in brackets, the third the state.
		if _, state, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(state, "T") {
			return fmt.Errorf("%s: %.20s", name, state)
		}
	}
	return nil
}

// running says whether the process lives.
func (p *process) running() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// peakMemory is the most memory the process has had so far, in bytes.
func (p *process) peakMemory() int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.pid()))
	if err != nil {
		p.t.Skipf("memory cannot be measured here: %v", err)
	}
	for line := range bytes.Lines(status) {
		if f := strings.Fields(string(line)); len(f) == 3 && f[0] == "VmHWM:" {
			kb, err := strconv.ParseInt(f[1], 10, 64)
			must(p.t, err)
			return kb << 10
		}
	}
	p.t.Fatalf("no VmHWM in %s", status)
	return 0
}

// fixedPort returns an address that can be listened on again and again: no one
// else takes it while the broker is away.
func fixedPort(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
}

// logTail keeps the last lines of a log.
type logTail struct {
	mu    sync.Mutex
	lines []string
}

const logTailLines = 60

func (l *logTail) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) == logTailLines {
		l.lines = l.lines[1:]
	}
	l.lines = append(l.lines, line)
}

func (l *logTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, "\n")
}

// startInProcess starts a broker in this process, in memory if there is no data
// folder.
func startInProcess(t testing.TB, data string, properties map[string]string) *muster.Broker {
	t.Helper()
	if data != "" && storeKind != "disk" {
		all := redisProperties(t, data)
		maps.Copy(all, properties)
		data, properties = "", all
	}
	b, err := muster.Start(context.Background(), muster.Config{
		Listen: "127.0.0.1:0", Data: data, Properties: properties, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	t.Cleanup(func() { _ = b.Close() })
	return b
}
