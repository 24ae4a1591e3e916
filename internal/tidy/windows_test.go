package tidy

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program runs on Windows, where few of those who change it try it. To check its types
// takes seconds; to compile it, with all that it is built from, takes minutes.
func TestItCompilesForWindows(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{root, filepath.Join(root, "bench")} {
		problems, err := compiles(dir, "windows")
		if err != nil {
			t.Fatal(err)
		}
		report(t, problems)
	}
}

func TestWhatDoesNotCompileForWindowsIsFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":         "module small\n",
		"a.go":           "package small\n\nimport \"syscall\"\n\nfunc stop() { syscall.Kill(1, syscall.SIGTERM) }\n",
		"a_test.go":      "package small\n\nvar x int = named\n",
		"a_unix_test.go": "//go:build unix\n\npackage small\n\nconst named = 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for goos, wants := range map[string][]string{"linux": nil, "windows": {"undefined: syscall.Kill", "undefined: named"}} {
		problems, err := compiles(dir, goos)
		if err != nil {
			t.Fatal(err)
		}
		found := strings.Join(problems, "\n")
		if wants == nil && found != "" {
			t.Errorf("for %s: %s", goos, found)
		}
		for _, want := range wants {
			if !strings.Contains(found, want) {
				t.Errorf("for %s: %q is not in %q", goos, want, found)
			}
		}
	}
}

// listed is what go list says of a package. Packages with tests in them are other packages
// than those without: their paths say for which tests they are.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ Main bool }
}

// compiles checks the types of a module and its tests, as they are on another system.
func compiles(dir, goos string) (problems []string, err error) {
	cmd := exec.Command("go", "list", "-deps", "-test", "-json=ImportPath,Dir,GoFiles,ImportMap,Module", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0", "GOWORK=off")
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil, fmt.Errorf("go list: %w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, err
	}
	c := checked{files: token.NewFileSet(), packages: map[string]*types.Package{"unsafe": types.Unsafe}}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return c.problems, nil
		} else if err != nil {
			return nil, err
		}
		// The mains of tests are the go command's.
		if p.ImportPath != "unsafe" && !strings.HasSuffix(p.ImportPath, ".test") {
			if err := c.check(&p); err != nil {
				return nil, err
			}
		}
	}
}

type checked struct {
	files    *token.FileSet
	packages map[string]*types.Package
	problems []string
}

// check checks a package after all that it imports.
func (c *checked) check(p *listed) error {
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(c.files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	ours := p.Module != nil && p.Module.Main
	config := types.Config{
		IgnoreFuncBodies: !ours,
		Sizes:            types.SizesFor("gc", "amd64"),
		Importer: imports(func(path string) (*types.Package, error) {
			if as, ok := p.ImportMap[path]; ok {
				path = as
			}
			if found := c.packages[path]; found != nil {
				return found, nil
			}
			return nil, fmt.Errorf("%s imports %s, which go list does not name before", p.ImportPath, path)
		}),
		Error: func(err error) {
			if ours {
				c.problems = append(c.problems, err.Error())
			}
		},
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	c.packages[p.ImportPath], _ = config.Check(path, c.files, files, nil) // The errors are in problems.
	return nil
}

type imports func(path string) (*types.Package, error)

func (i imports) Import(path string) (*types.Package, error) { return i(path) }
