package tidy

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Go visits a map in a random order. In a core that order would reach its
// records and replies, and two replays of one log would differ.
func TestCoresDoNotIterateOverMaps(t *testing.T) {
	packages := make(map[string][]*source)
	for _, s := range tree(t) {
		if !s.isTest() && slices.Contains(core.packages, packageName(s.dir())) {
			packages[s.dir()] = append(packages[s.dir()], s)
		}
	}
	for _, name := range core.packages {
		if _, is := packages["internal/"+name]; is == slices.Contains(plannedCores, name) {
			t.Errorf("internal/%s exists: %t, and is planned: %t", name, is, !is)
		}
	}
	var patterns []string
	for dir := range packages {
		patterns = append(patterns, "./"+dir)
	}
	lookup, err := exportData(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	for _, sources := range packages {
		report(t, checkMapRange(sources, lookup))
	}
}

// plannedCores lists the pure packages that do not exist yet. It only shrinks:
// a rule about packages that are not there checks nothing.
var plannedCores = []string{}

// exportData asks the go command for the compiled form of all that the
// packages import, which is much faster than to type-check it from source.
func exportData(packages ...string) (importer.Lookup, error) {
	args := []string{"list", "-export", "-deps", "-f", "{{if .Export}}{{.ImportPath}}={{.Export}}{{end}}"}
	cmd := exec.Command("go", append(args, packages...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	files := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }, nil
}

// checkMapRange type-checks one package and finds the loops over its maps.
func checkMapRange(sources []*source, lookup importer.Lookup) []string {
	files := make([]*ast.File, len(sources))
	for i, s := range sources {
		files[i] = s.ast
	}
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}
	if _, err := config.Check(sources[0].dir(), fset, files, info); err != nil {
		return []string{err.Error()}
	}
	var problems []string
	for _, s := range sources {
		for _, n := range mapLoops(s, info) {
			problems = append(problems, s.at(n.Pos())+": iterates over a map in random order: keep a sorted slice, or use slices.Sorted(maps.Keys(m))")
		}
	}
	return problems
}

// mapLoops finds range statements over maps, and the iterators of package maps
// unless package slices sorts what they yield.
func mapLoops(s *source, info *types.Info) []ast.Node {
	var found []ast.Node
	imported := s.imported()
	ast.Inspect(s.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.RangeStmt:
			if isMap(info.TypeOf(n.X)) {
				found = append(found, n)
			}
		case *ast.CallExpr:
			if pkg, name := qualified(imported, n.Fun); pkg == "slices" && strings.HasPrefix(name, "Sorted") {
				return false
			}
		case *ast.SelectorExpr:
			if pkg, name := qualified(imported, n); pkg == "maps" && slices.Contains([]string{"All", "Keys", "Values"}, name) {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// isMap says whether a value of the type is a map, or may be one because the
// type is a parameter whose constraint admits maps.
func isMap(t types.Type) bool {
	if t == nil {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Map:
		return true
	case *types.Interface:
		for embedded := range u.EmbeddedTypes() {
			if union, ok := embedded.(*types.Union); ok {
				for term := range union.Terms() {
					if isMap(term.Type()) {
						return true
					}
				}
			}
		}
	}
	return false
}

func TestCheckMapRangeFindsLoopsOverMaps(t *testing.T) {
	first := fixture(t, "internal/group/a.go", `package group

import (
	"maps"
	"slices"
)

func bad(m members, n map[string]int) {
	for range m {
	}
	for k := range n {
		_ = k
	}
	for k := range maps.Keys(n) {
		_ = k
	}
	_ = slices.Collect(maps.Values(n))
}

func alsoBad[M ~map[K]V, K comparable, V any](m M) {
	for range m {
	}
}
`)
	second := fixture(t, "internal/group/b.go", `package group

import (
	"maps"
	"slices"
)

type members map[string]struct{}

func good(m members, list []int, n map[string]int) {
	for range list {
	}
	for range 3 {
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		delete(n, k)
	}
	_ = maps.Clone(n)
}
`)
	lookup, err := exportData("maps", "slices")
	if err != nil {
		t.Fatal(err)
	}
	wantProblems(t, checkMapRange([]*source{first, second}, lookup),
		"a.go:9: iterates", "a.go:11: iterates", "a.go:14: iterates", "a.go:17: iterates", "a.go:21: iterates")

	broken := fixture(t, "internal/group/a.go", "package group\n\nvar x = y\n")
	wantProblems(t, checkMapRange([]*source{broken}, lookup), "undefined: y")
}
