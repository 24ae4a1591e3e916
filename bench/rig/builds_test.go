package rig

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"muster/internal/assert"
)

func TestSmallRunComparesBuildsAndLeavesNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the clocks of other processes")
	}
	if testing.Short() {
		t.Skip("builds the broker")
	}
	program := filepath.Join(t.TempDir(), "muster")
	if out, err := exec.Command("go", "build", "-C", "../..", "-o", program, "./cmd/muster").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	dir := t.TempDir()
	o := &buildOptions{
		Options: &Options{Rounds: 2, Only: regexp.MustCompile(""), Dir: dir, Broker: program, Timeout: 2 * time.Minute, Group: DefaultGroupSizes()},
		before:  program, pairs: 3, groups: 5, burst: 0.02,
	}
	var stdout, stderr bytes.Buffer
	if err := RunBuilds(t.Context(), o, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	for _, m := range buildMeasures(1, 1) {
		line := regexp.MustCompile(`(?m)^` + m.name + `  .* \d+\.\d{3} \(\d+\.\d{3}–\d+\.\d{3}\)`)
		if !line.MatchString(stdout.String()) {
			t.Errorf("no ratio of %s in\n%s", m.name, &stdout)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestFlagsOfBuildsAreChecked(t *testing.T) {
	for _, args := range [][]string{{}, {"-before", "x", "-rounds", "0"}, {"-before", "x", "-pairs", "0"}, {"-before", "x", "-groups", "0"}, {"-before", "x", "-only", "("}, {"-before", "x", "y"}} {
		if _, err := ParseBuilds(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	o, err := ParseBuilds([]string{"-before", "x", "-only", "nonsense"}, &bytes.Buffer{})
	assert.Must(t, err)
	o.Broker, o.Dir = "y", t.TempDir()
	if err := RunBuilds(t.Context(), o, &bytes.Buffer{}, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "matches nothing") {
		t.Error(err)
	}
}

func TestIntervalHoldsTheMedian(t *testing.T) {
	var v []float64
	for i := range 101 {
		v = append(v, float64(i))
	}
	low, high := interval(v)
	assert.True(t, low < 50 && high > 50 && low >= 38 && high <= 62, "%v to %v", low, high)
	if low, high := interval([]float64{3}); low != 3 || high != 3 {
		t.Errorf("%v to %v", low, high)
	}
}
