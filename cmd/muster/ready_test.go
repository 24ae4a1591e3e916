package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"muster/cmd/muster/internal/cli"
)

// served is muster serve as programs start it: with pipes.
type served struct {
	t      *testing.T
	stdin  *io.PipeWriter
	stdout *bufio.Reader
	stderr bytes.Buffer // Once it has ended.
	ended  chan int
}

func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	stdin, feed := io.Pipe()
	out, printed := io.Pipe()
	s := &served{t: t, stdin: feed, stdout: bufio.NewReader(out), ended: make(chan int, 1)}
	go func() {
		line := append([]string{"serve", "--store", "mem", "--listen", "127.0.0.1:0", "--ready", "--until-eof"}, args...)
		code := run(t.Context(), line, stdin, printed, &s.stderr)
		_ = printed.Close()
		s.ended <- code
	}()
	return s
}

// ready is the line that programs read. A field that is not here fails the test: so it is
// noticed that they have more to read.
type ready struct {
	Listeners []struct{ Name, Address, Advertised string }
	HTTP      string
	PID       int
	Version   string
}

func (s *served) ready() (r ready) {
	s.t.Helper()
	line, err := s.stdout.ReadBytes('\n')
	if err != nil {
		s.t.Fatalf("no line: %v, exit code %d\n%s", err, <-s.ended, s.stderr.String())
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	must(s.t, d.Decode(&r))
	return r
}

// end ends the broker by the end of its stdin.
func (s *served) end() {
	s.t.Helper()
	must(s.t, s.stdin.Close())
	rest, err := io.ReadAll(s.stdout)
	must(s.t, err)
	same(s.t, "the rest of stdout", string(rest), "")
	if code := <-s.ended; code != exitOK {
		s.t.Errorf("exit code %d\n%s", code, s.stderr.String())
	}
}

func TestServeTellsProgramsWhenClientsCanConnectAndEndsWithItsStdin(t *testing.T) {
	t.Setenv("MUSTER_ADVERTISED_LISTENERS", "PLAINTEXT://localhost:0")
	s := startServe(t, "--http", "127.0.0.1:0")
	r := s.ready()
	if len(r.Listeners) != 1 {
		t.Fatalf("listeners %+v", r.Listeners)
	}
	l := r.Listeners[0]
	_, port, err := net.SplitHostPort(l.Address)
	must(t, err)
	same(t, "the listener", l.Name, "PLAINTEXT")
	same(t, "what is advertised", l.Advertised, "localhost:"+port)
	same(t, "the pid", r.PID, os.Getpid())
	same(t, "the version", r.Version, buildVersion().Version)
	(&shell{t, l.Address}).run("topics", "create", "orders").ok()
	tools := &shell{t: t}
	tools.run("health", "--http", r.HTTP).prints("ok\n")
	t.Setenv(cli.HTTPEnv, r.HTTP)
	t.Setenv("MUSTER_HTTP_LISTENER", freeAddress(t)) // It counts for less, as does what else runs on this machine.
	tools.run("health").prints("ok\n")
	t.Setenv(cli.HTTPEnv, "")
	_, port, err = net.SplitHostPort(r.HTTP[len("http://"):])
	must(t, err)
	t.Setenv("MUSTER_HTTP_LISTENER", "0.0.0.0:"+port)
	tools.run("health").prints("ok\n")
	s.end()
	tools.run("health").fails(exitFailed, "muster: no broker answers at http://127.0.0.1:"+port+"/healthz: connection refused")
}

func TestServeWithoutHTTPSaysSo(t *testing.T) {
	s := startServe(t, "--http", "off", "--listen", "127.0.0.1:0")
	r := s.ready()
	same(t, "the address of HTTP", r.HTTP, "")
	same(t, "the number of listeners", len(r.Listeners), 2)
	s.end()
}

func TestServeTellsNoProgramThatItIsReadyIfItIsNot(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	s := startServe(t, "--http", "off", "--listen", taken.Addr().String())
	rest, err := io.ReadAll(s.stdout)
	must(t, err)
	same(t, "stdout", string(rest), "")
	same(t, "the exit code", <-s.ended, exitFailed)
	_ = s.stdin.Close()
}

func TestServePrintsNothingToStdoutUnlessItIsToldTo(t *testing.T) {
	stdin, feed := io.Pipe()
	stderr, written := io.Pipe()
	var stdout bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"serve", "--store", "mem", "--listen", "127.0.0.1:0", "--http", "off", "--until-eof"}, stdin, &stdout, written)
		_ = written.Close()
	}()
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), "broker is up") {
			go feed.Close() // The log is read on.
		}
	}
	same(t, "the exit code", <-ended, exitOK)
	same(t, "stdout", stdout.String(), "")
}
