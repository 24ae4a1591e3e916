package metrics

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"muster/internal/assert"
	"muster/internal/meter"
	"muster/internal/watch"
	"muster/internal/watch/lag"
	"muster/internal/watch/list"
)

// world is a broker that tests make up.
type world struct {
	snapshot *watch.Snapshot
	tracker  *lag.Tracker
	cluster  Cluster
	meters   *meter.Meters
}

func (w *world) Snapshot() *watch.Snapshot { return w.snapshot }
func (w *world) Read(f func(*lag.Tracker)) { f(w.tracker) }
func (w *world) Cluster() Cluster          { return w.cluster }
func (w *world) Meters() *meter.Meters     { return w.meters }

// newWorld returns a broker with topics, of which each has so many partitions.
func newWorld(topics, partitions int) *world {
	w := &world{
		cluster: Cluster{
			ID: "west", Node: 1, Brokers: []Broker{{1, "10.0.0.1:9092"}, {2, "10.0.0.2:9092"}}, Controller: true, State: Running,
			StoreUp: true, OneCopy: true, Flushes: true, DiskSize: 1000, DiskFree: 400, Connections: map[string]int{"PLAINTEXT": 3},
		},
		meters: meter.New(),
	}
	w.snapshot = &watch.Snapshot{At: noon, Node: 1, Groups: list.Build(nil)}
	for n := range topics {
		t := watch.Topic{Name: fmt.Sprintf("topic-%03d", n)}
		for p := range partitions {
			t.Partitions = append(t.Partitions, watch.Partition{Number: int32(p), Leader: 1, Here: true, Start: 10, End: 1010, LastStable: 1010, Bytes: 5000, Dense: true})
		}
		w.snapshot.Topics = append(w.snapshot.Topics, t)
	}
	w.pass()
	return w
}

// groupFacts is a group that tests make up, which reads the first topics.
type groupFacts struct {
	name      string
	members   int
	topics    int
	committed int64
}

// pass looks at everything.
func (w *world) pass(groups ...groupFacts) {
	w.tracker = lag.NewTracker(lag.Limits{Bytes: 1 << 30, Asks: 0}, nil)
	w.tracker.Begin(noon)
	for i := range w.snapshot.Topics {
		t := &w.snapshot.Topics[i]
		for _, p := range t.Partitions {
			w.tracker.Log(lag.Log{
				Topic: t.Name, Partition: p.Number, Offline: p.Leader < 0, Bounds: lag.Bounds{Start: p.Start, End: p.End},
				LastStable: p.LastStable, Added: p.End, Retention: lag.Retention{Age: 24 * time.Hour, Bytes: -1, Size: p.Bytes},
			})
		}
	}
	var all []list.GroupRow
	for _, g := range groups {
		facts := lag.Group{Name: g.name, Members: g.members}
		s := list.GroupRow{Name: g.name, Type: "classic", State: "Empty", Members: g.members, Rebalanced: new(noon.Add(-time.Minute))}
		if g.members > 0 {
			s.State = "Stable"
		}
		for i := range g.topics {
			t := &w.snapshot.Topics[i]
			s.Topics = append(s.Topics, t.Name)
			for _, p := range t.Partitions {
				facts.Positions = append(facts.Positions, lag.Position{Topic: t.Name, Partition: p.Number, Committed: g.committed})
			}
		}
		w.tracker.Group(facts)
		s.Offsets = int32(len(facts.Positions))
		l, _ := w.tracker.Of(g.name)
		s.Partitions, s.Lag, s.LagUnknown, s.LagSeconds, s.Stuck = l.Partitions, l.Lag, l.Unknown, l.Seconds, l.Stuck
		all = append(all, s)
	}
	w.tracker.End()
	after := *w.snapshot
	after.Groups = list.Build(all)
	w.snapshot = &after
}

// use has clients do what is counted.
func (w *world) use() {
	m := w.meters
	m.Requests.Answered(1, 0, 13, 3*time.Millisecond)
	m.Requests.Answered(2, 0, 12, 40*time.Millisecond)
	m.Requests.Answered(2, 12, 4, 30*time.Microsecond)
	m.Topics.Of("topic-000").Produced(1, 7, 700)
	m.Topics.Of("topic-000").Refused(1)
	m.Topics.Of("topic-000").Fetched(2, 3, 1, 300)
	m.Groups.Began("busy", "joined", noon)
	m.Groups.Took(meter.Join, 3*time.Second)
	m.Logins.Add(meter.Labels{"SASL", "PLAIN", "failure"}, 2)
	m.Denials.Add(meter.Labels{"read", "topic"}, 4)
	m.Throttled.Add(meter.Labels{"fetch"}, 1.5)
	m.Flushes.Observe(2 * time.Millisecond)
	m.JournalDropped.Add(5)
}

// all are settings that leave nothing out.
var all = Settings{Sets: KafkaExporter | LagExporter | JMX | Muster, MaxSeries: 50_000}

func newMetrics(w *world, s Settings) *Metrics {
	m := New(w, s)
	m.now = func() time.Time { return noon }
	return m
}

// scraped is what a scrape shows: values by name and labels.
type scraped map[string]float64

// scrape asks as Prometheus does, and reads the text.
func scrape(t testing.TB, m *Metrics) scraped {
	t.Helper()
	text := get(t, m)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	assert.Must(t, err)
	out := scraped{}
	for name, f := range families {
		for _, metric := range f.Metric {
			labels := labelsOf(metric)
			switch {
			case metric.Counter != nil:
				out[name+labels] = metric.Counter.GetValue()
			case metric.Gauge != nil:
				out[name+labels] = metric.Gauge.GetValue()
			case metric.Histogram != nil:
				out[name+"_count"+labels] = float64(metric.Histogram.GetSampleCount())
			}
		}
	}
	return out
}

func get(t testing.TB, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	assert.MustTrue(t, w.Code == http.StatusOK, "%d: %s", w.Code, w.Body)
	return w.Body.String()
}

func labelsOf(m *dto.Metric) string {
	var pairs []string
	for _, l := range m.Label {
		pairs = append(pairs, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	slices.Sort(pairs)
	if len(pairs) == 0 {
		return ""
	}
	return "{" + strings.Join(pairs, ",") + "}"
}

// lines counts the series of a text.
func lines(text string) (n int) {
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			n++
		}
	}
	return n
}

// want compares some values.
func (s scraped) want(t *testing.T, values map[string]float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		got, ok := s[name]
		if !ok || got != values[name] {
			t.Errorf("%s is %v (%v), want %v", name, got, ok, values[name])
		}
	}
}

// without says which series match that should not be there.
func (s scraped) without(t *testing.T, pattern string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	for name := range s {
		assert.False(t, re.MatchString(name), "there is %s", name)
	}
}
