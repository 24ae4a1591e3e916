package contest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Table and charts stand between these lines.
const (
	beginKafkaMarker     = "<!-- bench kafka: begin -->\n"
	endKafkaMarker       = "<!-- bench kafka: end -->\n"
	beginKafkaTxnsMarker = "<!-- bench kafka txns: begin -->\n"
	endKafkaTxnsMarker   = "<!-- bench kafka txns: end -->\n"
	beginKafkaWildMarker = "<!-- bench kafka wild: begin -->\n"
	endKafkaWildMarker   = "<!-- bench kafka wild: end -->\n"
)

// What has a table of its own. The names of its measures begin so.
const (
	txnsTable = "txns"
	wildTable = "wild"
)

// tableOf tells which table a measure belongs to, "" for the large one.
func tableOf(name string) string {
	if kind, _, _ := strings.Cut(name, " "); kind == txnsTable || kind == wildTable {
		return kind
	}
	return ""
}

// part is a report of the rows of one table.
func (r *pairReport) part(table string) *pairReport {
	out := *r
	out.rows = nil
	for _, row := range r.rows {
		if tableOf(row.Group) == table {
			out.rows = append(out.rows, row)
		}
	}
	if table != wildTable {
		out.LeftOut = nil
	}
	return &out
}

// writeTxns puts the table of transactions into a file.
func (r *pairReport) writeTxns(name string) error {
	return r.writePart(txnsTable, name, beginKafkaTxnsMarker, endKafkaTxnsMarker)
}

// writeWild puts the table of what happens in the wild into a file.
func (r *pairReport) writeWild(name string) error {
	return r.writePart(wildTable, name, beginKafkaWildMarker, endKafkaWildMarker)
}

func (r *pairReport) writePart(table, name, begin, end string) error {
	part := r.part(table)
	if len(part.rows) == 0 {
		return nil
	}
	return replaceBetween(name, begin, end, part.markdown(""))
}

// replaceBetween puts a text between two lines of a file.
func replaceBetween(name, begin, end, text string) error {
	old, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = []byte("# Benchmarks\n\n"+beginKafkaMarker+endKafkaMarker+"\n"+beginKafkaTxnsMarker+endKafkaTxnsMarker+
			"\n"+beginKafkaWildMarker+endKafkaWildMarker), nil
	}
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), begin)
	_, after, found := strings.Cut(rest, end)
	if !ok || !found {
		return fmt.Errorf("%s has no lines %q and %q to put the table between", name, strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return os.WriteFile(name, []byte(before+begin+text+end+after), 0o644)
}

// writeMarkdown puts the table of all else into a file, and the charts beside it.
func (r *pairReport) writeMarkdown(name, img string) error {
	r = r.part("")
	if err := os.MkdirAll(img, 0o755); err != nil {
		return err
	}
	folder, err := filepath.Rel(filepath.Dir(name), img)
	if err != nil {
		return err
	}
	var images strings.Builder
	for _, ch := range r.charts() {
		if err := os.WriteFile(filepath.Join(img, ch.file), []byte(ch.svg()), 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&images, "![%s](%s/%s)\n\n", ch.title, filepath.ToSlash(folder), ch.file)
	}
	return replaceBetween(name, beginKafkaMarker, endKafkaMarker, r.markdown(images.String()))
}

func (r *pairReport) markdown(images string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "`%s` on %s:\n\n%s", r.Command, r.setting(), images)
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(pairColumns)
	line([]string{"---", "---", "---", "---", "---:", "---:", "---:", "---"})
	for _, row := range r.rows {
		line(row.cells())
	}
	if names := r.behind(); len(names) > 0 {
		fmt.Fprintf(&b, "\nNot twice as good as Kafka: %s.\n", strings.Join(names, "; "))
	}
	if len(r.LeftOut) > 0 {
		fmt.Fprintf(&b, "\nLeft out, or less than asked for: %s.\n", strings.Join(r.LeftOut, "; "))
	}
	return b.String()
}

// charts draws the rows that are easier to see than to read.
func (r *pairReport) charts() []*chart {
	all := []*chart{
		{file: "kafka-cpu.svg", title: "Processor time of the broker, per GB", unit: "CPU-s/GB"},
		{file: "kafka-throughput.svg", title: "Throughput", unit: "MB/s", more: true},
		{file: "kafka-latency.svg", title: "End-to-end latency at 10,000 records/s", unit: "ms", log: true},
		{file: "kafka-groups.svg", title: "Rebalance of a group", unit: "ms", log: true},
		{file: "kafka-coordinator.svg", title: "Heartbeats and offset commits", unit: "1/s", more: true},
		{file: "kafka-start.svg", title: "Start", unit: "ms", log: true},
		{file: "kafka-memory.svg", title: "Memory", unit: "MB", log: true},
	}
	where := map[string]int{"CPU-s/GB": 0, "MB/s": 1, "1/s": 4, "MB": 6}
	for _, row := range r.rows {
		i, ok := where[row.Unit]
		switch {
		case ok:
		case row.Unit != "ms":
			continue
		case strings.Contains(row.Group, "latency"):
			i = 2
		case strings.HasPrefix(row.Group, "group of"), strings.HasPrefix(row.Group, "consumer group of"):
			i = 3
		default:
			i = 5
		}
		all[i].add(row)
	}
	var out []*chart
	for _, ch := range all {
		if len(ch.rows) > 0 {
			out = append(out, ch)
		}
	}
	return out
}

// add adds a row, with as much of its name as tells it from the others.
func (ch *chart) add(row *pairRow) {
	label := row.Group
	if row.Name != "throughput" && row.Name != "processor time" {
		label += ", " + row.Name
	}
	ch.rows = append(ch.rows, chartRow{label, row})
}
