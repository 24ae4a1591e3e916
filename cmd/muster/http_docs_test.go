package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/cmd/muster/internal/cli"
	"muster/internal/assert"
)

const httpDoc = "../../docs/http.md"

// TestTheCommandsOfTheHTTPDocumentWork runs them as they stand there, but for the ports.
func TestTheCommandsOfTheHTTPDocumentWork(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	program, err := os.Executable()
	must(t, err)
	bin := t.TempDir()
	script := "#!/bin/sh\n" + asMain + "=1 exec '" + program + "' \"$@\"\n"
	must(t, os.WriteFile(filepath.Join(bin, "muster"), []byte(script), 0o755))
	kafka, web := freeAddress(t), freeAddress(t)
	shell := func(line string) *exec.Cmd {
		line = strings.ReplaceAll(strings.ReplaceAll(line, "curl ", "curl --fail-with-body "), cli.DefaultHTTP, web)
		c := exec.CommandContext(t.Context(), "sh", "-c", line)
		c.Dir = t.TempDir()
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), cli.BrokerEnv+"="+kafka, "MUSTER_LISTENERS=PLAINTEXT://"+kafka, "MUSTER_HTTP_LISTENER="+web)
		return c
	}
	commands := docCommands(t, httpDoc)
	assert.MustTrue(t, len(commands) >= 10, "the document has %d commands", len(commands))
	for _, line := range commands {
		if background, ok := strings.CutSuffix(line, "&"); ok && !strings.HasPrefix(line, "curl") {
			runBroker(t, shell("exec "+background), kafka)
			continue
		}
		out, err := shell(line).Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		assert.False(t, (strings.HasPrefix(line, "curl") && !strings.Contains(line, "csv")) && !areJSON(out), "%s printed %s", line, out)
	}
}

// areJSON says whether something is JSON, one document after the other.
func areJSON(out []byte) bool {
	d := json.NewDecoder(bytes.NewReader(out))
	for n := 0; ; n++ {
		var any json.RawMessage
		switch err := d.Decode(&any); {
		case errors.Is(err, io.EOF):
			return n > 0
		case err != nil:
			return false
		}
	}
}

func TestHelpTellsOfTLSOverHTTP(t *testing.T) {
	out := (&shell{t: t}).run("serve", "--help").ok()
	says(t, out, "https://host:port for TLS", "muster.http.ssl.keystore.location")
}
