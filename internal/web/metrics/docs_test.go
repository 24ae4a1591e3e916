package metrics

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"muster/internal/assert"
)

var rewrite = flag.Bool("rewrite", false, "write what a test finds out of date")

// TestTheDocumentationHasAllNames compares the tables of docs/metrics.md with ours.
func TestTheDocumentationHasAllNames(t *testing.T) {
	file := filepath.Join("..", "..", "..", "docs", "metrics.md")
	text, err := os.ReadFile(file)
	assert.Must(t, err)
	const begins, ends = "-rewrite -->\n", "<!-- end of names -->"
	before, rest, ok := strings.Cut(string(text), begins)
	_, after, closed := strings.Cut(rest, ends)
	assert.MustTrue(t, ok && closed, "docs/metrics.md has no place for names")
	want := before + begins + documented() + ends + after
	if want == string(text) {
		return
	}
	assert.MustTrue(t, *rewrite, "docs/metrics.md is out of date; go test ./internal/web/metrics -run TestTheDocumentationHasAllNames -rewrite writes it")
	assert.Must(t, os.WriteFile(file, []byte(want), 0o600))
}

// documented makes a table of each set.
func documented() string {
	var b strings.Builder
	for _, set := range []struct {
		Set
		title string
	}{
		{KafkaExporter, "kafka_exporter"}, {LagExporter, "lag_exporter"}, {JMX, "jmx"}, {Muster, "muster, with `go_*` and `process_*`"},
	} {
		fmt.Fprintf(&b, "\n### %s\n\n| name | labels | what it tells |\n|---|---|---|\n", set.title)
		for _, e := range table {
			if e.set != set.Set {
				continue
			}
			help := e.help
			if e.kind == dto.MetricType_HISTOGRAM {
				help += " A histogram."
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.name, strings.ReplaceAll(e.labels, " ", ", "), help)
		}
	}
	return b.String() + "\n"
}
