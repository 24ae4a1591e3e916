package tidy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mapLine is a line of the map: a folder, and what is in it.
var mapLine = regexp.MustCompile(`(?m)^([a-z][\w./]*/) +\S`)

func TestTheMapHasALineForEveryPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, s := range tree(t) {
		if !s.isTest() && s.dir() != "." && !slices.Contains(folders, s.dir()) {
			folders = append(folders, s.dir())
		}
	}
	report(t, checkMap(string(text), folders, func(folder string) bool {
		_, err := os.Stat(filepath.Join(root, filepath.FromSlash(folder)))
		return err == nil
	}))
}

// checkMap compares the map of a document with the folders that have packages. Other folders
// may be in it, if they exist.
func checkMap(document string, packages []string, exists func(folder string) bool) []string {
	_, document, _ = strings.Cut(document, "## Where things live\n")
	document, _, _ = strings.Cut(document, "\n## ")
	var problems, mapped []string
	for _, m := range mapLine.FindAllStringSubmatch(document, -1) {
		folder := strings.TrimSuffix(m[1], "/")
		if slices.Contains(mapped, folder) {
			problems = append(problems, fmt.Sprintf("CONTRIBUTING.md: the map has %s/ twice", folder))
		}
		if !exists(folder) {
			problems = append(problems, fmt.Sprintf("CONTRIBUTING.md: the map has %s/, which is not there", folder))
		}
		mapped = append(mapped, folder)
	}
	for _, folder := range packages {
		if !slices.Contains(mapped, folder) {
			problems = append(problems, fmt.Sprintf("CONTRIBUTING.md: the map has no line of %s/: say in one line what the package is for", folder))
		}
	}
	return problems
}

func TestCheckMapFindsMissingAndStaleLines(t *testing.T) {
	const document = "internal/c/  not in the map\n\n## Where things live\n\n```\ninternal/a/  one\ninternal/b/c/   two\ndocs/  pages\ngone/  nothing\ninternal/a/  again\n```\n\n## Habits\n\ninternal/c/  nor here\n"
	there := func(folder string) bool { return folder != "gone" }
	wantProblems(t, checkMap(document, []string{"internal/a", "internal/b/c", "internal/c"}, there),
		"the map has gone/, which is not there", "the map has internal/a/ twice", "the map has no line of internal/c/")
}
