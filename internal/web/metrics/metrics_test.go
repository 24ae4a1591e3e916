package metrics

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"muster/internal/assert"
	"muster/internal/meter"
	"muster/internal/watch"
)

// full is a world in which there is something of everything.
func full() *world {
	w := newWorld(2, 3)
	w.pass(groupFacts{"busy", 2, 2, 1000}, groupFacts{"idle", 0, 1, 1010}, groupFacts{"late", 0, 1, 5})
	w.use()
	return w
}

func TestEveryNameIsThereWithItsLabels(t *testing.T) {
	got := scrape(t, newMetrics(full(), all))
	for _, e := range table {
		name := e.name
		if e.kind == histogram {
			name += "_count"
		}
		assert.True(t, got.has(name, strings.Fields(e.labels)), "there is no %s with labels %q", e.name, e.labels)
	}
	for _, name := range []string{"go_goroutines", "process_cpu_seconds_total"} {
		assert.True(t, got.has(name, nil), "there is no %s", name)
	}
}

// has says whether there is a series of a name with exactly these labels.
func (s scraped) has(name string, labels []string) bool {
	for series := range s {
		rest, ok := strings.CutPrefix(series, name)
		if !ok || rest != "" && rest[0] != '{' {
			continue
		}
		var got []string
		for _, m := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(rest, -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		if slices.Equal(got, slices.Sorted(slices.Values(labels))) {
			return true
		}
	}
	return false
}

func TestNamesOfOthersDashboardsAreThere(t *testing.T) {
	for set, file := range map[Set]string{KafkaExporter: "kafka_exporter_dashboard.txt", LagExporter: "lag_exporter_dashboard.txt"} {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		assert.Must(t, err)
		settings := all
		settings.Sets = set
		got, n := scrape(t, newMetrics(full(), settings)), 0
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); fields[0] != "#" {
				n++
				assert.True(t, got.has(fields[0], fields[1:]), "%s: there is no %s", file, line)
			}
		}
		assert.True(t, n >= 4, "%s has %d names", file, n)
	}
}

