package contest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"muster/bench/rig"
	"muster/internal/assert"
)

func TestWhatKafkasToolsPrintIsRead(t *testing.T) {
	out := "200 records sent, 40.0 records/sec (0.04 MB/sec), 1.0 ms avg latency\n" +
		"1000 records sent, 1234.5 records/sec (1.18 MB/sec), 10.00 ms avg latency, 20.00 ms max latency.\n"
	if rate, err := producerRate(out, 1000); err != nil || rate != 1234.5 {
		t.Error(rate, err)
	}
	if _, err := producerRate(out, 1001); err == nil {
		t.Error("a record that was not sent is not missed")
	}
	if _, err := producerRate("nothing\n", 1000); err == nil {
		t.Error("no rate, and no error")
	}
	line := "WARN something\n2026-01-01 00:00:00:000, 2026-01-01 00:00:01:000, 0.9537, 0.9537, 1000, 1000.0, 200, 800, 1.19, 1250.0\n"
	if rate, err := consumerRate(line, 1000); err != nil || rate != 1250 {
		t.Error(rate, err)
	}
	if _, err := consumerRate(line, 1001); err == nil {
		t.Error("a record that was not read is not missed")
	}
	if _, err := consumerRate("", 1); err == nil {
		t.Error("no rate, and no error")
	}
}

func TestCompressedBatchesAreTheRecords(t *testing.T) {
	m := wildMoving("x", fromCache)
	want := rig.RecordsBody(textRecords(m.Records, m.Record))
	for _, c := range wildCodecs {
		l, expands, err := c.load(m)
		if err != nil || expands < 2 || expands > 20 {
			t.Fatal(c.name, expands, err)
		}
		small := l.Frame[bytes.LastIndex(l.Frame, []byte{0xff, 0xff, 0xff, 0xff, 2})-12:][:l.BatchSize]
		if _, err := rig.CheckBatches(small, 0); err != nil {
			t.Fatal(c.name, err)
		}
		got, err := decompress(c.name, small[rig.HeaderSize:])
		assert.True(t, err == nil && bytes.Equal(got, want), "%s: %d bytes instead of %d: %v", c.name, len(got), len(want), err)
	}
}

func decompress(codec string, b []byte) ([]byte, error) {
	if codec == "lz4" {
		return io.ReadAll(lz4.NewReader(bytes.NewReader(b)))
	}
	d, err := zstd.NewReader(nil)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.DecodeAll(b, nil)
}

func TestHogLeavesNothing(t *testing.T) {
	name := filepath.Join(t.TempDir(), "hog")
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- rig.Hog(name, 3<<20, stop) }()
	time.AfterFunc(20*time.Millisecond, func() { close(stop) })
	assert.Must(t, (<-done))
	if _, err := os.Stat(name); !os.IsNotExist(err) {
		t.Error("left behind:", err)
	}
}

func TestPartOfTheWildIsNotWritten(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("needs /proc")
	}
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	o := tinyContest(t.TempDir())
	o.Only = regexp.MustCompile("^wild connections$")
	o.Write = filepath.Join(t.TempDir(), "doc.md")
	before := beginKafkaWildMarker + "old\n" + endKafkaWildMarker
	assert.Must(t, os.WriteFile(o.Write, []byte(before), 0o644))
	var stderr bytes.Buffer
	if err := Run(t.Context(), o, io.Discard, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	if text, err := os.ReadFile(o.Write); err != nil || string(text) != before {
		t.Errorf("a part of the table was written: %v\n%s", err, text)
	}
}

func TestRulesTellRowsApart(t *testing.T) {
	r := &pairReport{Report: rig.NewReport("x"), LeftOut: []string{"something"}}
	for _, rule := range []string{fromCache, byDefault} {
		m := pairMetric{group: "wild tail, quiet", name: "p99", unit: "ms", rule: rule}
		r.add(m, rig.Ours, 1)
		r.add(m, rig.Theirs, 1)
	}
	r.add(pairMetric{group: "heartbeats", name: "x"}, rig.Ours, 1)
	text := r.part(wildTable).markdown("")
	for _, want := range []string{"wild tail, quiet, p99 (1.00)", "wild tail, quiet, p99, defaults (1.00)", "Left out, or less than asked for: something."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	assert.True(t, !strings.Contains(text, "heartbeats") && !strings.Contains(r.part("").markdown(""), "wild"), "rows are in the wrong table")
}
