package contest

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"

	"muster/bench/rig"
)

// chart is a bar chart with two bars for each row, muster's and Kafka's.
type chart struct {
	file, title, unit string
	log               bool // a logarithmic scale
	more              bool // more is better
	rows              []chartRow
}

type chartRow struct {
	label string
	row   *pairRow
}

// Lengths, in pixels.
const (
	chartWidth  = 940
	chartLeft   = 390 // where bars begin
	chartRight  = 860 // where the longest ends
	chartTop    = 74
	chartPitch  = 38 // from row to row
	barHeight   = 12
	chartMargin = 30 // for the numbers of the scale
)

// The colours are set by classes, so that they follow the reader's choice of a
// light or dark page; the chart brings its own background for where that is not
// known.
const chartStyle = `<style>
text{font:12px system-ui,-apple-system,"Segoe UI",sans-serif;fill:#1f2328}
.title{font-size:15px;font-weight:600}.small{font-size:11px;fill:#59636e}
.page{fill:#ffffff;stroke:#d1d9e0}.grid{stroke:#d1d9e0}.spread{stroke:#1f2328;stroke-opacity:.55}
.muster{fill:#0a7f64}.kafka{fill:#b9a4d8}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}
.page{fill:#0d1117;stroke:#3d444d}.grid{stroke:#30363d}.spread{stroke:#e6edf3}
.muster{fill:#3fc49c}.kafka{fill:#7d63a8}}
</style>
`

// svg draws the chart.
func (ch *chart) svg() string {
	var b strings.Builder
	height := chartTop + chartPitch*len(ch.rows) + chartMargin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n",
		chartWidth, height, html.EscapeString(ch.title))
	b.WriteString(chartStyle)
	fmt.Fprintf(&b, `<rect class="page" x=".5" y=".5" width="%d" height="%d" rx="6"/>`+"\n", chartWidth-1, height-1)
	better := "less is better"
	if ch.more {
		better = "more is better"
	}
	if ch.log {
		better += ", logarithmic scale"
	}
	fmt.Fprintf(&b, `<text class="title" x="16" y="26">%s</text>`+"\n", html.EscapeString(ch.title))
	fmt.Fprintf(&b, `<text class="small" x="16" y="46">%s, %s; the line spans the rounds</text>`+"\n", html.EscapeString(ch.unit), better)
	for i, name := range []string{"muster", "Kafka"} {
		x := chartRight - 120 + 75*i
		fmt.Fprintf(&b, `<rect class="%s" x="%d" y="17" width="11" height="11" rx="2"/><text x="%d" y="27">%s</text>`+"\n",
			strings.ToLower(name), x, x+16, name)
	}
	s := ch.scale()
	bottom := height - chartMargin + 4
	for _, tick := range s.ticks {
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, s.at(tick), chartTop-10, s.at(tick), bottom)
		fmt.Fprintf(&b, `<text class="small" x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", s.at(tick), bottom+15, tickName(tick))
	}
	for i, r := range ch.rows {
		y := chartTop + chartPitch*i
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", chartLeft-10, y+16, html.EscapeString(r.label))
		bar(&b, s, "muster", y, r.row.Muster)
		bar(&b, s, "kafka", y+barHeight+2, r.row.Kafka)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// bar draws a median, and a line from the smallest to the largest value.
func bar(b *strings.Builder, s scale, class string, y int, v []float64) {
	if len(v) == 0 {
		return
	}
	least, most, middle := slices.Min(v), slices.Max(v), rig.Median(v)
	fmt.Fprintf(b, `<rect class="%s" x="%d" y="%d" width="%.1f" height="%d" rx="1"/>`, class, chartLeft, y, max(1, s.at(middle)-chartLeft), barHeight)
	if len(v) > 1 {
		mid := float64(y) + barHeight/2
		fmt.Fprintf(b, `<line class="spread" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, s.at(least), mid, s.at(most), mid)
	}
	fmt.Fprintf(b, `<text class="small" x="%.1f" y="%d">%s</text>`+"\n", max(s.at(middle), s.at(most))+6, y+barHeight-2, rig.Number(middle))
}

// scale says where values lie.
type scale struct {
	low, high float64
	log       bool
	ticks     []float64
}

// scale finds one that fits all values.
func (ch *chart) scale() scale {
	low, high := math.Inf(1), 0.0
	for _, r := range ch.rows {
		for _, v := range slices.Concat(r.row.Muster, r.row.Kafka) {
			high = max(high, v)
			if v > 0 {
				low = min(low, v)
			}
		}
	}
	if high == 0 {
		return scale{high: 1}
	}
	if ch.log {
		s := scale{low: math.Pow(10, math.Floor(math.Log10(low))), high: high, log: true}
		for t := s.low; t <= high; t *= 10 {
			s.ticks = append(s.ticks, t)
		}
		return s
	}
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, part := range []float64{0.5, 0.4, 0.5} { // until there are at least four
		if high/step >= 4 {
			break
		}
		step *= part
	}
	s := scale{high: high}
	for t := 0.0; t <= high; t += step {
		s.ticks = append(s.ticks, t)
	}
	return s
}

// at is the place of a value, from the left.
func (s scale) at(v float64) float64 {
	share := v / s.high
	if s.log {
		share = math.Log10(max(v, s.low)/s.low) / max(math.Log10(s.high/s.low), 0.1)
	}
	return chartLeft + share*(chartRight-chartLeft)
}

// tickName prints a number of the scale.
func tickName(v float64) string {
	if v >= 1000 {
		return rig.Thousands(int(math.Round(v)))
	}
	return fmt.Sprintf("%g", math.Round(v*1e6)/1e6)
}