func TestValuesOfGroups(t *testing.T) {
	got := scrape(t, newMetrics(full(), all))
	got.want(t, map[string]float64{
		`kafka_consumergroup_lag{consumergroup="busy",partition="2",topic="topic-001"}`:                           10,
		`kafka_consumergroup_current_offset{consumergroup="busy",partition="2",topic="topic-001"}`:                1000,
		`kafka_consumergroup_lag_sum{consumergroup="busy",topic="topic-001"}`:                                     30,
		`kafka_consumergroup_current_offset_sum{consumergroup="busy",topic="topic-001"}`:                          3000,
		`kafka_consumergroup_members{consumergroup="busy"}`:                                                       2,
		`kafka_consumergroup_members{consumergroup="idle"}`:                                                       0,
		`kafka_consumergroup_lag{consumergroup="late",partition="0",topic="topic-000"}`:                           1000, // From the log start offset on.
		`kafka_consumergroup_group_offset{cluster_name="west",group="busy",partition="0",topic="topic-000"}`:      1000,
		`kafka_consumergroup_group_lag{cluster_name="west",group="busy",partition="0",topic="topic-000"}`:         10,
		`kafka_consumergroup_group_lag_seconds{cluster_name="west",group="idle",partition="0",topic="topic-000"}`: 0,
		`kafka_consumergroup_group_max_lag{cluster_name="west",group="busy"}`:                                     10,
		`kafka_consumergroup_group_sum_lag{cluster_name="west",group="busy"}`:                                     60,
		`kafka_consumergroup_group_topic_sum_lag{cluster_name="west",group="busy",topic="topic-000"}`:             30,
		`kafka_consumergroup_group_state{cluster_name="west",group="busy"}`:                                       3,
		`kafka_consumergroup_group_state{cluster_name="west",group="idle"}`:                                       5,
		`kafka_coordinator_group_groupmetadatamanager_numgroups`:                                                  3,
		`kafka_coordinator_group_groupmetadatamanager_numoffsets`:                                                 12,
		`kafka_coordinator_group_groupmetadatamanager_numgroupsstable`:                                            1,
		`kafka_coordinator_group_groupmetadatamanager_numgroupsempty`:                                             2,
		`muster_group_rebalances_total{group="busy",trigger="joined"}`:                                            1,
		`muster_group_last_rebalance_timestamp_seconds{group="busy"}`:                                             float64(noon.Add(-time.Minute).Unix()),
		`muster_group_catchup_seconds{group="idle"}`:                                                              0,
		`muster_group_poison_suspects{group="busy"}`:                                                              0,
		`muster_group_stuck_partitions{group="busy"}`:                                                             0,
		`muster_group_retention_margin_seconds{group="late"}`:                                                     86400,
		`muster_metrics_series_dropped{level="group"}`:                                                            0,
		`kafka_consumergroup_group_max_lag_seconds{cluster_name="west",group="idle"}`:                             0,
		`kafka_server_brokertopicmetrics_messagesin_total{topic="topic-000"}`:                                     7,
		`kafka_server_brokertopicmetrics_totalproducerequests_total{topic="topic-000"}`:                           2,
		`kafka_server_brokertopicmetrics_failedproducerequests_total{topic="topic-000"}`:                          1,
		`kafka_server_brokertopicmetrics_bytesout_total{topic="topic-000"}`:                                       300,
		`kafka_server_brokertopicmetrics_failedfetchrequests_total{topic="topic-000"}`:                            1,
		`kafka_network_requestmetrics_requests_total{request="Produce",version="13"}`:                             1,
		`muster_request_duration_seconds_count{request="Produce"}`:                                                2,
		`muster_authentication_total{listener="SASL",mechanism="PLAIN",result="failure"}`:                         2,
		`muster_authorization_denied_total{operation="read",resource_type="topic"}`:                               4,
		`muster_quota_throttle_seconds_total{kind="fetch"}`:                                                       1.5,
		`muster_journal_dropped_total`:                                                                            5,
		`muster_group_rebalance_duration_seconds_count{phase="join"}`:                                             1,
		`kafka_server_replicamanager_leadercount`:                                                                 6,
		`kafka_log_log_size{partition="1",topic="topic-001"}`:                                                     5000,
		`kafka_topic_partition_oldest_offset{partition="1",topic="topic-001"}`:                                    10,
	})
	got.without(t, `muster_group_catchup_seconds.*(busy|late)`) // They were not watched for long enough.
	got.without(t, `muster_group_retention_margin_seconds.*idle`)
	got.without(t, `brokertopicmetrics.*topic-001`) // No one has used it.
}

func TestWhatIsNotKnownIsLeftOut(t *testing.T) {
	w := newWorld(2, 2)
	w.cluster.OneCopy, w.cluster.Flushes, w.cluster.DiskSize, w.cluster.DiskFree = false, false, -1, -1
	lost := &w.snapshot.Topics[1].Partitions[1]
	*lost = watch.Partition{Number: 1, Leader: -1}
	other := &w.snapshot.Topics[0].Partitions[0]
	other.Leader, other.Here = 2, false
	w.snapshot.Topics[0].Partitions[1].Bytes = -1
	w.pass(groupFacts{"some", 1, 2, 1000})
	got := scrape(t, newMetrics(w, all))
	got.want(t, map[string]float64{
		`kafka_topic_partition_leader{partition="1",topic="topic-001"}`:                  -1,
		`kafka_controller_kafkacontroller_offlinepartitionscount`:                        1,
		`kafka_server_replicamanager_leadercount`:                                        2,
		`kafka_consumergroup_current_offset_sum{consumergroup="some",topic="topic-001"}`: 1000,
		`kafka_consumergroup_lag_sum{consumergroup="some",topic="topic-001"}`:            10,
		`kafka_coordinator_group_groupmetadatamanager_numoffsets`:                        4, // It has that one, too.
	})
	got.without(t, `kafka_consumergroup_.*partition="1",topic="topic-001"`)
	got.without(t, `kafka_(topic_partition_current_offset|log_log_size|partition_latest_offset).*partition="1",topic="topic-001"`)
	got.without(t, `kafka_topic_partition_.*partition="0",topic="topic-000"`)
	got.without(t, `kafka_log_log_size.*topic-000`)
	got.without(t, `underminisr|muster_disk|muster_flush`)

	for i := range w.snapshot.Topics {
		for p := range w.snapshot.Topics[i].Partitions {
			w.snapshot.Topics[i].Partitions[p].Leader = -1
		}
	}
	w.pass(groupFacts{"some", 1, 2, 1000})
	got = scrape(t, newMetrics(w, all))
	got.without(t, `kafka_consumergroup_(group_)?(max_lag|sum_lag|lag_sum|topic_sum_lag|lag|offset|current)`)
}

