package broker_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	fplain "github.com/twmb/franz-go/pkg/sasl/plain"

	"muster/internal/assert"
	"muster/internal/broker"
	"muster/internal/metadata"
)

// scrape returns the values that /metrics shows, by name and labels.
func scrape(t *testing.T, b *broker.Broker) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	b.MetricsHandler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(w.Body)
	assert.MustTrue(t, err == nil && w.Code == http.StatusOK, "%d: %v", w.Code, err)
	out := map[string]float64{}
	for name, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			slices.Sort(labels)
			key := name + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.Counter != nil:
				out[key] = m.Counter.GetValue()
			case m.Gauge != nil:
				out[key] = m.Gauge.GetValue()
			case m.Histogram != nil:
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					out[name+suffix+"{"+strings.Join(labels, ",")+"}"] = float64(m.Histogram.GetSampleCount())
				}
			}
		}
	}
	return out
}

// busyBroker is one on which everything has happened that metrics tell of.
func busyBroker(t *testing.T) *broker.Broker {
	t.Helper()
	b := start(t, map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0", "muster.store": "disk", "log.dir": t.TempDir(),
		"sasl.enabled.mechanisms": "PLAIN", "listener.name.sasl_plaintext.plain.sasl.jaas.config": `org.apache.kafka.common.security.plain.PlainLoginModule required user_jim="jims";`,
		"authorizer.class.name": "muster", "super.users": "User:ANONYMOUS", "connection.failed.authentication.delay.ms": "0",
		"group.initial.rebalance.delay.ms": "0",
	})
	c := client(t, b, manual())
	makeTopic(t, c, "orders", 2, nil)
	fill(t, c, "orders", 0, 100)
	fill(t, c, "orders", 1, 50)
	commit(t, c, "late", "orders", 0, 40)
	reader := client(t, b, kgo.ConsumerGroup("billing"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit())
	for n := 0; n < 150; {
		fetches := reader.PollFetches(t.Context())
		must(t, fetches.Err())
		n += fetches.NumRecords()
	}
	must(t, reader.CommitUncommittedOffsets(t.Context()))
	as := func(password string) *kadm.Client {
		c, err := kgo.NewClient(kgo.SeedBrokers(b.Addrs()[1]), kgo.SASL(fplain.Auth{User: "jim", Pass: password}.AsMechanism()), kgo.RetryTimeout(0), kgo.RequestRetries(0))
		must(t, err)
		t.Cleanup(c.Close)
		return kadm.NewClient(c)
	}
	if _, err := as("jims").ListTopics(t.Context(), "orders"); !strings.Contains(fmt.Sprint(err), kerr.TopicAuthorizationFailed.Message) {
		t.Fatalf("jim may describe the topic: %v", err)
	}
	if _, err := as("wrong").ListTopics(t.Context(), "orders"); err == nil {
		t.Fatal("jim logs in by a wrong password")
	}
	b.Status().Pass(t.Context())
	return b
}

func TestWhatClientsDoIsInTheMetrics(t *testing.T) {
	b := busyBroker(t)
	got := scrape(t, b)
	id := b.Image().ClusterID
	for name, want := range map[string]float64{
		"kafka_brokers{}": 1,
		"kafka_broker_info{address=" + b.Addr() + ",id=1}":                          1,
		"kafka_topic_partitions{topic=orders}":                                      2,
		"kafka_topic_partition_current_offset{partition=1,topic=orders}":            50,
		"kafka_consumergroup_lag{consumergroup=late,partition=0,topic=orders}":      60,
		"kafka_consumergroup_members{consumergroup=billing}":                        1,
		"kafka_consumergroup_group_sum_lag{cluster_name=" + id + ",group=billing}":  0,
		"kafka_consumergroup_group_state{cluster_name=" + id + ",group=billing}":    3,
		"kafka_server_brokertopicmetrics_messagesin_total{topic=orders}":            150,
		"kafka_server_brokertopicmetrics_failedproducerequests_total{topic=orders}": 0,
		"kafka_coordinator_group_groupmetadatamanager_numgroups{}":                  2,
		"kafka_coordinator_group_groupmetadatamanager_numoffsets{}":                 3,
		"kafka_server_kafkaserver_brokerstate{}":                                    3,
		"kafka_controller_kafkacontroller_activecontrollercount{}":                  1,
		"muster_quota_throttle_seconds_total{kind=produce}":                         0,
		"muster_journal_dropped_total{}":                                            0,
		"muster_panics_total{}":                                                     0,
		"muster_store_up{}":                                                         1,
		"muster_metrics_series_dropped{level=partition}":                            0,
	} {
		if v, ok := got[name]; !ok || v != want {
			t.Errorf("%s is %v (%v), want %v", name, v, ok, want)
		}
	}
	for _, name := range []string{
		"kafka_server_brokertopicmetrics_bytesin_total{topic=orders}", "kafka_server_brokertopicmetrics_bytesout_total{topic=orders}",
		"kafka_log_log_size{partition=0,topic=orders}", "muster_request_duration_seconds_count{request=Produce}", "muster_flush_duration_seconds_count{}",
		"muster_disk_free_bytes{}", "muster_group_last_rebalance_timestamp_seconds{group=billing}", "muster_group_retention_margin_seconds{group=late}",
		"kafka_server_socket_server_metrics_connection_count{listener=PLAINTEXT}",
		"muster_group_rebalances_total{group=billing,trigger=joined}",
		"muster_group_rebalance_duration_seconds_count{phase=join}",
		"muster_authentication_total{listener=SASL_PLAINTEXT,mechanism=PLAIN,result=success}",
		"muster_authentication_total{listener=SASL_PLAINTEXT,mechanism=PLAIN,result=failure}",
		"muster_authorization_denied_total{operation=describe,resource_type=topic}",
	} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}

