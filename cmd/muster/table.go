package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table prints rows in aligned columns, numbers to the right.
type table struct {
	titles []string
	right  []bool
	rows   [][]string
}

// newTable makes a table with the given titles. A title that begins with > is
// that of a column of numbers.
func newTable(titles ...string) *table {
	t := &table{titles: make([]string, len(titles)), right: make([]bool, len(titles))}
	for i, title := range titles {
		t.titles[i], t.right[i] = strings.CutPrefix(title, ">")
	}
	return t
}

// add appends a row; it takes one value for each column.
func (t *table) add(values ...any) {
	row := make([]string, len(values))
	for i, v := range values {
		row[i] = fmt.Sprint(v)
	}
	t.rows = append(t.rows, row)
}

// print writes the titles and the rows, with two spaces between columns.
func (t *table) print(w io.Writer) error {
	widths := make([]int, len(t.titles))
	lines := append([][]string{t.titles}, t.rows...)
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, line := range lines {
		for i, cell := range line {
			fill := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch {
			case t.right[i]:
				out.WriteString(fill + cell)
			case i < len(line)-1:
				out.WriteString(cell + fill)
			default:
				out.WriteString(cell)
			}
			if i < len(line)-1 {
				out.WriteString("  ")
			}
		}
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// orDash formats a number that may be unknown.
func orDash[T any](n *T, format func(T) string) string {
	if n == nil {
		return "-"
	}
	return format(*n)
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

// lineWidth is where prose is wrapped: at the width of a terminal, if that is less.
var lineWidth = 100

// writeWrapped writes prose in lines, the first after a label and the others
// indented as far. Words longer than a line stay whole.
func writeWrapped(out *strings.Builder, label, text string) {
	width := len(label)
	out.WriteString(label)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width+1+n > lineWidth:
			out.WriteString("\n" + strings.Repeat(" ", len(label)))
			width = len(label)
		default:
			out.WriteByte(' ')
			width++
		}
		out.WriteString(word)
		width += n
	}
	out.WriteByte('\n')
}
