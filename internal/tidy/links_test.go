package tidy

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// link is a link in Markdown, or the source of a picture, and heading a title that links
// can name.
var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
)

func TestLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	names, err := walk(root)
	if err != nil {
		t.Fatal(err)
	}
	documents := 0
	for _, name := range names {
		if path.Ext(name) != ".md" {
			continue
		}
		documents++
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		report(t, checkLinks(name, string(text), func(target string) (string, bool) {
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(target)))
			if err != nil {
				_, err = os.Stat(filepath.Join(root, filepath.FromSlash(target))) // A folder, then.
			}
			return string(text), err == nil
		}))
	}
	if documents < 10 {
		t.Errorf("only %d documents were looked at", documents)
	}
}

// checkLinks finds the links to files that are not there, and to headings that a document
// does not have. Links to other sites are not followed.
func checkLinks(name, text string, read func(target string) (string, bool)) []string {
	var problems []string
	for _, m := range link.FindAllStringSubmatch(text, -1) {
		if strings.Contains(m[1], "://") {
			continue
		}
		file, anchor, _ := strings.Cut(m[1], "#")
		target, there := text, true
		if file != "" {
			target, there = read(path.Join(path.Dir(name), file))
		}
		switch {
		case !there:
			problems = append(problems, fmt.Sprintf("%s: links to %s, which is not there", name, m[1]))
		case anchor != "" && !hasHeading(target, anchor):
			problems = append(problems, fmt.Sprintf("%s: links to %s, which has no such heading", name, m[1]))
		}
	}
	return problems
}

// hasHeading says whether a document has a heading that is found under an anchor: in small
// letters, with hyphens for spaces, and without punctuation.
func hasHeading(text, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r > 127:
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		if slug == anchor {
			return true
		}
	}
	return false
}

func TestCheckLinksFindsWhatIsNotThere(t *testing.T) {
	read := func(target string) (string, bool) {
		return "# B\n\n## Where it's at, `now`\n", target == "docs/b.md" || target == "docs/img/x.svg"
	}
	good := "[b](b.md) [at](b.md#where-its-at-now) ![x](img/x.svg) [here](#a) [site](https://example.org/x.md)\n\n# A\n"
	wantProblems(t, checkLinks("docs/a.md", good, read))
	wantProblems(t, checkLinks("docs/a.md", "[c](c.md) [b](../b.md) [at](b.md#where) [here](#there)", read),
		"docs/a.md: links to c.md, which is not there", "links to ../b.md, which is not there",
		"links to b.md#where, which has no such heading", "links to #there, which has no such heading")
}
