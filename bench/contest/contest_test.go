package contest

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"muster/bench/rig"
	"muster/internal/assert"
)

// TestMain lets the test program be the processes that are measured, as the
// real one does.
func TestMain(m *testing.M) {
	rig.BeChild()
	os.Exit(m.Run())
}

func tinyContest(dir string) *contestOptions {
	return &contestOptions{
		Options: &rig.Options{
			Rounds: 1, Size: 0.001, Only: regexp.MustCompile(""), Dir: dir, Embedded: true, JSON: true,
			Timeout: 2 * time.Minute, Command: "go -C bench run . kafka", Rest: time.Millisecond,
			Group: rig.GroupSizes{Connections: 3, Makers: 2, Time: 20 * time.Millisecond},
			Txn:   rig.TinyTxnSizes(),
		},
		restart: 0.002, budget: time.Second, warm: 10 * time.Millisecond, latency: 50 * time.Millisecond,
		members: []int{2, 5}, beating: 4, starts: 1, idle: time.Millisecond, timesLimit: 2,
		wild: wildSizes{
			rounds: 1, partitions: 30, connections: 40, members: 5, time: 20 * time.Millisecond, tail: 50 * time.Millisecond,
			lead: 50 * time.Millisecond, segment: 256 << 10, behind: 0.003, catchUp: 50 * time.Millisecond, hog: 0.01,
		},
	}
}

