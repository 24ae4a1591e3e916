package tidy

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"
)

// The patterns are put together from parts, since this file is searched too.
var (
	machinePath = regexp.MustCompile(`(^|[^\w.\-/])/` + `(work|root|home|Users)` + `/`)
	unfinished  = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`)
)

func TestNoFileNamesAPathOfOneMachine(t *testing.T) {
	names, err := walk(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkText(name, text, machinePath, "names a path of one machine"))
	}
}

func TestNoGoFileIsLeftUnfinished(t *testing.T) {
	for _, s := range tree(t) {
		report(t, checkText(s.path, []byte(s.text), unfinished, "leaves something for later: do it, or open an issue"))
	}
}

// checkText complains about every line of a text file that matches.
func checkText(name string, text []byte, pattern *regexp.Regexp, complaint string) []string {
	if bytes.IndexByte(text, 0) >= 0 || path.Base(name) == "go.sum" {
		return nil
	}
	var problems []string
	number := 0
	for line := range bytes.Lines(text) {
		number++
		if pattern.Match(line) {
			problems = append(problems, fmt.Sprintf("%s:%d: %s: %q", name, number, complaint, bytes.TrimSpace(line)))
		}
	}
	return problems
}

func TestCheckTextFindsMachinePaths(t *testing.T) {
	bad := "see /" + "home/ann/notes\nfine\n/" + "root/x\nfile:'/" + "work/x'\n"
	wantProblems(t, checkText("a.md", []byte(bad), machinePath, "path"),
		"a.md:1: path", "a.md:3: path", "a.md:4: path")

	good := "https://example.org/" + "home/x\ninternal/" + "work/x\n./" + "home/\n"
	wantProblems(t, checkText("a.md", []byte(good), machinePath, "path"))
	wantProblems(t, checkText("a.bin", []byte("\x00/"+"home/"), machinePath, "path"))
}

func TestCheckTextFindsUnfinishedWork(t *testing.T) {
	bad := "// TO" + "DO(ann): more\nx := context.TO" + "DO()\n// FIX" + "ME\n// XX" + "X\n"
	wantProblems(t, checkText("a.go", []byte(bad), unfinished, "later"),
		"a.go:1", "a.go:2", "a.go:3", "a.go:4")
	wantProblems(t, checkText("a.go", []byte("// TO"+"DOS\nXX"+"X_field\n"), unfinished, "later"))
}
