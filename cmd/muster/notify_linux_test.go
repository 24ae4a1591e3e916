package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServeTellsSystemdOfItsState(t *testing.T) {
	for kind, name := range map[string]string{
		"file":     filepath.Join(t.TempDir(), "notify"),
		"abstract": fmt.Sprintf("@muster-notify-%d", os.Getpid()),
	} {
		t.Run(kind, func(t *testing.T) {
			socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
			must(t, err)
			defer socket.Close()
			receive := func() string {
				t.Helper()
				buffer := make([]byte, 512)
				n, err := socket.Read(buffer)
				must(t, err)
				return string(buffer[:n])
			}
			t.Setenv("NOTIFY_SOCKET", name)
			s := startServe(t, "--http", "off")
			same(t, "the first state", receive(), "READY=1")
			(&shell{t, s.ready().Listeners[0].Address}).run("topics", "list").ok()
			must(t, s.stdin.Close())
			same(t, "the second state", receive(), "STOPPING=1")
			same(t, "the exit code", <-s.ended, exitOK)
		})
	}
}

func TestServeGoesOnIfSystemdDoesNotListen(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))
	s := startServe(t, "--http", "off")
	s.ready()
	s.end()
	if !strings.Contains(s.stderr.String(), "tell systemd READY=1") {
		t.Errorf("the log is %s", s.stderr.String())
	}
}
