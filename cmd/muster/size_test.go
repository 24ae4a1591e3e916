package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// maxBinary is how large the stripped binary for linux/amd64 may be. What makes it much larger
// is mostly not code of ours: with a call of reflect.Value.MethodByName, as in text/template,
// the linker keeps every exported method. Of what is generic there is a copy for each kind of
// struct: slices.SortFunc takes 25 kB of the binary with each, sort.Slice next to nothing, and
// is as good where speed does not matter.
const maxBinary = 28_000_000

// The packages are compiled as they are for the tests, so that it mostly links.
func TestTheBinaryIsSmall(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("the limit is that of linux/amd64")
	}
	if testing.Short() {
		t.Skip("links the program, whatever the tests are built with")
	}
	program := filepath.Join(t.TempDir(), "muster")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-ldflags", "-s -w", "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(program)
	must(t, err)
	if info.Size() > maxBinary {
		t.Errorf("the binary has %d bytes, more than %d; go build -ldflags=-dumpdep says what keeps what", info.Size(), maxBinary)
	}
}