func TestSmallContestMeasuresMusterAndLeavesNothing(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	t.Setenv("GORACE", "atexit_sleep_ms=0") // else each process waits a second
	dir := t.TempDir()
	o := tinyContest(dir)
	o.Write = filepath.Join(t.TempDir(), "doc.md")
	if testing.Short() {
		o.Only = regexp.MustCompile("^(latency|commits|start-up|wild tail, page cache|wild lz4 produce)$")
	}
	var stdout, stderr bytes.Buffer
	if err := Run(t.Context(), o, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var result struct{ Rows []pairRow }
	assert.Must(t, json.Unmarshal(stdout.Bytes(), &result))
	got := map[string]bool{}
	for _, r := range result.Rows {
		got[r.Group] = true
		assert.True(t, len(r.Muster) != 0 && len(r.Kafka) == 0, "%s, %s: %d values of muster, %d of Kafka", r.Group, r.Name, len(r.Muster), len(r.Kafka))
	}
	for _, group := range []string{
		"produce 100 B, 1 partition, acks=1", "produce 1 KB, 12 partitions, acks=all", "fetch 100 B, 12 partitions",
		"durable produce 1 KB, 1 partition, acks=all", "latency", "durable latency", "memory under load",
		"group of 2", "group of 5", "heartbeats", "commits", "durable commits",
		"consumer group of 2", "consumer group of 5", "consumer heartbeats", "start-up", "memory at rest", "restart after kill -9",
		"txns of 100 records, 12 partitions, 2 ids", "txns read_committed", "txns read_uncommitted",
		shippedProduce, shippedWide, shippedCommits, shippedCreate, shippedTail, tlsProduce, tlsFetch, "wild lz4 produce", "wild zstd fetch",
		crowdName, "wild tail, quiet", "wild tail, compaction", "wild tail, retention", "wild tail, rebalance", "wild tail, page cache", behindName,
	} {
		assert.False(t, o.Only.MatchString(group) && !got[group], "no row of %s", group)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if testing.Short() {
		return // A part is not written.
	}
	text, err := os.ReadFile(o.Write)
	if err != nil || !strings.Contains(string(text), "![Throughput](img/kafka-throughput.svg)") || !strings.Contains(string(text), "| heartbeats |") {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestTransactionsAloneAreWritten(t *testing.T) {
	if testing.Short() {
		t.Skip("measures all transactions twice")
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	o := tinyContest(t.TempDir())
	o.Only = regexp.MustCompile("^txns")
	o.Write = filepath.Join(t.TempDir(), "doc.md")
	before := "x\n" + beginKafkaMarker + "old\n" + endKafkaMarker + "y\n" + beginKafkaTxnsMarker
	assert.Must(t, os.WriteFile(o.Write, []byte(before+"old txns\n"+endKafkaTxnsMarker+"z\n"), 0o644))
	var stderr bytes.Buffer
	if err := Run(t.Context(), o, io.Discard, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	text, err := os.ReadFile(o.Write)
	got := string(text)
	if err != nil || !strings.HasPrefix(got, before) || strings.Contains(got, "old txns") || !strings.HasSuffix(got, endKafkaTxnsMarker+"z\n") {
		t.Errorf("%v\n%s", err, text)
	}
	for _, name := range o.Txn.Names() {
		assert.Contains(t, got, "| "+name+" |", "no row of %s", name)
	}
	o.Only = regexp.MustCompile("^txns read_committed$")
	assert.Must(t, Run(t.Context(), o, io.Discard, io.Discard))
	if again, err := os.ReadFile(o.Write); err != nil || string(again) != got {
		t.Errorf("a part of the table was written: %v\n%s", err, again)
	}
}

func TestPartOfAContestIsNotWritten(t *testing.T) {
	o := tinyContest(t.TempDir())
	o.Only = regexp.MustCompile("^start-up$")
	o.Write = filepath.Join(t.TempDir(), "doc.md")
	assert.Must(t, Run(t.Context(), o, io.Discard, io.Discard))
	if _, err := os.Stat(o.Write); !errors.Is(err, os.ErrNotExist) {
		t.Error("written:", err)
	}
	o.Only = regexp.MustCompile("^nonsense$")
	if err := Run(t.Context(), o, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "matches nothing") {
		t.Error(err)
	}
}

func TestContestFlagsAreChecked(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-size", "0"}, {"-only", "("}, {"extra"}, {"-nonsense"}} {
		if _, err := Parse(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	if _, err := Parse([]string{"-h"}, io.Discard); err != flag.ErrHelp {
		t.Error(err)
	}
	o, err := Parse([]string{"-jars", "x", "-rounds", "2"}, &bytes.Buffer{})
	if err != nil || o.Command != "go -C bench run . kafka -rounds 2" || !o.kafka {
		t.Error(o, err)
	}
}

func TestTimesBetterCountsUpwardsForBoth(t *testing.T) {
	r := &pairReport{Report: rig.NewReport("x")}
	cost := pairMetric{group: "produce", name: "processor time", unit: "CPU-s/GB", rule: fromCache, aim: 3}
	speed := pairMetric{group: "produce", name: "throughput", unit: "MB/s", more: true}
	for _, v := range []float64{1, 2, 4} {
		r.add(cost, rig.Ours, v)
		r.add(cost, rig.Theirs, 8)
		r.add(speed, rig.Ours, 100)
		r.add(speed, rig.Theirs, 100*v)
	}
	for i, want := range []string{
		"produce; processor time; page cache; CPU-s/GB; 2.00 (1.00–4.00); 8.00 (8.00–8.00); 4.00 (2.00–8.00); 3: met",
		"produce; throughput; ; MB/s; 100 (100–100); 200 (100–400); 0.50 (0.25–1.00); ",
	} {
		assert.Equal(t, strings.Join(r.rows[i].cells(), "; "), want)
	}
	if got := strings.Join(r.behind(), "; "); got != "produce, throughput (0.50)" {
		t.Error("behind:", got)
	}
	r.rows[0].Aim = 5
	assert.Equal(t, r.rows[0].verdict(), "5: missed")
}

func TestPercentileIsNotExceededByItsShare(t *testing.T) {
	var v []time.Duration
	for i := range 1000 {
		v = append(v, time.Duration(1000-i))
	}
	for share, want := range map[float64]time.Duration{0.5: 500, 0.99: 990, 0.999: 999, 1: 1000} {
		assert.Equal(t, percentile(v, share), want, "%v of 1 to 1000", share)
	}
	assert.Equal(t, percentile(v[:1], 0.999), 1)
}

func TestBatchesFillAJavaProducersBatch(t *testing.T) {
	for _, s := range contestShapes() {
		size := len(rig.NewBatch(s.Records, s.Record, 1))
		assert.True(t, size <= rig.BatchBytes && size+s.Record+20 >= rig.BatchBytes, "%d records of %d bytes make a batch of %d", s.Records, s.Record, size)
	}
}

func TestChartsAreXMLAndFitTheirPage(t *testing.T) {
	r := &pairReport{Report: rig.NewReport("x")}
	for i, m := range []pairMetric{
		{group: "latency", name: "p99 < 1", unit: "ms"}, {group: "latency", name: "p99.9", unit: "ms"},
		{group: "produce", name: "throughput", unit: "MB/s", more: true}, {group: "memory", name: "at rest", unit: "MB"},
	} {
		for _, v := range []float64{0.5, 7, 1234} {
			r.add(m, rig.Ours, v*float64(i))
			r.add(m, rig.Theirs, 10*v)
		}
	}
	charts := r.charts()
	assert.MustEqual(t, len(charts), 3, "charts")
	for _, ch := range charts {
		assert.NoError(t, xml.Unmarshal([]byte(ch.svg()), new(struct{})), "%s", ch.file)
		s := ch.scale()
		for _, v := range []float64{0, 0.5, 12340} {
			if x := s.at(v); x < chartLeft || x > chartRight {
				t.Errorf("%s: %g is drawn at %g", ch.file, v, x)
			}
		}
		if n := len(s.ticks); n < 4 || n > 12 {
			t.Errorf("%s: %d numbers on the scale", ch.file, n)
		}
	}
}

func TestOnlyKafkaTriesAgainAndItsFirstTryDoesNotCount(t *testing.T) {
	for _, s := range []rig.Side{rig.Ours, rig.Theirs} {
		b := &rig.Bench{Options: &rig.Options{Rounds: 1}, Context: t.Context(), Folder: t.TempDir(), Progress: io.Discard}
		c := &contest{Bench: b, pairs: &pairReport{Report: rig.NewReport("x")}}
		tries := 0
		err := c.turn(&subject{side: s}, func(*subject, string) error {
			tries++
			c.noted = append(c.noted, noted{pairMetric{group: "x"}, float64(tries)})
			if tries == 1 {
				return errors.New("no")
			}
			return nil
		})
		assert.False(t, s == rig.Ours && (err == nil || tries != 1 || len(c.pairs.rows) > 0), "muster: %d tries, %v", tries, err)
		if s == rig.Theirs && (err != nil || tries != 2 || len(c.pairs.rows[0].Kafka) != 1 || c.pairs.rows[0].Kafka[0] != 2) {
			t.Errorf("Kafka: %d tries, %v", tries, err)
		}
	}
}
