package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// The table stands between these lines; the rest of the file is left alone.
const (
	beginMarker = "<!-- bench: begin -->\n"
	endMarker   = "<!-- bench: end -->\n"
)

// writeMarkdown puts the table into a file.
func (r *report) writeMarkdown(name string) error {
	old, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = []byte("# Benchmarks\n\n"+beginMarker+endMarker), nil
	}
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), beginMarker)
	_, after, found := strings.Cut(rest, endMarker)
	if !ok || !found {
		return fmt.Errorf("%s has no lines %q and %q to put the table between", name, strings.TrimSpace(beginMarker), strings.TrimSpace(endMarker))
	}
	return os.WriteFile(name, []byte(before+beginMarker+r.markdown()+endMarker+after), 0o644)
}

func (r *report) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s` on %s, %s:\n\n", r.Command, r.Machine, r.Go)
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(columns)
	line([]string{"---", "---", "---", "---:", "---:", "---:", "---"})
	for _, row := range r.rows {
		line(row.cells())
	}
	return b.String()
}
