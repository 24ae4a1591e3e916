package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"muster/internal/assert"
)

// memberProcess is a member of a group, seen from the test.
type memberProcess struct {
	t      testing.TB
	spec   memberSpec
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stderr *logTail
	exited chan struct{} // closed when the process is gone and all it said is known

	mu         sync.Mutex
	owned      map[int32]bool
	changes    []memberReport // assigned, revoked and lost, in order
	heartbeats int
	left       bool
	failed     string
	notes      logTail
}

// audience is told all that members report, in the order of each.
type audience interface {
	hear(from *memberProcess, r memberReport)
}

// startMember starts a member. It is killed at the end of the test if it still runs
// then.
func startMember(t testing.TB, spec memberSpec, to audience) *memberProcess {
	t.Helper()
	m := &memberProcess{t: t, spec: spec, stderr: &logTail{}, exited: make(chan struct{}), owned: map[int32]bool{}}
	m.cmd = memberCommand(t, spec)
	stdin, err := m.cmd.StdinPipe()
	must(t, err)
	stdout, err := m.cmd.StdoutPipe()
	must(t, err)
	stderr, err := m.cmd.StderrPipe()
	must(t, err)
	must(t, m.cmd.Start())
	m.stdin = stdin
	t.Cleanup(m.cleanup)
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			m.stderr.add(lines.Text())
		}
	})
	reading.Go(func() { m.listen(stdout, to) })
	go func() {
		reading.Wait()
		_ = m.cmd.Wait() // How it ended is in left and failed.
		close(m.exited)
	}()
	return m
}

func memberCommand(t testing.TB, spec memberSpec) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(spec)
	must(t, err)
	var cmd *exec.Cmd
	if spec.Client == "kafkajs" {
		cmd = exec.Command("node", filepath.Join("..", "js", "member.js"))
	} else {
		self, err := os.Executable()
		must(t, err)
		cmd = exec.Command(self)
	}
	cmd.Env = append(os.Environ(), memberEnv+"="+string(text))
	return cmd
}

// listen takes in what the member says until it ends.
func (m *memberProcess) listen(stdout io.Reader, to audience) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r memberReport
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			m.stderr.add(lines.Text())
			continue
		}
		to.hear(m, r)
		if r.Event != eventRecords {
			m.heard(r)
		}
	}
	_, _ = io.Copy(io.Discard, stdout)
}

func (m *memberProcess) heard(r memberReport) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.Event {
	case eventAssigned:
		m.changes = append(m.changes, r)
		for _, p := range r.Partitions {
			m.owned[p] = true
		}
	case eventRevoked, eventLost:
		m.changes = append(m.changes, r)
		for _, p := range r.Partitions {
			delete(m.owned, p)
		}
	case eventHeartbeats:
		m.heartbeats = r.Count
	case eventLeft:
		m.left = true
	case eventFailed:
		m.failed = r.Text
	case eventNote:
		m.notes.add(r.Text)
	}
}

// owns returns the partitions that the member says it has, of its topic.
func (m *memberProcess) owns() []slot {
	m.mu.Lock()
	defer m.mu.Unlock()
	var owned []slot
	for p := range m.owned {
		owned = append(owned, slot{m.spec.Topic, p})
	}
	slices.SortFunc(owned, slotOrder)
	return owned
}

// history returns the assignments, revocations and losses so far.
func (m *memberProcess) history() []memberReport {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.changes)
}

func (m *memberProcess) beats() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.heartbeats
}

// trouble says what is wrong with a member that ought to be running.
func (m *memberProcess) trouble() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed != "" {
		return fmt.Errorf("member %s failed: %s", m.spec.ClientID, m.failed)
	}
	select {
	case <-m.exited:
		return fmt.Errorf("member %s is gone", m.spec.ClientID)
	default:
		return nil
	}
}

// leave makes the member leave the group and end.
func (m *memberProcess) leave() {
	m.t.Helper()
	if _, err := io.WriteString(m.stdin, "leave\n"); err != nil {
		m.t.Fatalf("member %s: %v\n%s", m.spec.ClientID, err, m)
	}
	waitFor(m.t, "member "+m.spec.ClientID+" to leave", func() error {
		select {
		case <-m.exited:
			return nil
		default:
			return fmt.Errorf("still running\n%s", m)
		}
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	assert.MustTrue(m.t, m.left, "member %s did not leave in peace: %s\n%s", m.spec.ClientID, m.failed, m.stderr)
}

// crash ends the member without a word to the coordinator.
func (m *memberProcess) crash() {
	_ = m.cmd.Process.Kill()
	<-m.exited
}

// stall stops the member: it neither polls nor heartbeats until it resumes.
func (m *memberProcess) stall() { m.signal(syscall.SIGSTOP) }

func (m *memberProcess) resume() { m.signal(syscall.SIGCONT) }

func (m *memberProcess) signal(s syscall.Signal) {
	m.t.Helper()
	assert.Must(m.t, m.cmd.Process.Signal(s), "member %s", m.spec.ClientID)
}

func (m *memberProcess) cleanup() {
	select {
	case <-m.exited:
	default:
		m.crash()
	}
	if m.t.Failed() {
		m.t.Logf("member %s: %s", m.spec.ClientID, m)
	}
}

// String tells what the member went through, for people.
func (m *memberProcess) String() string {
	return fmt.Sprintf("%+v\nnotes:\n%s\nstderr:\n%s", m.history(), &m.notes, m.stderr)
}
