package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"muster/internal/watch/groupview"
)

// Table prints rows in aligned columns, numbers to the right.
type Table struct {
	titles []string
	right  []bool
	rows   [][]string
}

// NewTable makes a table with the given titles. A title that begins with > is
// that of a column of numbers.
func NewTable(titles ...string) *Table {
	t := &Table{titles: make([]string, len(titles)), right: make([]bool, len(titles))}
	for i, title := range titles {
		t.titles[i], t.right[i] = strings.CutPrefix(title, ">")
	}
	return t
}

// Add appends a row; it takes one value for each column.
func (t *Table) Add(values ...any) {
	row := make([]string, len(values))
	for i, v := range values {
		row[i] = fmt.Sprint(v)
	}
	t.rows = append(t.rows, row)
}

// Print writes the titles and the rows, with two spaces between columns.
func (t *Table) Print(w io.Writer) error {
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

// OrDash formats a number that may be unknown.
func OrDash[T any](n *T, format func(T) string) string {
	if n == nil {
		return "-"
	}
	return format(*n)
}

func FormatInt(n int64) string { return strconv.FormatInt(n, 10) }

// LineWidth is where prose is wrapped: at the width of a terminal, if that is less.
var LineWidth = 100

// WriteWrapped writes prose in lines, the first after a label and the others
// indented as far. Words longer than a line stay whole.
func WriteWrapped(out *strings.Builder, label, text string) {
	width := len(label)
	out.WriteString(label)
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width+1+n > LineWidth:
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

// FormatAssigned words an assignment: orders:0-3,7 users:1.
func FormatAssigned(assigned []groupview.Assigned) string {
	var out []string
	for _, t := range assigned {
		if len(t.Partitions) > 0 {
			out = append(out, t.Topic+":"+formatRanges(t.Partitions))
		}
	}
	switch {
	case assigned == nil:
		return "-" // Not told.
	case len(out) == 0:
		return "none"
	}
	return strings.Join(out, " ")
}

// formatRanges words sorted numbers: 0-3,7.
func formatRanges(numbers []int32) string {
	var out []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		text := strconv.Itoa(int(numbers[i]))
		if j > i {
			text += "-" + strconv.Itoa(int(numbers[j]))
		}
		out = append(out, text)
		i = j + 1
	}
	return strings.Join(out, ",")
}