func TestOnlyTheFirstBrokerTellsOfTheCluster(t *testing.T) {
	w := full()
	w.snapshot.Topics[0].Partitions[0] = watch.Partition{Leader: -1}
	w.cluster.Node, w.cluster.Controller = 2, false
	got := scrape(t, newMetrics(w, all))
	got.without(t, `^kafka_(brokers|broker_info|topic_partitions)|offlinepartitions|leader\{partition="0",topic="topic-000"`)
	got.want(t, map[string]float64{`kafka_controller_kafkacontroller_activecontrollercount`: 0})
	w.cluster.Brokers = w.cluster.Brokers[1:] // The first one is gone.
	got = scrape(t, newMetrics(w, all))
	got.want(t, map[string]float64{`kafka_brokers`: 1, `kafka_broker_info{address="10.0.0.2:9092",id="2"}`: 1, `kafka_topic_partitions{topic="topic-000"}`: 3})
}

func TestBeforeTheFirstLookNothingIsToldOfGroups(t *testing.T) {
	w := newWorld(0, 0)
	w.snapshot.At = time.Time{}
	w.cluster = Cluster{State: Starting, DiskSize: -1}
	w.meters.Topics.Of("kept").Produced(1, 1, 1)
	got := scrape(t, newMetrics(w, all))
	got.without(t, `numgroups|leadercount|kafka_brokers`)
	got.want(t, map[string]float64{`kafka_server_kafkaserver_brokerstate`: 1, `muster_store_up`: 0})
	assert.Equal(t, w.meters.Topics.Read("kept").Records, 1, "what was counted of a topic is forgotten before anybody knows whether it is there")
	w.snapshot.At = time.Now().Add(-time.Hour)
	scrape(t, newMetrics(w, all))
	assert.Equal(t, w.meters.Topics.Read("kept").Records, 1, "what was counted of a topic is forgotten that was created since the last look")
	w.snapshot.At = time.Now().Add(time.Hour)
	scrape(t, newMetrics(w, all))
	assert.Equal(t, w.meters.Topics.Read("kept").Records, 0, "what was counted of a topic that is gone is kept")
}

func TestSetsAndNamesAreChosen(t *testing.T) {
	for set, pattern := range map[string]string{
		"kafka_exporter": `^kafka_(brokers|broker_info|topic_|consumergroup_(lag|current|members))`,
		"lag_exporter":   `^kafka_(partition_|consumergroup_group_)`,
		"jmx":            `^kafka_(server|controller|log|network|coordinator)_`,
		"muster":         `^(muster|go|process)_`,
	} {
		s, err := ParseSettings([]string{set}, 50_000, func(string) string { return "" })
		assert.Must(t, err)
		got := scrape(t, newMetrics(full(), s))
		for name := range got {
			assert.True(t, regexp.MustCompile(pattern).MatchString(name), "%s: there is %s", set, name)
		}
		assert.True(t, len(got) >= 10, "%s: there is only %v", set, got)
	}
	set := map[string]string{"muster.metrics.groups.include": "b.*|i.*", "muster.metrics.groups.exclude": "idle|us", "muster.metrics.topics.exclude": "topic-000"}
	s, err := ParseSettings([]string{"kafka_exporter", "jmx"}, 50_000, func(name string) string { return set[name] })
	assert.Must(t, err)
	got := scrape(t, newMetrics(full(), s))
	got.without(t, `late|idle|kafka_(topic|log).*topic-000`)
	got.want(t, map[string]float64{`kafka_consumergroup_members{consumergroup="busy"}`: 2, `kafka_topic_partitions{topic="topic-001"}`: 3})
}

func TestSettingsThatAreWrong(t *testing.T) {
	if _, err := ParseSettings([]string{"statsd"}, 1, func(string) string { return "" }); err == nil || !strings.Contains(err.Error(), "statsd") {
		t.Error(err)
	}
	_, err := ParseSettings(nil, 1, func(string) string { return "a)(b" })
	assert.True(t, err != nil && strings.Contains(err.Error(), "muster.metrics."), "%v", err)
}

