package rig

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"muster/internal/assert"
)

// TestMain lets the test program be the processes that are measured, as the
// real one does.
func TestMain(m *testing.M) {
	BeChild()
	os.Exit(m.Run())
}

// small measures a little, with -short only what matches the sample, and checks that there
// are rows of these groups and that nothing is left. It returns the document that was written.
func small(t *testing.T, o *Options, sample string, groups ...string) string {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	t.Setenv("GORACE", "atexit_sleep_ms=0") // else each process waits a second
	o.Rounds, o.Dir, o.Embedded, o.JSON, o.Write = 1, t.TempDir(), true, true, filepath.Join(t.TempDir(), "doc.md")
	o.Timeout, o.Command, o.Rest = 2*time.Minute, "go -C bench run .", 10*time.Millisecond
	if testing.Short() {
		o.Only = regexp.MustCompile(sample)
	}
	var stdout, stderr bytes.Buffer
	if err := Run(t.Context(), o, &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	var result struct{ Rows []row }
	assert.Must(t, json.Unmarshal(stdout.Bytes(), &result))
	got := map[string]bool{}
	for _, r := range result.Rows {
		got[r.Group] = true
		if len(r.Broker) == 0 && r.Unit != "times" { // Little work may show no processor time to compare.
			t.Errorf("nothing measured: %s, %s", r.Group, r.Name)
		}
	}
	for _, group := range groups {
		assert.False(t, o.Only.MatchString(group) && !got[group], "no row of %s", group)
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	text, err := os.ReadFile(o.Write)
	assert.NoError(t, err)
	return string(text)
}

func TestSmallRunMeasuresEverythingAndLeavesNothing(t *testing.T) {
	o := &Options{
		tries: 2, Size: 0.01, Only: regexp.MustCompile(""), restartPartitions: []int{20}, memoryConnections: 20, fleets: []int{1, 2}, Txn: TinyTxnSizes(),
		Redis: redisSizes{shapes: []Shape{{12, 1024, 16}, {12, 100, 160}}, partitions: 6, consumers: 4, watch: 100 * time.Millisecond, trips: 5},
	}
	small(t, o, "^(fetch|start-up|txns read_committed)$",
		"produce acks=all", "produce acks=1", "fetch", "start-up", "restart 20", "memory", "redis stream 16 × 1 KB produce, 12 partitions, 1 broker", "redis log 160 × 100 B fetch, 12 partitions, 2 brokers",
		"redis end to end, indexed, 1 broker", "redis idle, 2 brokers, 6 partitions, 4 consumers",
		"txns of 100 records, 12 partitions, 2 ids", "txns of 1 record, 1 partition, 1 id", "txns read_committed")
}

func TestOnlyThatMatchesNothingIsAnError(t *testing.T) {
	o := &Options{Only: regexp.MustCompile("^nonsense$"), Dir: t.TempDir(), Embedded: true, Timeout: time.Minute}
	err := Run(t.Context(), o, &bytes.Buffer{}, &bytes.Buffer{})
	assert.MustTrue(t, err != nil && strings.Contains(err.Error(), "matches nothing"), "%v", err)
}

func TestFlagsAreChecked(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-size", "0"}, {"-only", "("}, {"extra"}, {"-nonsense"}} {
		if _, err := Parse(args, &bytes.Buffer{}); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
	if _, err := Parse([]string{"-h"}, &bytes.Buffer{}); err != flag.ErrHelp {
		t.Error(err)
	}
	o, err := Parse([]string{"-dir", "x", "-only", "a|b", "-json", "-rounds=5"}, &bytes.Buffer{})
	assert.Must(t, err)
	assert.Equal(t, o.Command, "go -C bench run . -json -only 'a|b' -rounds 5", "command")
}

func TestBadBatchesAreNoticed(t *testing.T) {
	one, two := NewBatch(3, 64, 1), NewBatch(2, 64, 2)
	binary.BigEndian.PutUint64(two, 3) // its base offset
	both := append(bytes.Clone(one), two...)
	if next, err := CheckBatches(both, 0); err != nil || next != 5 {
		t.Fatal(next, err)
	}
	for name, b := range map[string][]byte{
		"a hole":      append(bytes.Clone(one), one...),
		"cut short":   both[:len(both)-1],
		"only a head": both[:len(one)+20],
	} {
		if _, err := CheckBatches(b, 0); err == nil {
			t.Errorf("%s was not noticed", name)
		}
	}
	both[len(both)-1]++
	if _, err := CheckBatches(both, -1); err == nil {
		t.Error("a wrong checksum was not noticed")
	}
	assert.Equal(t, crc32.Checksum(one[21:], Castagnoli), binary.BigEndian.Uint32(one[17:]), "newBatch makes wrong checksums")
}

func TestBadProduceAnswersAreNoticed(t *testing.T) {
	answer := func(code int16, offset int64) []byte {
		resp := kmsg.NewPtrProduceResponse()
		resp.Version = 12
		p := kmsg.NewProduceResponseTopicPartition()
		p.ErrorCode, p.BaseOffset = code, offset
		resp.Topics = []kmsg.ProduceResponseTopic{{Topic: "t", Partitions: []kmsg.ProduceResponseTopicPartition{p}}}
		return resp.AppendTo(nil)
	}
	assert.NoError(t, checkProduced(answer(0, 7), 12, 1))
	if checkProduced(answer(kerr.KafkaStorageError.Code, -1), 12, 1) == nil || checkProduced(answer(0, -1), 12, 1) == nil ||
		checkProduced(answer(0, 7), 12, 2) == nil {
		t.Error("a bad answer was accepted")
	}
}

func TestReportShowsMediansSpreadAndRatios(t *testing.T) {
	r := NewReport("go -C bench run .")
	m := metric{"produce", "processor time", "CPU-s/GB", ratioAim(1.5)}
	for _, v := range []float64{3, 1, 2} {
		r.add(m, broker, v)
		r.add(m, bare, 1)
	}
	if got, want := strings.Join(r.rows[0].cells(), "; "), "produce; processor time; CPU-s/GB; 2.00 (1.00–3.00); 1.00 (1.00–1.00); 2.00 (1.00–3.00); 1.5 times bare: missed"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	assert.Equal(t, Median([]float64{4, 1, 3, 2}), 2.5, "median of an even number of values")
}

func TestMarkdownReplacesOnlyWhatIsBetweenTheMarkers(t *testing.T) {
	name := filepath.Join(t.TempDir(), "doc.md")
	assert.Must(t, os.WriteFile(name, []byte("before\n"+beginMarker+"old\n"+endMarker+"after\n"), 0o644))
	r := NewReport("go -C bench run .")
	r.add(metric{"start-up", "x", "ms", valueAim(50)}, broker, 7)
	assert.Must(t, r.writeMarkdown(name))
	got, err := os.ReadFile(name)
	assert.Must(t, err)
	text := string(got)
	if !strings.HasPrefix(text, "before\n"+beginMarker) || !strings.HasSuffix(text, endMarker+"after\n") ||
		strings.Contains(text, "old") || !strings.Contains(text, "| start-up | x | ms | 7.00 | – | – | 50 ms: met |") {
		t.Error(text)
	}
	assert.Must(t, os.WriteFile(name, []byte("no markers\n"), 0o644))
	assert.True(t, r.writeMarkdown(name) != nil, "a file without markers was accepted")
}

// A process may be told to stop before it has come as far as to listen to signals.
func TestAProcessThatIsStoppedAtOnceEndsInOrder(t *testing.T) {
	self, err := os.Executable()
	assert.Must(t, err)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	b := &Bench{Options: &Options{}, Context: t.Context(), self: self}
	for range 10 {
		p, err := b.StartSelf("", "_hog", filepath.Join(t.TempDir(), "hog"), "1000000")
		assert.Must(t, err)
		assert.Must(t, p.Stop())
	}
}
