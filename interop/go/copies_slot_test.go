package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// copierSlot is a copier, seen from the test: a process, and after its end another
// in its place until the slot is ended.
type copierSlot struct {
	run    *copyRun
	first  copierSpec
	exited chan struct{} // closed when the last process is gone

	mu      sync.Mutex
	spec    copierSpec
	process *os.Process
	stdin   io.WriteCloser
	wanted  bool // Its end was asked for.
	over    bool
	renewed int
	reasons []string // why processes ended by themselves
}

func startCopier(r *copyRun, spec copierSpec) *copierSlot {
	c := &copierSlot{run: r, first: spec, spec: spec, exited: make(chan struct{})}
	go func() {
		defer close(c.exited)
		for c.live() {
		}
	}()
	r.t.Cleanup(c.end)
	return c
}

// String says which client it is.
func (c *copierSlot) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	tv := "TV2"
	if c.spec.TV1 {
		tv = "TV1"
	}
	if len(c.reasons) == 0 {
		return c.spec.Client + " " + tv
	}
	return fmt.Sprintf("%s %s, which gave up %d times, last: %s", c.spec.Client, tv, len(c.reasons), c.reasons[len(c.reasons)-1])
}

// live runs one process, and says whether there is to be another.
func (c *copierSlot) live() bool {
	cmd, stdout, err := c.launch()
	if cmd == nil && err == nil {
		return false
	}
	if err == nil {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			c.heard(lines.Text())
		}
		err = cmd.Wait()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.process = nil
	if err != nil && !c.wanted {
		reason := err.Error()
		if cmd != nil {
			reason += ": " + lastLine(cmd.Stderr.(*os.File).Name())
		}
		c.reasons = append(c.reasons, reason)
		c.run.failed.Add(1)
		<-time.After(100 * time.Millisecond) // Not in a tight loop.
	}
	return !c.over
}

// launch starts a process, unless the slot was ended.
func (c *copierSlot) launch() (*exec.Cmd, io.Reader, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, nil, nil
	}
	text, err := json.Marshal(c.spec)
	if err != nil {
		return nil, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), copierEnv+"="+string(text))
	log, err := os.CreateTemp(os.Getenv("INTEROP_LOGS"), c.spec.ID+"-*.log")
	if err != nil {
		return nil, nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	c.process, c.wanted = cmd.Process, false
	return cmd, stdout, nil
}

// heard takes in the end of a transaction.
func (c *copierSlot) heard(line string) {
	var what string
	var records int64
	if _, err := fmt.Sscan(line, &what, &records); err != nil {
		return
	}
	if what == "commit" {
		c.run.commits.Add(1)
		c.run.copied.Add(records)
	} else {
		c.run.aborts.Add(1)
	}
}

// kill ends the process as kill -9 does.
func (c *copierSlot) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = true
	if c.process != nil {
		_ = c.process.Kill()
	}
}

// renew gives the next process another transactional id, so that no one but the
// coordinator ends what this one has left.
func (c *copierSlot) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.renewed++
	c.spec.ID = fmt.Sprintf("%s-%d", c.first.ID, c.renewed)
}

// leave has the process end what it does, and leave the group.
func (c *copierSlot) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = true
	if c.process != nil {
		_, _ = io.WriteString(c.stdin, "leave\n")
	}
}

// end has the process leave, and no other take its place.
func (c *copierSlot) end() {
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	c.leave()
	select {
	case <-c.exited:
	case <-time.After(copyPatience):
		c.kill()
		<-c.exited
	}
}

// lastLine returns the last line of a file, or why there is none.
func lastLine(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}