func TestWaitsForQuotasAreInTheMetrics(t *testing.T) {
	b := start(t, nil)
	c := client(t, b, kgo.ClientID("fast"))
	makeTopic(t, c, "orders", 1, nil)
	must(t, b.AlterQuotas(t.Context(), metadata.QuotaChange{Entity: metadata.QuotaEntity{ClientID: metadata.Some("fast")}, Set: map[string]float64{metadata.ProducerByteRate: 100}}))
	fill(t, c, "orders", 0, 10)
	eventually(t, "a wait", func(context.Context) error {
		if v := scrape(t, b)["muster_quota_throttle_seconds_total{kind=produce}"]; v <= 0 {
			return fmt.Errorf("%v seconds", v)
		}
		return nil
	})
}

func TestSettingsOfMetricsAreChecked(t *testing.T) {
	for name, value := range map[string]string{"muster.metrics.groups.include": "(", "muster.metrics.sets": "statsd", "muster.metrics.max.series": "10"} {
		wantNoStart(t, map[string]string{name: value}, name)
	}
	b := start(t, map[string]string{"muster.metrics.sets": "jmx"})
	for name := range scrape(t, b) {
		assert.True(t, !strings.HasPrefix(name, "muster_") && !strings.HasPrefix(name, "go_"), "there is %s", name)
	}
}

// TestMetricsAreThereOverHTTP asks as Prometheus does, first for protobuf, in which
// histograms are native too.
func TestMetricsAreThereOverHTTP(t *testing.T) {
	b := start(t, map[string]string{"muster.http.listener": "127.0.0.1:0"})
	b.Status().Pass(t.Context())
	fill(t, client(t, b, manual()), "orders", 0, 10)
	scrape(t, b) // The topic is newer than what was seen of topics.
	b.Status().Pass(t.Context())
	ask := func(accept string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.HTTPAddr()+"/metrics", http.NoBody)
		must(t, err)
		req.Header.Set("Accept", accept)
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp, err)
		}
		return resp
	}
	resp := ask("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited")
	defer resp.Body.Close()
	from := expfmt.NewDecoder(resp.Body, expfmt.ResponseFormat(resp.Header))
	native := false
	for err := error(nil); err == nil; {
		var f dto.MetricFamily
		if err = from.Decode(&f); err == nil && f.GetName() == "muster_request_duration_seconds" {
			h := f.Metric[0].Histogram
			native = h.GetSchema() == 2 && len(h.PositiveSpan) > 0 && len(h.Bucket) == 10 && h.GetSampleCount() > 0
		}
	}
	assert.True(t, native, "there is no native histogram")
	text := ask("text/plain")
	defer text.Body.Close()
	body, err := io.ReadAll(text.Body)
	assert.True(t, err == nil && strings.Contains(string(body), `kafka_server_brokertopicmetrics_messagesin_total{topic="orders"} 10`), "%v: %s", err, body)
}

func readGrafana(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "grafana", name))
	must(t, err)
	return text
}

func TestMetricsOverHTTPNeedALoginBySetting(t *testing.T) {
	for _, wanted := range []string{"false", "true"} {
		b := startSASL(t, map[string]string{"muster.http.listener": "127.0.0.1:0", "muster.http.metrics.login": wanted})
		code, _ := people(t, b, nil, http.MethodGet, "", "", func(r *http.Request) { r.URL.Path = "/metrics" })
		assert.True(t, (code == http.StatusUnauthorized) == (wanted == "true") && (wanted != "false" || code == http.StatusOK), "%s: %d", wanted, code)
		if code, _ := people(t, b, nil, http.MethodGet, "", "", func(r *http.Request) { r.URL.Path = "/metrics"; r.SetBasicAuth("ann", "anns") }); code != http.StatusOK {
			t.Errorf("%s, ann: %d", wanted, code)
		}
	}
}
