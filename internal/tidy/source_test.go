package tidy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	root   = "../.."
	module = "muster"
)

// source is one parsed Go file. Its path is relative to the root of the
// repository and slash-separated.
type source struct {
	path string
	text string
	ast  *ast.File
}

// fset knows the positions of all files, so that a rule may type-check several
// of them together.
var fset = token.NewFileSet()

// dir is the folder of the file, "." for the root package.
func (s *source) dir() string { return path.Dir(s.path) }

func (s *source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// at names a place in the file the way compilers do.
func (s *source) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", s.path, fset.Position(pos).Line)
}

// lines is the number of source lines from the first to the last, inclusive.
func (s *source) lines(first, last token.Pos) int {
	return fset.Position(last).Line - fset.Position(first).Line + 1
}

// imported maps the name under which the file knows a package to its path.
func (s *source) imported() map[string]string {
	names := make(map[string]string)
	for _, spec := range s.ast.Imports {
		p := importPath(spec)
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		} else if strings.HasPrefix(name, "v") && strings.Trim(name[1:], "0123456789") == "" {
			name = path.Base(path.Dir(p))
		}
		names[name] = p
	}
	return names
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		panic(err) // The parser has accepted it as a string.
	}
	return p
}

// qualified returns the import path and the name of a reference such as
// time.Now, and two empty strings for any other expression.
func qualified(imported map[string]string, n ast.Node) (pkg, name string) {
	sel, ok := n.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok || imported[id.Name] == "" {
		return "", ""
	}
	return imported[id.Name], sel.Sel.Name
}

func parse(name, text string) (*source, error) {
	f, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{path: name, text: text, ast: f}, nil
}

// fixture parses a source written inside a test.
func fixture(t *testing.T, name, text string) *source {
	t.Helper()
	s, err := parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// loadTree parses every Go file of the repository, once for all tests.
var loadTree = sync.OnceValues(func() ([]*source, error) {
	names, err := walk(root)
	if err != nil {
		return nil, err
	}
	var sources []*source
	for _, name := range names {
		if path.Ext(name) != ".go" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return nil, err
		}
		s, err := parse(name, string(text))
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
})

// tree returns the Go files of the repository.
func tree(t *testing.T) []*source {
	t.Helper()
	sources, err := loadTree()
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) == 0 {
		t.Fatal("no Go file found: the tests look in the wrong place")
	}
	return sources
}

// walk lists the files of the repository. What Git ignores (the built
// binaries, the broker's data) and what others maintain is left out.
func walk(dir string) ([]string, error) {
	ignored := []string{".git", ".idea", ".vscode", "bin", "data"}
	installed := []string{"node_modules", "target", ".venv"}
	var names []string
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case d.IsDir() && (slices.Contains(ignored, rel) || slices.Contains(installed, d.Name())):
			return fs.SkipDir
		case d.Type().IsRegular() && rel != ".git": // A file in a linked worktree.
			names = append(names, rel)
		}
		return nil
	})
	return names, err
}

// report fails the test once for every problem.
func report(t *testing.T, problems []string) {
	t.Helper()
	for _, p := range problems {
		t.Error(p)
	}
}

// wantProblems checks that a rule complains exactly as often as there are
// wanted texts, and that each complaint contains its text.
func wantProblems(t *testing.T, problems []string, want ...string) {
	t.Helper()
	if len(problems) != len(want) {
		t.Fatalf("got %d problems, want %d:\n%s", len(problems), len(want), strings.Join(problems, "\n"))
	}
	for i, w := range want {
		if !strings.Contains(problems[i], w) {
			t.Errorf("problem %q does not say %q", problems[i], w)
		}
	}
}
