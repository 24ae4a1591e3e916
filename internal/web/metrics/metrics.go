// Package metrics answers /metrics, for Prometheus and whoever reads its formats.
//
//	watch.Watch (groups, topics)   ─┐
//	meter.Meters (what was counted) ├→ Gather → families → promhttp → text or protobuf
//	Cluster (who is there)         ─┘
//
// The names are those that dashboards already know, in sets of which a setting chooses:
// those of kafka_exporter, of kafka-lag-exporter, of the JMX exporter's example for
// Kafka, and our own for what Kafka does not have. names.go lists them all. A group is
// exported by its coordinator, a partition by its leader, and what is of the whole
// cluster by the live broker with the lowest id, so that sums over brokers are right.
//
// How many series there are is bounded: admit.go decides who is in. What is not known is
// left out; no value is made up. The package reads, and changes nothing; it asks no
// engine, only what was seen or counted already.
package metrics

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"muster/internal/meter"
	"muster/internal/watch"
	"muster/internal/watch/lag"
)

// Source is the broker, as far as metrics need it.
type Source interface {
	// Snapshot is the groups and topics of a moment ago.
	Snapshot() *watch.Snapshot
	// Read lets f ask how far groups are behind. f must be short.
	Read(f func(*lag.Tracker))
	// Cluster is who is there now.
	Cluster() Cluster
	// Meters is what was counted.
	Meters() *meter.Meters
}

// Cluster is what is known of the brokers, and of this one.
type Cluster struct {
	ID          string
	Node        int32
	Brokers     []Broker // Those that are alive, by id.
	Controller  bool     // This broker is it.
	State       BrokerState
	StoreUp     bool           // Records can be stored.
	OneCopy     bool           // The store keeps one copy, so none can be missing.
	Flushes     bool           // The store is on a disk of this machine.
	DiskSize    int64          // In bytes; negative if that is not known.
	DiskFree    int64          // Likewise.
	Connections map[string]int // By listener.
}

// Broker is one that is alive.
type Broker struct {
	ID      int32
	Address string // host:port
}

// BrokerState is how far a broker is, in Kafka's numbers.
type BrokerState int

// The states that ours have.
const (
	Starting BrokerState = 1
	Running  BrokerState = 3
	Stopping BrokerState = 6
)

// isFirst says whether this broker exports what is of the whole cluster.
func (c *Cluster) isFirst() bool { return len(c.Brokers) > 0 && c.Brokers[0].ID == c.Node }

// scrapes is how many are answered at the same time. One that takes much costs memory
// and processor time, and anyone may ask.
const scrapes = 4

// Metrics gathers what /metrics shows.
type Metrics struct {
	src      Source
	settings Settings
	now      func() time.Time
	process  *prometheus.Registry // of the process itself

	mu     sync.Mutex
	topics admission
	groups admission
	recent recent
}

// New returns metrics of a broker.
func New(src Source, settings Settings) *Metrics {
	m := &Metrics{src: src, settings: settings, now: time.Now, process: prometheus.NewRegistry()}
	m.process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler answers GET /metrics. Those who ask while another answer is being gathered
// share it.
func (m *Metrics) Handler() http.Handler {
	return &handler{
		places: make(chan struct{}, scrapes),
		make: promhttp.HandlerFor(prometheus.GathererFunc(m.gather), promhttp.HandlerOpts{
			ErrorHandling: promhttp.ContinueOnError, CoalesceGather: true,
		}),
	}
}

// gather makes all families, in order of name.
func (m *Metrics) gather() ([]*dto.MetricFamily, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := newPage(m.settings.Sets)
	var process []*dto.MetricFamily
	var err error
	if p.sets&Muster != 0 {
		process, err = m.process.Gather()
	}
	v := &view{page: p, now: m.now(), snapshot: m.src.Snapshot(), cluster: m.src.Cluster(), meters: m.src.Meters()}
	v.forgetGone()
	v.addCluster()
	v.addRequests(&m.recent)
	v.addCounters()
	for _, f := range process {
		p.series += len(f.Metric)
	}
	left := m.settings.MaxSeries - p.series - droppedSeries
	left -= v.addTopics(&m.topics, &m.settings, left/2)
	v.addGroups(&m.groups, &m.settings, m.src.Read, left)
	v.addDropped()
	return p.families(process), err
}

// view is one scrape.
type view struct {
	*page
	now      time.Time
	snapshot *watch.Snapshot
	cluster  Cluster
	meters   *meter.Meters
	dropped  [levels]int
}

// forgetGone has the meters forget topics and groups that are gone. Before the first
// look at groups no one knows which these are.
func (v *view) forgetGone() {
	if v.snapshot.At.IsZero() {
		return
	}
	there := make(map[string]bool, len(v.snapshot.Topics))
	for i := range v.snapshot.Topics {
		there[v.snapshot.Topics[i].Name] = true
	}
	v.meters.Topics.Keep(v.snapshot.At, func(name string) bool { return there[name] })
	v.meters.Groups.Keep(v.now, func(name string) bool {
		_, known := v.snapshot.Groups.Get(name)
		return known
	})
}
