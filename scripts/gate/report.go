package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// event is a line of go test -json.
type event struct {
	Action     string
	Package    string
	ImportPath string // Instead of Package, of what did not compile.
	Test       string
	Output     string
	Elapsed    float64 // In seconds.
}

// took is how long a test or a package took.
type took struct {
	pkg, test string
	wall      time.Duration
}

// report prints what go test would print, and keeps how long each test took.
type report struct {
	w        io.Writer
	output   map[string]map[string][]string // By package and test, of tests that did not pass yet.
	tests    []took
	packages []took
	failed   []string // Tests, and packages without a failed test.
}

func newReport(w io.Writer) *report { return &report{w: w, output: map[string]map[string][]string{}} }

func (r *report) add(e event) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.w, e.Output)
	case "start":
		r.output[e.Package] = map[string][]string{}
	case "output":
		of := r.output[e.Package]
		if of == nil {
			fmt.Fprint(r.w, e.Output)
			return
		}
		of[e.Test] = append(of[e.Test], e.Output)
	case "pass", "skip", "fail":
		if e.Test == "" {
			r.endPackage(e)
			return
		}
		r.endTest(e)
	}
}

func (r *report) endTest(e event) {
	if !strings.Contains(e.Test, "/") {
		r.tests = append(r.tests, took{pkg: e.Package, test: e.Test, wall: seconds(e.Elapsed)})
	}
	if e.Action != "fail" {
		delete(r.output[e.Package], e.Test)
		return
	}
	r.failed = append(r.failed, e.Package+" "+e.Test)
}

func (r *report) endPackage(e event) {
	r.packages = append(r.packages, took{pkg: e.Package, wall: seconds(e.Elapsed)})
	of := r.output[e.Package]
	delete(r.output, e.Package)
	if e.Action == "fail" {
		// What is left: of tests that failed, or did not end since the binary did.
		names := make([]string, 0, len(of))
		for name := range of {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(b, a) }) // That of the package, without a name, comes last.
		for _, name := range names {
			fmt.Fprint(r.w, strings.Join(of[name], ""))
		}
		if !slices.ContainsFunc(r.failed, func(f string) bool { return strings.HasPrefix(f, e.Package+" ") }) {
			r.failed = append(r.failed, e.Package)
		}
		return
	}
	lines := of[""]
	if len(lines) > 0 {
		fmt.Fprint(r.w, lines[len(lines)-1]) // ok, or that there is no test.
	}
}

// slowest prints what took longest, and again at the very end what failed.
func (r *report) slowest(spent map[string]cost, all time.Duration) {
	bySize := func(a, b took) int { return int(b.wall - a.wall) }
	slices.SortFunc(r.tests, bySize)
	fmt.Fprintf(r.w, "\nslowest tests\n")
	for _, t := range r.tests[:min(listed, len(r.tests))] {
		fmt.Fprintf(r.w, "%8.1f s  %s %s\n", t.wall.Seconds(), t.pkg, t.test)
	}
	cpu := func(t took) time.Duration { return costOf(spent, t.pkg).CPU }
	slices.SortFunc(r.packages, func(a, b took) int { return int(cpu(b) - cpu(a)) })
	var total time.Duration
	for _, c := range spent {
		total += c.CPU
	}
	fmt.Fprintf(r.w, "most expensive packages, of %.0f s of processor time in %.0f s (without building)\n", total.Seconds(), all.Seconds())
	for _, t := range r.packages[:min(listed, len(r.packages))] {
		fmt.Fprintf(r.w, "%8.1f s  %s in %.1f s\n", cpu(t).Seconds(), t.pkg, t.wall.Seconds())
	}
	for _, f := range r.failed {
		fmt.Fprintln(r.w, "failed:", f)
	}
}

// costOf finds the cost of a package: its folder is the end of its path, unless it is
// the only one, of a module with a name of its own.
func costOf(spent map[string]cost, pkg string) cost {
	_, path, _ := strings.Cut(pkg, "/")
	for dir, c := range spent {
		if len(spent) == 1 || strings.HasSuffix(dir, "/"+path) {
			return c
		}
	}
	return cost{}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
