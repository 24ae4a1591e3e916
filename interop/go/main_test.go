// Package interop runs real Kafka clients, and hand-made requests, against the
// broker: mostly against `muster serve` as a process of its own, since what is
// shown here (kill -9, a full disk, bounded memory, a clean exit) is about the
// process, and otherwise against package muster in this one.
//
// It is a module of its own so that muster does not depend on other clients.
package interop

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"muster/internal/redistest"
)

// musterPath is the muster command, built once for all tests.
var musterPath string

func TestMain(m *testing.M) {
	if matrixBroker != "" {
		os.Exit(m.Run()) // There is a broker.
	}
	dir, err := os.MkdirTemp("", "muster-interop-")
	if err == nil {
		err = buildMuster(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	redistest.Main(m, func() { _ = os.RemoveAll(dir) })
}

func buildMuster(dir string) error {
	musterPath = filepath.Join(dir, "muster")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", musterPath, "./cmd/muster")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build muster: %w\n%s", err, out)
	}
	return nil
}