func TestNamesThatAreNoTextOrTooLongDoNoHarm(t *testing.T) {
	w := newWorld(1, 1)
	long := strings.Repeat("x", 30_000)
	w.pass(groupFacts{"a\xff\"b", 1, 1, 1000}, groupFacts{"line\nbreak", 1, 1, 1000}, groupFacts{long, 1, 1, 1000})
	m := newMetrics(w, all)
	assert.False(t, strings.Contains(get(t, m), long[:1000]), "a long name is told")
	got := scrape(t, m)
	got.want(t, map[string]float64{
		fmt.Sprintf("kafka_consumergroup_members{consumergroup=%q}", `"a\xff\"b"`): 1,
		`kafka_consumergroup_members{consumergroup="line\nbreak"}`:                 1,
	})
	if got[`muster_metrics_series_dropped{level="group"}`] == 0 || got[`muster_metrics_series_dropped{level="partition"}`] == 0 {
		t.Error("what is left out is not counted")
	}
}

func TestTheNumberOfSeriesIsBounded(t *testing.T) {
	w := newWorld(20, 10)
	var groups []groupFacts
	for n := range 200 {
		groups = append(groups, groupFacts{fmt.Sprintf("group-%03d", n), n % 2, 3, 1000})
	}
	w.pass(groups...)
	w.use()
	for _, most := range []int{1000, 2000, 5000, 10_000} {
		settings := all
		settings.MaxSeries = most
		m := newMetrics(w, settings)
		if n := lines(get(t, m)); n > most || n < most*9/10 {
			t.Errorf("%d series of %d", n, most)
		}
	}
	unbounded := newMetrics(w, all)
	whole := lines(get(t, unbounded))
	settings := all
	settings.MaxSeries = 5000
	text := scrape(t, newMetrics(w, settings))
	dropped := 0.0
	for name, n := range text {
		if strings.HasPrefix(name, "muster_metrics_series_dropped") {
			dropped += n
		}
	}
	// What is left out is counted, within what some groups do not have.
	assert.True(t, math.Abs((float64(len(text))+dropped)/float64(whole)-1) <= 0.1, "%d series and %v dropped, of %d", len(text), dropped, whole)
}

// TestWhoMattersComesFirst has room for a few only: of groups those with members or lag, of
// topics those of users.
func TestWhoMattersComesFirst(t *testing.T) {
	w := newWorld(4, 20)
	for i := range 3 {
		w.snapshot.Topics[i].Internal = true
	}
	w.pass(groupFacts{"a-idle", 0, 4, 1010}, groupFacts{"b-idle", 0, 4, 1010}, groupFacts{"c-idle", 0, 4, 1010}, groupFacts{"d-idle", 0, 4, 1010}, groupFacts{"y-late", 0, 1, 1000}, groupFacts{"z-busy", 1, 1, 1010})
	settings := all
	settings.MaxSeries = 0
	fixed := lines(get(t, newMetrics(w, settings)))
	settings.MaxSeries = fixed + 2*(4+240+10) // Half of it is for topics: for one with partitions.
	got := scrape(t, newMetrics(w, settings))
	got.without(t, `kafka_topic_partition_current_offset.*topic-00[012]`)
	got.without(t, `kafka_consumergroup_lag.*idle.*partition=`)
	got.want(t, map[string]float64{
		`kafka_topic_partition_current_offset{partition="19",topic="topic-003"}`:           1010,
		`kafka_consumergroup_lag{consumergroup="y-late",partition="19",topic="topic-000"}`: 10,
		`kafka_consumergroup_lag{consumergroup="z-busy",partition="19",topic="topic-000"}`: 0,
	})
}

