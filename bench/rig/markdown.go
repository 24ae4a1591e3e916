package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// The tables stand between these lines; the rest of the file is left alone.
const (
	beginMarker       = "<!-- bench: begin -->\n"
	endMarker         = "<!-- bench: end -->\n"
	beginGroupsMarker = "<!-- bench groups: begin -->\n"
	endGroupsMarker   = "<!-- bench groups: end -->\n"
	beginRedisMarker  = "<!-- bench redis: begin -->\n"
	endRedisMarker    = "<!-- bench redis: end -->\n"
	beginTxnsMarker   = "<!-- bench txns: begin -->\n"
	endTxnsMarker     = "<!-- bench txns: end -->\n"
)

// writeMarkdown puts the tables into a file: one of groups, one of Redis, one of
// transactions, and one of the rest.
// A table that the run has no rows of stays as it is.
func (r *Report) writeMarkdown(name string) error {
	old, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = []byte("# Benchmarks\n\n"+beginMarker+endMarker+"\n"+beginGroupsMarker+endGroupsMarker+"\n"+beginRedisMarker+endRedisMarker+"\n"+beginTxnsMarker+endTxnsMarker), nil
	}
	if err != nil {
		return err
	}
	var rows, groups, redis, txns []*row
	for _, row := range r.rows {
		switch kind, _, _ := strings.Cut(row.Group, " "); kind {
		case "groups":
			groups = append(groups, row)
		case "redis":
			redis = append(redis, row)
		case "txns":
			txns = append(txns, row)
		default:
			rows = append(rows, row)
		}
	}
	text, err := r.putTable(string(old), beginMarker, endMarker, rows)
	if err == nil {
		text, err = r.putTable(text, beginGroupsMarker, endGroupsMarker, groups)
	}
	if err == nil {
		text, err = r.putTable(text, beginRedisMarker, endRedisMarker, redis)
	}
	if err == nil {
		text, err = r.putTable(text, beginTxnsMarker, endTxnsMarker, txns)
	}
	if err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

// putTable puts a table between markers.
func (r *Report) putTable(text, begin, end string, rows []*row) (string, error) {
	if len(rows) == 0 {
		return text, nil
	}
	before, rest, ok := strings.Cut(text, begin)
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		return "", fmt.Errorf("has no lines %q and %q to put the table between", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + r.markdown(rows) + end + after, nil
}

func (r *Report) markdown(rows []*row) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s` on %s:\n\n", r.Command, r.Setting())
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(columns)
	line([]string{"---", "---", "---", "---:", "---:", "---:", "---"})
	for _, row := range rows {
		line(row.cells())
	}
	return b.String()
}
