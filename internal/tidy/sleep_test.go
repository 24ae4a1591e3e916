package tidy

import (
	"fmt"
	"go/ast"
	"testing"
)

// sleepExceptions lists the tests that may sleep, as "path:Function", with the
// reason. An entry that is no longer needed fails the test.
var sleepExceptions = map[string]string{}

func TestTestsDoNotSleep(t *testing.T) {
	report(t, checkSleeps(tree(t), sleepExceptions))
}

// checkSleeps finds time.Sleep in test files. Inside synctest.Test the clock is
// a fake one and to sleep is how a test moves it, so that is no offence.
func checkSleeps(sources []*source, exceptions map[string]string) []string {
	var problems []string
	needed := make(map[string]bool)
	for _, s := range sources {
		if !s.isTest() {
			continue
		}
		for _, f := range functions(s) {
			key := s.path + ":" + f.name
			for _, sleep := range sleeps(s.imported(), f.node) {
				if exceptions[key] != "" {
					needed[key] = true
					continue
				}
				problems = append(problems, fmt.Sprintf("%s: %s sleeps: wait for what it needs, or use testing/synctest", s.at(sleep.Pos()), f.name))
			}
		}
	}
	for key := range exceptions {
		if !needed[key] {
			problems = append(problems, key+": no longer sleeps, remove it from sleepExceptions")
		}
	}
	return problems
}

// sleeps finds the references to time.Sleep under a node, calls of
// synctest.Test left out.
func sleeps(imported map[string]string, node ast.Node) []ast.Node {
	var found []ast.Node
	ast.Inspect(node, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if pkg, name := qualified(imported, call.Fun); pkg == "testing/synctest" && name == "Test" {
				return false
			}
		}
		if pkg, name := qualified(imported, n); pkg == "time" && name == "Sleep" {
			found = append(found, n)
		}
		return true
	})
	return found
}

func TestCheckSleepsFindsSleepingTests(t *testing.T) {
	const text = `package a

import (
	"testing"
	"testing/synctest"
	clock "time"
)

func TestBad(t *testing.T) { clock.Sleep(1) }

func TestHidden(t *testing.T) { wait := clock.Sleep; wait(1) }

func TestGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { clock.Sleep(1) })
}

var helper = func() { clock.Sleep(1) }
`
	test := []*source{fixture(t, "a/a_test.go", text)}
	wantProblems(t, checkSleeps(test, nil),
		"a/a_test.go:9: TestBad sleeps", "a/a_test.go:11: TestHidden sleeps", "a/a_test.go:17: func17 sleeps")
	wantProblems(t, checkSleeps([]*source{fixture(t, "a/a.go", text)}, nil))

	wantProblems(t, checkSleeps(test, map[string]string{
		"a/a_test.go:TestBad": "r", "a/a_test.go:TestHidden": "r", "a/a_test.go:func17": "r", "a/a_test.go:TestGone": "r",
	}), "a/a_test.go:TestGone: no longer sleeps")
}
