package contest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"muster/bench/rig"
)

// When a broker answers: what both sides do for a measure.
const (
	fromCache = "page cache" // when the page cache has the records; muster with muster.acks.all.flush=false
	onDisk    = "disk"       // when the disk has them; Kafka with flush.messages=1
	byDefault = "defaults"   // as each comes: muster when the disk has them, Kafka when the page cache has
)

// pairMetric is one number of interest of both sides.
type pairMetric struct {
	group, name, unit string
	rule              string  // when a broker answers, "" if that does not matter
	more              bool    // more is better
	aim               float64 // how many times better than Kafka, 0 for no aim
}

// title names the metric in one line.
func (m pairMetric) title() string { return m.group + ", " + m.name }

// pairRow is a metric with what was measured, in order.
type pairRow struct {
	Group  string    `json:"measure"`
	Name   string    `json:"name"`
	Rule   string    `json:"answer after,omitempty"`
	Unit   string    `json:"unit"`
	More   bool      `json:"more is better,omitempty"`
	Aim    float64   `json:"aim,omitempty"`
	Muster []float64 `json:"muster"`
	Kafka  []float64 `json:"kafka,omitempty"`
	Better []float64 `json:"times better,omitempty"`
}

// pairReport collects the rows of a run.
type pairReport struct {
	*rig.Report
	Kafka  string `json:"kafka,omitempty"`  // version
	Others string `json:"others,omitempty"` // how busy other programs kept the machine during the run
	Again  int    `json:"again,omitempty"`  // turns that Kafka failed and tried again
	// LeftOut says what could not be measured as it should, and why.
	LeftOut []string `json:"left out,omitempty"`
	rows    []*pairRow
}

func (r *pairReport) find(m pairMetric) *pairRow {
	for _, row := range r.rows {
		if row.Group == m.group && row.Name == m.name && row.Rule == m.rule {
			return row
		}
	}
	return nil
}

func (r *pairReport) add(m pairMetric, s rig.Side, v float64) {
	row := r.find(m)
	if row == nil {
		row = &pairRow{Group: m.group, Name: m.name, Rule: m.rule, Unit: m.unit, More: m.more, Aim: m.aim}
		r.rows = append(r.rows, row)
	}
	if s == rig.Ours {
		row.Muster = append(row.Muster, v)
	} else {
		row.Kafka = append(row.Kafka, v)
	}
	row.Better = row.better()
}

// better compares the values of each round.
func (r *pairRow) better() []float64 {
	var out []float64
	for i := range min(len(r.Muster), len(r.Kafka)) {
		worse, best := r.Kafka[i], r.Muster[i]
		if r.More {
			worse, best = best, worse
		}
		if best > 0 {
			out = append(out, worse/best)
		}
	}
	return out
}

// verdict prints the aim, and whether it is met.
func (r *pairRow) verdict() string {
	if r.Aim == 0 || len(r.Better) == 0 {
		return ""
	}
	if rig.Median(r.Better) < r.Aim {
		return fmt.Sprintf("%g: missed", r.Aim)
	}
	return fmt.Sprintf("%g: met", r.Aim)
}

// cells are the columns of a row.
func (r *pairRow) cells() []string {
	return []string{r.Group, r.Name, r.Rule, r.Unit, rig.Series(r.Muster), rig.Series(r.Kafka), rig.Series(r.Better), r.verdict()}
}

var pairColumns = []string{"measure", "", "answer after", "unit", "muster", "Kafka", "times better", "aim"}

// twice is how much better than Kafka everything should be.
const twice = 2

// behind lists what is not twice as good as Kafka.
func (r *pairReport) behind() []string {
	var out []string
	for _, row := range r.rows {
		if len(row.Better) == 0 || rig.Median(row.Better) >= twice {
			continue
		}
		rule := ""
		if row.Rule == byDefault {
			rule = ", " + byDefault
		}
		out = append(out, fmt.Sprintf("%s, %s%s (%s)", row.Group, row.Name, rule, rig.Number(rig.Median(row.Better))))
	}
	return out
}

// setting says where, how and against what the run was made.
func (r *pairReport) setting() string {
	out := r.Report.Setting()
	if r.Others != "" {
		out += ", other programs had " + r.Others + " of the processor's time during it"
	}
	if r.Again > 0 {
		out += fmt.Sprintf(", Kafka failed %s and tried again", rig.Count(r.Again, "time"))
	}
	if r.Kafka != "" {
		out = "Kafka " + r.Kafka + ", " + out
	}
	return out
}

func (r *pairReport) writeTable(w io.Writer) error {
	if err := rig.WriteTable(w, r.Command, r.setting(), pairColumns, r.rows, (*pairRow).cells); err != nil {
		return err
	}
	if names := r.behind(); len(names) > 0 {
		fmt.Fprintf(w, "\nNot twice as good:\n  %s\n", strings.Join(names, "\n  "))
	}
	if len(r.LeftOut) > 0 {
		fmt.Fprintf(w, "\nLeft out, or less than asked for:\n  %s\n", strings.Join(r.LeftOut, "\n  "))
	}
	return nil
}

func (r *pairReport) writeJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(struct {
		*pairReport
		Rows []*pairRow `json:"rows"`
	}{r, r.rows})
}
