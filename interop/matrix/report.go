package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// result is what came of a row with one store.
type result struct {
	version string
	passed  []string // the checks
	broken  []string
	err     error // how the program failed
	output  string
	took    time.Duration
}

func (r *result) failed() bool { return r.err != nil || len(r.broken) > 0 || len(r.passed) == 0 }

// parse reads what the program said.
func (r *result) parse() {
	for line := range strings.Lines(r.output) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "version":
			r.version = rest
		case "ok":
			r.passed = append(r.passed, rest)
		case "FAILED":
			r.broken = append(r.broken, rest)
		}
	}
}

// print says what came of a row, with all that its program said if it failed.
func (r *result) print(store, name string) {
	verdict := "passed"
	if r.failed() {
		verdict = "FAILED"
	}
	text := fmt.Sprintf("%s  %-6s %-28s %-8s %2d checks  %5.1f s\n", verdict, store, name, r.version, len(r.passed), r.took.Seconds())
	if r.failed() {
		text += fmt.Sprintf("%s%s: %v\n", r.output, name, r.err)
	}
	fmt.Print(text)
}

// cell is a row's entry for a store.
func (r *result) cell() string {
	switch {
	case !r.failed():
		return "passed"
	case len(r.broken) > 0:
		return "**failed**: " + strings.Join(r.broken, "; ")
	}
	return "**failed**"
}

func (m *matrix) failures() int {
	n := 0
	for _, results := range m.results {
		for _, r := range results {
			if r.failed() {
				n++
			}
		}
	}
	return n
}

const intro = `# Clients

Written by ` + "`make interop`" + `, which runs each of these clients against a fresh broker, once for each store, and fails if one of them does
not get what it would get from Kafka. The programs are in [interop](../interop).
Clients that are logged in are tried on a second broker, where rules say what each may do.

`

// markdown is the matrix for people. It is the same after each run in which all
// went well.
func (m *matrix) markdown() string {
	var b strings.Builder
	b.WriteString(intro)
	fmt.Fprintf(&b, "| client | version | what was tried | %s |\n", strings.Join(m.stores, " | "))
	fmt.Fprintf(&b, "|---|---|---|%s\n", strings.Repeat("---|", len(m.stores)))
	for _, r := range m.rows {
		var cells, tried []string
		version := ""
		for _, store := range m.stores {
			res := m.results[store][r.name]
			cells = append(cells, res.cell())
			version = res.version
			for _, c := range slices.Concat(res.passed, res.broken) {
				if !slices.Contains(tried, c) {
					tried = append(tried, c)
				}
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.TrimRight(r.name, " 0123456789"), version, grouped(tried), strings.Join(cells, " | "))
	}
	return b.String()
}

// grouped lists checks that are called "group: name" by their groups.
func grouped(checks []string) string {
	var groups []string
	names := map[string][]string{}
	for _, c := range checks {
		group, name, _ := strings.Cut(c, ": ")
		if !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
		names[group] = append(names[group], name)
	}
	for i, group := range groups {
		groups[i] = fmt.Sprintf("**%s:** %s", group, strings.Join(names[group], "; "))
	}
	return strings.Join(groups, "<br>")
}