func TestQuantilesAreOfTheLastMinutes(t *testing.T) {
	w := newWorld(0, 0)
	m := newMetrics(w, all)
	now := noon
	m.now = func() time.Time { return now }
	p50 := func() (float64, bool) {
		v, ok := scrape(t, m)[`kafka_network_requestmetrics_totaltimems{quantile="0.50",request="Heartbeat"}`]
		return v, ok
	}
	for range 1000 {
		w.meters.Requests.Answered(1, 12, 4, time.Millisecond)
	}
	if v, ok := p50(); !ok || v < 0.8 || v > 1.2 {
		t.Errorf("at first: %v, %v", v, ok)
	}
	for range 8 {
		now = now.Add(time.Minute)
		w.meters.Requests.Answered(1, 12, 4, 100*time.Millisecond)
		p50()
	}
	if v, _ := p50(); v < 80 || v > 120 {
		t.Errorf("later: %v", v)
	}
	for range 8 {
		now = now.Add(time.Minute)
		p50()
	}
	if v, ok := p50(); ok {
		t.Errorf("without requests: %v", v)
	}
	for range 100 { // Several may ask, and often.
		now = now.Add(time.Second)
		p50()
	}
	if n := len(m.recent.moments); n > 7 {
		t.Errorf("%d moments are remembered", n)
	}
}

// TestHistogramsAreClassicAndNative reads the buckets of both forms back.
func TestHistogramsAreClassicAndNative(t *testing.T) {
	w := newWorld(0, 0)
	for range 3 {
		w.meters.Flushes.Observe(time.Microsecond) // In the zero bucket.
	}
	w.meters.Flushes.Observe(3 * time.Millisecond)
	w.meters.Flushes.Observe(3 * time.Millisecond)
	w.meters.Flushes.Observe(3500 * time.Microsecond)
	w.meters.Flushes.Observe(2 * time.Second)
	families, err := newMetrics(w, all).gather()
	assert.Must(t, err)
	i := slices.IndexFunc(families, func(f *dto.MetricFamily) bool { return f.GetName() == "muster_flush_duration_seconds" })
	h := families[i].Metric[0].Histogram
	// 2^(i/4) seconds is the end of bucket i: 3 ms is in -33, 3.5 ms in -32, 2 s in 4.
	assert.Equal(t, fmt.Sprint(h.GetZeroCount(), h.PositiveDelta, len(h.PositiveSpan)), "3 [2 -1 0] 2", "native")
	if a, b := h.PositiveSpan[0], h.PositiveSpan[1]; a.GetOffset() != -33 || a.GetLength() != 2 || b.GetOffset() != 35 || b.GetLength() != 1 {
		t.Errorf("spans: %v, %v", a, b)
	}
	if n := len(h.Bucket); n != 10 || h.Bucket[2].GetCumulativeCount() != 3 || h.Bucket[3].GetCumulativeCount() != 6 || h.Bucket[9].GetCumulativeCount() != 7 {
		t.Errorf("classic: %v", h.Bucket)
	}
	assert.Equal(t, h.GetSampleCount(), 7, "in all")
	empty := newPage(all.Sets)
	empty.putDurations(flushTookFamily, meter.NewHistogram(meter.Fast).Read())
	if h := empty.rows[flushTookFamily][0].Histogram; len(h.PositiveSpan) != 1 || h.PositiveSpan[0].GetLength() != 0 {
		t.Error("a histogram without observations does not say that it is native")
	}
}

// BenchmarkScrape measures a scrape of 50,000 series as Prometheus asks for it.
func BenchmarkScrape(b *testing.B) {
	w := newWorld(20, 50)
	var groups []groupFacts
	for n := range 1000 {
		groups = append(groups, groupFacts{fmt.Sprintf("application-%04d", n), 3, 1, 1000})
	}
	w.pass(groups...)
	w.use()
	settings := all
	settings.MaxSeries = 52_000 // Some groups have less than they might.
	for _, form := range []struct{ name, accept, encoding string }{
		{"text", "text/plain;version=0.0.4", ""},
		{"text-gzip", "text/plain;version=0.0.4", "gzip"},
		{"protobuf-gzip", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited", "gzip"},
	} {
		m := newMetrics(w, settings)
		if n := lines(get(b, m)); n < 50_000 {
			b.Fatalf("%d series", n)
		}
		b.Run(form.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
				r.Header.Set("Accept", form.accept)
				r.Header.Set("Accept-Encoding", form.encoding)
				out := httptest.NewRecorder()
				m.Handler().ServeHTTP(out, r)
				b.ReportMetric(float64(out.Body.Len()), "bytes")
			}
		})
	}
}
