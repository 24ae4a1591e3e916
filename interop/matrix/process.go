package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// rowTimeout bounds the time of a row, which is 10 to 40 seconds on an idle
// machine with two cores.
const rowTimeout = 4 * time.Minute

// run runs the row and reads what it says.
func (r *row) run(ctx context.Context, p place) (res result) {
	began := time.Now()
	defer func() { res.took = time.Since(began) }()
	ctx, cancel := context.WithTimeoutCause(ctx, rowTimeout, fmt.Errorf("not done after %s", rowTimeout))
	defer cancel()
	if r.version != nil {
		if res.version, res.err = r.version(ctx); res.err != nil {
			return res
		}
	}
	args, env := r.command(p)
	if r.secured {
		env = append(env, p.secured.env()...)
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), append(env, "TMPDIR="+p.dir)...)
	cmd.Stdout, cmd.Stderr = &out, &out
	ownGroup(cmd)
	res.err = cmd.Run()
	if cmd.Process != nil {
		_ = killGroup(cmd) // Whatever it started and left behind.
	}
	if cause := context.Cause(ctx); cause != nil {
		res.err = cause
	}
	res.output = out.String()
	res.parse()
	return res
}

// ownGroup puts a command into a process group of its own, all of which is
// killed with its context. Ctrl-C does not reach it: only this program decides
// when it ends.
func ownGroup(cmd *exec.Cmd) {
	setGroup(cmd)
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return killGroup(cmd) }
	}
	cmd.WaitDelay = 5 * time.Second
}

// runQuietly runs a command whose output matters only if it fails.
func runQuietly(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// tail keeps the last lines of what is written to it.
type tail struct {
	mu    sync.Mutex
	lines []string
}

const tailLines = 40

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	if len(t.lines) > tailLines {
		t.lines = t.lines[1:]
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}
