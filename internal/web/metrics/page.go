package metrics

import (
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"muster/internal/meter"
)

// page is the series of one scrape, family by family. There may be tens of thousands,
// so what they are made of is allocated in chunks, and labels are shared.
type page struct {
	sets   Set
	series int
	rows   [][]*dto.Metric

	metrics  chunk[dto.Metric]
	lists    chunk[*dto.LabelPair]
	pairs    chunk[dto.LabelPair]
	texts    chunk[string]
	gauges   chunk[dto.Gauge]
	counters chunk[dto.Counter]
	values   chunk[float64]
}

// chunk hands out parts of larger slices.
type chunk[T any] struct{ free []T }

const chunkSize = 1024

func (c *chunk[T]) take(n int) []T {
	if len(c.free) < n {
		c.free = make([]T, max(n, chunkSize))
	}
	out := c.free[:n:n]
	c.free = c.free[n:]
	return out
}

func newPage(sets Set) *page { return &page{sets: sets, rows: make([][]*dto.Metric, len(table))} }

// on says whether a set is exported.
func (p *page) on(s Set) bool { return p.sets&s != 0 }

// label makes a label, which any number of series can have.
func (p *page) label(name *string, value string) *dto.LabelPair {
	text := &p.texts.take(1)[0]
	*text = value
	l := &p.pairs.take(1)[0]
	l.Name, l.Value = name, text
	return l
}

// row makes a series without a value.
func (p *page) row(f family, labels []*dto.LabelPair) *dto.Metric {
	m := &p.metrics.take(1)[0]
	m.Label = p.lists.take(len(labels))
	copy(m.Label, labels)
	p.rows[f] = append(p.rows[f], m)
	p.series++
	return m
}

// put adds a series to a family, if its set is exported.
func (p *page) put(f family, value float64, labels ...*dto.LabelPair) {
	t := &table[f]
	if !p.on(t.set) {
		return
	}
	m := p.row(f, labels)
	v := &p.values.take(1)[0]
	*v = value
	if t.kind == dto.MetricType_COUNTER {
		m.Counter = &p.counters.take(1)[0]
		m.Counter.Value = v
		return
	}
	m.Gauge = &p.gauges.take(1)[0]
	m.Gauge.Value = v
}

// putDurations adds a histogram, in its classic and in its native form.
func (p *page) putDurations(f family, d meter.Durations, labels ...*dto.LabelPair) {
	if !p.on(table[f].set) {
		return
	}
	h := &dto.Histogram{
		SampleCount: new(d.Count()), SampleSum: new(d.Sum.Seconds()),
		Schema: new(int32(meter.Schema)), ZeroThreshold: new(meter.ZeroThreshold()),
	}
	for i, n := range d.Classic() {
		h.Bucket = append(h.Bucket, &dto.Bucket{CumulativeCount: new(n), UpperBound: new(d.Scale.Classic[i].Seconds())})
	}
	next, before := 0, int64(0)
	h.ZeroCount = new(d.Native(func(bucket int, count uint64) {
		if len(h.PositiveSpan) == 0 || bucket > next {
			h.PositiveSpan = append(h.PositiveSpan, &dto.BucketSpan{Offset: new(int32(bucket - next)), Length: new(uint32(0))})
		}
		*h.PositiveSpan[len(h.PositiveSpan)-1].Length++
		h.PositiveDelta = append(h.PositiveDelta, int64(count)-before)
		next, before = bucket+1, int64(count)
	}))
	if len(h.PositiveSpan) == 0 && *h.ZeroCount == 0 {
		// An empty span says that it is a native histogram, if there is nothing in it.
		h.PositiveSpan = []*dto.BucketSpan{{Offset: new(int32(0)), Length: new(uint32(0))}}
	}
	p.row(f, labels).Histogram = h
	p.series += len(h.Bucket) + 2 // Also +Inf, sum and count; one is counted already.
}

// families returns what there is, together with others, in order of name.
func (p *page) families(others []*dto.MetricFamily) []*dto.MetricFamily {
	out := slices.Clone(others)
	for f := range p.rows {
		if t := &table[f]; len(p.rows[f]) > 0 {
			out = append(out, &dto.MetricFamily{Name: &t.name, Help: &t.help, Type: &t.kind, Metric: p.rows[f]})
		}
	}
	slices.SortFunc(out, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out
}
