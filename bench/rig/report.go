package rig

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
)

// Side is who was measured.
type Side string

const (
	broker Side = "broker"
	bare   Side = "bare"
)

// aim is what a metric should be at most: a value, or a multiple of the bare
// program's; or the part of the bare program's that it should be at least. Zero
// is no aim.
type aim struct {
	Value float64 `json:"value,omitempty"`
	Ratio float64 `json:"ratio,omitempty"`
	Least float64 `json:"least,omitempty"`
}

var noAim aim

func valueAim(v float64) aim { return aim{Value: v} }
func ratioAim(r float64) aim { return aim{Ratio: r} }
func leastAim(r float64) aim { return aim{Least: r} }

// metric is one number of interest.
type metric struct {
	group, name, unit string
	aim               aim
}

// row is a metric with what was measured, in order.
type row struct {
	Group  string    `json:"measure"`
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Aim    aim       `json:"aim,omitzero"`
	Broker []float64 `json:"broker"`
	Bare   []float64 `json:"bare,omitempty"`
	Ratio  []float64 `json:"ratio,omitempty"`
}

// Report collects the rows of a run.
type Report struct {
	Command string `json:"command"`
	Machine string `json:"machine"`
	Go      string `json:"go"`
	Load    string `json:"load"`
	rows    []*row
}

func NewReport(command string) *Report {
	return &Report{Command: command, Machine: machine(), Go: runtime.Version(), Load: loadAverage()}
}

// loadAverage tells how busy the machine was during the last minute. Before a
// run that is the work of others, which times and throughput suffer from.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(text), " ")
	return first
}

// Setting says where and how the run was made.
func (r *Report) Setting() string {
	return fmt.Sprintf("%s, %s, load average %s before the run", r.Machine, r.Go, r.Load)
}

// machine describes the computer as far as it matters.
func machine() string {
	model := runtime.GOARCH
	text, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores, %s, %s", runtime.NumCPU(), model, runtime.GOOS)
}

func (r *Report) row(m metric) *row {
	for _, row := range r.rows {
		if row.Group == m.group && row.Name == m.name {
			return row
		}
	}
	row := &row{Group: m.group, Name: m.name, Unit: m.unit, Aim: m.aim}
	r.rows = append(r.rows, row)
	return row
}

func (r *Report) add(m metric, s Side, v float64) {
	row := r.row(m)
	if s == broker {
		row.Broker = append(row.Broker, v)
	} else {
		row.Bare = append(row.Bare, v)
	}
	row.Ratio = row.ratios()
}

// ratios compares the values that were measured next to each other. What the
// machine does besides changes slowly, so they suffer from it alike.
func (r *row) ratios() []float64 {
	var out []float64
	for i := range min(len(r.Broker), len(r.Bare)) {
		if r.Bare[i] > 0 {
			out = append(out, r.Broker[i]/r.Bare[i])
		}
	}
	return out
}

func Median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// Number prints a value with about three digits.
func Number(v float64) string {
	switch {
	case v >= 100:
		return Thousands(int(math.Round(v)))
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// Series prints a median, and in brackets the smallest and the largest value.
func Series(v []float64) string {
	switch len(v) {
	case 0:
		return "–"
	case 1:
		return Number(v[0])
	}
	return fmt.Sprintf("%s (%s–%s)", Number(Median(v)), Number(slices.Min(v)), Number(slices.Max(v)))
}

// verdict prints the aim, and whether it is met.
func (r *row) verdict() string {
	met := func(ok bool) string {
		if ok {
			return "met"
		}
		return "missed"
	}
	switch {
	case r.Aim.Ratio > 0:
		return fmt.Sprintf("%g times bare: %s", r.Aim.Ratio, met(len(r.Ratio) > 0 && Median(r.Ratio) <= r.Aim.Ratio))
	case r.Aim.Least > 0:
		return fmt.Sprintf("%g of bare or more: %s", r.Aim.Least, met(len(r.Ratio) > 0 && Median(r.Ratio) >= r.Aim.Least))
	case r.Aim.Value > 0:
		return fmt.Sprintf("%g %s: %s", r.Aim.Value, r.Unit, met(Median(r.Broker) <= r.Aim.Value))
	}
	return ""
}

// cells are the columns of a row.
func (r *row) cells() []string {
	return []string{r.Group, r.Name, r.Unit, Series(r.Broker), Series(r.Bare), Series(r.Ratio), r.verdict()}
}

var columns = []string{"measure", "", "unit", "broker", "bare", "ratio", "aim"}

// line sums up a metric for the progress.
func (r *Report) line(m metric) string {
	row := r.row(m)
	return fmt.Sprintf("%s, %s: %s %s, bare %s", row.Group, row.Name, Series(row.Broker), row.Unit, Series(row.Bare))
}

func (r *Report) writeTable(w io.Writer) error {
	return WriteTable(w, r.Command, r.Setting(), columns, r.rows, (*row).cells)
}

// WriteTable prints rows under the command that made them and its setting. What is in the
// first column is printed once.
func WriteTable[R any](w io.Writer, command, setting string, columns []string, rows []R, cellsOf func(R) []string) error {
	fmt.Fprintf(w, "%s\n%s. Medians, with the smallest and the largest value.\n\n", command, setting)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(columns, "\t"))
	group := ""
	for _, row := range rows {
		cells := cellsOf(row)
		if cells[0] == group {
			cells[0] = ""
		} else {
			group = cells[0]
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

func (r *Report) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		*Report
		Rows []*row `json:"rows"`
	}{r, r.rows})
}

// The sides of the contest.
const (
	Ours   Side = "muster"
	Theirs Side = "Kafka"
)
