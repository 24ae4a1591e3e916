package broker_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"muster/internal/assert"
	"muster/internal/broker"
)

// The folders in testdata/format1 are of the last version without a journal: topic orders
// with 3 partitions, to which order 1 to order 100 were produced, of which group billing
// has read 60, and then order 101 to 110. One was left by a clean stop, one by kill -9.

// TestAFolderOfTheLastFormatIsOpened opens these folders, goes on with them, and opens
// them again.
func TestAFolderOfTheLastFormatIsOpened(t *testing.T) {
	for _, how := range []string{"clean", "killed"} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			unpack(t, filepath.Join("testdata", "format1", how+".tgz"), dir)
			upgradeAndUse(t, dir, 110)
			upgradeAndUse(t, dir, 150)
		})
	}
}

// upgradeAndUse wants so many orders, and makes forty more.
func upgradeAndUse(t *testing.T, dir string, orders int) {
	b, err := broker.Open(t.Context(), broker.Config{Properties: map[string]string{
		"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": dir, "offsets.retention.minutes": "2147483647",
	}})
	must(t, err)
	defer func() {
		assert.NoError(t, b.Close())
	}()
	c := client(t, b, kgo.ConsumeTopics("orders"), kgo.DefaultProduceTopic("orders"))
	defer c.Close()
	committed, err := kadm.NewClient(c).FetchOffsets(t.Context(), "billing")
	must(t, err)
	read := int64(0)
	committed.Each(func(o kadm.OffsetResponse) { read += o.At })
	assert.Equal(t, read, 60, "billing has read")
	var got, want []string
	for len(got) < orders {
		fetches := c.PollFetches(t.Context())
		must(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	for i := range orders {
		want = append(want, fmt.Sprintf("order %d", i+1))
	}
	slices.Sort(got)
	slices.Sort(want)
	assert.EqualSlices(t, got, want, "there are %d orders", len(got))
	for i := range 40 { // One at a time, so that there are many small flushes.
		r := &kgo.Record{Value: fmt.Appendf(nil, "order %d", orders+i+1)}
		must(t, c.ProduceSync(t.Context(), r).FirstErr())
	}
}

// unpack unpacks a tar file into a folder.
func unpack(t *testing.T, name, into string) {
	t.Helper()
	f, err := os.Open(name)
	must(t, err)
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	must(t, err)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		to := filepath.Join(into, filepath.FromSlash(h.Name))
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(to, 0o755)
		} else {
			var content []byte
			if content, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(to, content, 0o644)
			}
		}
		must(t, err)
	}
}
