package tidy

import (
	"fmt"
	"strings"
	"testing"
)

// The length of a package comment, in lines. An internal package says what it
// owns and what it never does; the wish is 5 to 30 lines.
const (
	minDoc         = 2
	minInternalDoc = 3
	maxInternalDoc = 40
)

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	report(t, checkDocs(tree(t)))
}

// checkDocs demands one package comment per package. A second one is nearly
// always a file's header without an empty line before the package clause.
func checkDocs(sources []*source) []string {
	var problems, dirs []string
	documented := make(map[string]*source)
	for _, s := range sources {
		if s.isTest() {
			continue
		}
		dir := s.dir()
		first, known := documented[dir]
		if !known {
			dirs = append(dirs, dir)
			documented[dir] = nil
		}
		switch {
		case s.ast.Doc == nil:
		case first != nil:
			problems = append(problems, fmt.Sprintf("%s: a second package comment, %s has the first: put an empty line before the package clause", s.path, first.path))
		default:
			documented[dir] = s
		}
	}
	for _, dir := range dirs {
		s := documented[dir]
		if s == nil {
			problems = append(problems, dir+": the package has no package comment")
			continue
		}
		n := s.lines(s.ast.Doc.Pos(), s.ast.Doc.End())
		switch internal := strings.HasPrefix(dir, "internal/"); {
		case internal && (n < minInternalDoc || n > maxInternalDoc):
			problems = append(problems, fmt.Sprintf("%s: the package comment has %d lines, not %d to %d", s.path, n, minInternalDoc, maxInternalDoc))
		case n < minDoc:
			problems = append(problems, fmt.Sprintf("%s: the package comment has %d lines, fewer than %d", s.path, n, minDoc))
		}
	}
	return problems
}

func TestCheckDocsFindsMissingAndOddPackageComments(t *testing.T) {
	comment := func(n int) string { return strings.Repeat("// A line.\n", n) }
	sources := []*source{
		fixture(t, "internal/none/a.go", "// A header.\n\npackage none\n"),
		fixture(t, "internal/short/a.go", comment(2)+"package short\n"),
		fixture(t, "internal/long/a.go", comment(41)+"package long\n"),
		fixture(t, "internal/twice/a.go", comment(5)+"package twice\n"),
		fixture(t, "internal/twice/b.go", comment(5)+"package twice\n"),
		fixture(t, "cmd/x/main.go", comment(1)+"package main\n"),
		fixture(t, "internal/good/a.go", "package good\n"),
		fixture(t, "internal/good/b.go", comment(5)+"package good\n"),
		fixture(t, "internal/good/b_test.go", comment(5)+"package good\n"),
		fixture(t, "interop/go/a_test.go", "package interop\n"),
	}
	wantProblems(t, checkDocs(sources),
		"internal/twice/b.go: a second package comment, internal/twice/a.go has the first",
		"internal/none: the package has no package comment",
		"internal/short/a.go: the package comment has 2 lines, not 3 to 40",
		"internal/long/a.go: the package comment has 41 lines",
		"cmd/x/main.go: the package comment has 1 lines, fewer than 2")
}
