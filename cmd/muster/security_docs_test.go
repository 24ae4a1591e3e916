package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/cmd/muster/internal/cli"
	"muster/internal/assert"
)

const (
	securityDoc = "../../docs/security.md"
	// asMain has the test's own program be muster.
	asMain = "MUSTER_TEST_IS_MUSTER"
)

// docCommands returns the commands of a document: what follows a $ in its blocks.
func docCommands(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(name)
	must(t, err)
	var out []string
	inside, more := false, false
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		command, first := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case inside && first:
			out = append(out, command)
		case inside && more:
			out[len(out)-1] += line
		default:
			continue
		}
		if inside && len(out) > 0 {
			out[len(out)-1], more = strings.CutSuffix(out[len(out)-1], "\\")
		}
	}
	return out
}

// TestTheCommandsOfTheSecurityDocumentWork runs them as they stand there, but for the port.
func TestTheCommandsOfTheSecurityDocumentWork(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl")
	}
	program, err := os.Executable()
	must(t, err)
	folder, bin := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\n" + asMain + "=1 exec '" + program + "' \"$@\"\n"
	must(t, os.WriteFile(filepath.Join(bin, "muster"), []byte(script), 0o755))
	address := freeAddress(t)
	shell := func(line string) *exec.Cmd {
		line = strings.ReplaceAll(line, "127.0.0.1:9092", address)
		c := exec.CommandContext(t.Context(), "sh", "-c", line)
		c.Dir, c.Env = folder, append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), cli.BrokerEnv+"="+address)
		return c
	}
	commands := docCommands(t, securityDoc)
	assert.MustTrue(t, len(commands) >= 5, "the document has %d commands", len(commands))
	outputs := map[string]string{}
	for _, line := range commands {
		if background, ok := strings.CutSuffix(line, "&"); ok {
			runBroker(t, shell("exec "+background), address)
			continue
		}
		var out []byte
		eventually(t, func() error { // No one waits for the audit log.
			var err error
			if out, err = shell(line).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
			if strings.HasPrefix(line, "muster audit") && !strings.Contains(string(out), "was denied") {
				return errors.New(string(out))
			}
			return nil
		})
		outputs[strings.Join(strings.Fields(line)[:3], " ")] = string(out)
	}
	for line, want := range map[string]string{
		"muster users create":   "created user alice",
		"muster acls add":       "added: ALLOW User:alice ALL on topic orders from any host",
		"muster consume orders": "hello",
		"muster acls why":       "User:alice may not CREATE topic payments",
		"muster audit --kind":   "was denied CREATE on",
		"! muster topics":       "authorization",
		"muster topics create":  "created topic orders",
	} {
		if !strings.Contains(strings.ToLower(outputs[line]), strings.ToLower(want)) {
			t.Errorf("%s printed %q, which does not have %q", line, outputs[line], want)
		}
	}
}

// runBroker starts a broker, waits until someone can connect, and stops it at the end.
func runBroker(t *testing.T, c *exec.Cmd, address string) {
	t.Helper()
	c.Stdout, c.Stderr = t.Output(), t.Output()
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			t.Logf("the broker: %v", err) // It was told to stop, by us or by the end of the test.
		}
	})
	eventually(t, func() error {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}
