package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"muster/cmd/muster/internal/top"
	"muster/internal/assert"
)

// terminal is a real one, of which the test is the screen and the keyboard.
type terminal struct {
	t          *testing.T
	here, tty  *os.File
	mu         sync.Mutex
	shown      string
	readingEnd chan struct{}
}

func newTerminal(t *testing.T) *terminal {
	t.Helper()
	here, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal available: %v", err)
	}
	must(t, unix.IoctlSetPointerInt(int(here.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(here.Fd()), unix.TIOCGPTN)
	must(t, err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	x := &terminal{t: t, here: here, tty: tty, readingEnd: make(chan struct{})}
	x.resize(100, 20)
	go func() {
		defer close(x.readingEnd)
		buffer := make([]byte, 4096)
		for {
			n, err := here.Read(buffer)
			x.mu.Lock()
			x.shown += string(buffer[:n])
			x.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = tty.Close()
		_ = here.Close()
		<-x.readingEnd
	})
	return x
}

func (x *terminal) resize(columns, rows uint16) {
	x.t.Helper()
	must(x.t, unix.IoctlSetWinsize(int(x.here.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}))
}

// modes is how the terminal treats what is typed.
func (x *terminal) modes() unix.Termios {
	x.t.Helper()
	modes, err := unix.IoctlGetTermios(int(x.tty.Fd()), unix.TCGETS)
	must(x.t, err)
	return *modes
}

func (x *terminal) keys(text string) {
	x.t.Helper()
	x.mu.Lock()
	x.shown = "" // What comes from now on is the answer.
	x.mu.Unlock()
	if _, err := x.here.WriteString(text); err != nil {
		x.t.Fatal(err)
	}
}

// shows waits for a text.
func (x *terminal) shows(want string) {
	x.t.Helper()
	eventually(x.t, func() error {
		x.mu.Lock()
		defer x.mu.Unlock()
		if !strings.Contains(x.shown, want) {
			return fmt.Errorf("the terminal does not show %q but %q", want, x.shown[max(0, len(x.shown)-1500):])
		}
		return nil
	})
}

// start runs a command at the terminal.
func (x *terminal) start(args ...string) *exec.Cmd {
	x.t.Helper()
	program, err := os.Executable()
	must(x.t, err)
	c := exec.CommandContext(x.t.Context(), program, args...)
	c.Env = append(os.Environ(), asMain+"=1")
	c.Stdin, c.Stdout, c.Stderr = x.tty, x.tty, x.tty
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	must(x.t, c.Start())
	return c
}

func TestTopAtATerminal(t *testing.T) {
	s, _ := topWorld(t)
	x := newTerminal(t)
	before := x.modes()
	running := x.start("top", "--broker", s.broker, "--every", "200ms", "--sort", "name")
	x.shows(top.EnterScreen)
	x.shows("shipping")
	x.keys("/ship")
	x.shows("Only groups with: ship_")
	x.shows("   1 group   ") // The one that was chosen is not in the list any more.
	x.keys("\r\r")
	x.shows("Group shipping is Empty")
	x.keys("\x1b")
	x.shows("LAST REBALANCE")
	x.resize(60, 8)
	x.shows("…")
	x.keys("q")
	assert.NoError(t, running.Wait())
	x.shows(top.LeaveScreen)
	assert.Equal(t, x.modes(), before, "the terminal is not as it was before")

	running = x.start("top", "--broker", s.broker)
	x.shows(top.EnterScreen)
	x.keys("\x1b[B")
	x.shows("billing")
	must(t, running.Process.Signal(syscall.SIGTERM))
	assert.NoError(t, running.Wait())
	x.shows(top.LeaveScreen)
	assert.Equal(t, x.modes(), before, "after a signal the terminal is not as it was before")
}
