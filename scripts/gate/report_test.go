package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

func TestOutputOfWhatFailedIsPrintedAndNothingElse(t *testing.T) {
	var out strings.Builder
	r := newReport(&out)
	for _, e := range []event{
		{Action: "start", Package: "muster/a"},
		{Action: "start", Package: "muster/b"},
		{Action: "output", Package: "muster/a", Test: "TestGood", Output: "chatter\n"},
		{Action: "output", Package: "muster/b", Test: "TestFine", Output: "more chatter\n"},
		{Action: "output", Package: "muster/a", Test: "TestBad", Output: "it is wrong\n"},
		{Action: "output", Package: "muster/a", Test: "TestCut", Output: "panic: all ends\n"},
		{Action: "pass", Package: "muster/a", Test: "TestGood", Elapsed: 2},
		{Action: "fail", Package: "muster/a", Test: "TestBad", Elapsed: 3},
		{Action: "pass", Package: "muster/b", Test: "TestFine", Elapsed: 1},
		{Action: "output", Package: "muster/a", Output: "FAIL\tmuster/a\n"},
		{Action: "fail", Package: "muster/a", Elapsed: 5},
		{Action: "output", Package: "muster/b", Output: "PASS\n"},
		{Action: "output", Package: "muster/b", Output: "ok  \tmuster/b\n"},
		{Action: "pass", Package: "muster/b", Elapsed: 1},
		{Action: "build-output", ImportPath: "muster/c", Output: "c.go:1: undefined\n"},
		{Action: "start", Package: "muster/c"},
		{Action: "fail", Package: "muster/c"},
	} {
		r.add(e)
	}
	r.slowest(map[string]cost{"/src/a": {CPU: time.Second}, "/src/b": {CPU: 2 * time.Second}}, 9*time.Second)
	want := `it is wrong
FAIL	muster/a
ok  	muster/b
c.go:1: undefined

slowest tests
     3.0 s  muster/a TestBad
     2.0 s  muster/a TestGood
     1.0 s  muster/b TestFine
most expensive packages, of 3 s of processor time in 9 s (without building)
     2.0 s  muster/b in 1.0 s
     1.0 s  muster/a in 5.0 s
     0.0 s  muster/c in 0.0 s
failed: muster/a TestBad
failed: muster/c
`
	if got := out.String(); got != "panic: all ends\n"+want {
		t.Errorf("printed:\n%s", got)
	}
}

// A binary gives its exit code on, and what it took is noted.
func TestTheCostOfABinaryIsNoted(t *testing.T) {
	costs, err := os.CreateTemp(t.TempDir(), "costs")
	if err != nil {
		t.Fatal(err)
	}
	defer costs.Close()
	for command, want := range map[string]int{"exit 3": 3, "true": 0, "kill $$": 1} {
		if code := measure(costs.Name(), []string{"sh", "-c", command}); code != want {
			t.Errorf("%s: %d", command, code)
		}
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	spent, err := readCosts(costs)
	if err != nil || spent[dir].Wall == 0 {
		t.Errorf("noted: %v, %v", spent, err)
	}
}
